/* SPDX-License-Identifier: BSD-3-Clause */
/* ICMP errors about tunnel packets: counted for their backend, and the path's MTU in the next
 * generation. */
#include "control_scene.h"

#include <malloc.h>
#include <string.h>

#include "clock.h"
#include "rewrite_internal.h"

#define LINK_MTU  1500
#define IPIP_SIZE 20

struct quote {
    uint8_t type, code;
    uint16_t mtu;
    const char *source, *to, *inner; /* the tunnel's ends, and where the packet inside went */
    size_t size;                     /* of the quote */
};

/* An ICMP message that quotes an IPIP packet, its checksum right. Returns its size. */
static size_t write_message(uint8_t *at, const struct quote *quote)
{
    struct hb_address source = address_of(quote->source), to = address_of(quote->to);
    struct hb_address inner = address_of(quote->inner);
    uint32_t sum = 0;

    memset(at, 0, 128);
    at[0] = quote->type;
    at[1] = quote->code;
    hb_put16(at + 6, quote->mtu);
    at[8] = at[8 + 20] = 0x45;
    at[8 + 9] = 4;
    memcpy(at + 8 + 12, source.bytes, 4);
    memcpy(at + 8 + 16, to.bytes, 4);
    memcpy(at + 8 + 20 + 16, inner.bytes, 4);
    for (size_t i = 0; i < 8 + quote->size; i += 2)
        sum += (uint32_t)at[i] << 8 | at[i + 1];
    sum = (sum & 0xffff) + (sum >> 16);
    hb_put16(at + 2, (uint16_t) ~((sum & 0xffff) + (sum >> 16)));
    return 8 + quote->size;
}

static void hear_error(struct scene *scene, struct quote quote)
{
    uint8_t message[128];
    size_t size;

    quote.source = quote.source ? quote.source : "203.0.113.10";
    quote.to = quote.to ? quote.to : "198.51.100.1";
    quote.inner = quote.inner ? quote.inner : "192.0.2.10";
    quote.size = quote.size ? quote.size : 40;
    size = write_message(message, &quote);
    hb_control_icmp_heard(scene->control, HB_FAMILY_IPV4, message, size);
}
#define HEAR(...) hear_error(scene, (struct quote){__VA_ARGS__})

static json_int_t number_of(struct scene *scene, const char *member)
{
    json_t *json = request(scene, "GET", "/v1/status", 200);
    json_int_t number = json_integer_value(json_object_get(json, member));

    json_decref(json);
    return number;
}

static struct hb_model_backend *backend_one(struct scene *scene)
{
    return backend_at(scene->control->model, "web", "198.51.100.1");
}

static void publish_next(struct scene *scene)
{
    expect_publish(scene);
    answer_publish(scene, HB_REJECT_NONE);
    wait_until_serving(scene, scene->generation.number);
}

static void test_a_small_path(void **state)
{
    struct scene *scene = *state;
    const struct hb_model_backend *two;
    json_t *json, *path;

    start_serving(scene);
    two = backend_at(scene->control->model, "web", "198.51.100.2");
    assert_int_equal(backend_one(scene)->rewrite.inner_max, LINK_MTU - IPIP_SIZE);
    HEAR(.type = 3, .code = 4, .mtu = 1400);
    publish_next(scene);
    assert_int_equal(backend_one(scene)->rewrite.inner_max, 1400 - IPIP_SIZE);
    assert_int_equal(two->rewrite.inner_max, LINK_MTU - IPIP_SIZE);
    HEAR(.type = 3, .code = 4, .mtu = 1300, .size = 28); /* cut to the minimum */
    publish_next(scene);
    assert_int_equal(backend_one(scene)->rewrite.inner_max, 1300 - IPIP_SIZE);

    json = request(scene, "GET", "/v1/backends", 200);
    path = json_object_get(json_array_get(json_object_get(json, "backends"), 0), "path");
    assert_int_equal(json_integer_value(json_object_get(path, "mtu")), 1300);
    assert_in_range(json_integer_value(json_object_get(path, "left_s")), 590, 600);
    assert_int_equal(json_integer_value(json_object_get(path, "too_big")), 2);
    json_decref(json);

    /* Time goes by: the whole link is tried again. */
    backend_one(scene)->path.learned_ms -= HB_PATH_KEEP_MS;
    hb_control_age_paths(scene->control);
    publish_next(scene);
    assert_int_equal(backend_one(scene)->rewrite.inner_max, LINK_MTU - IPIP_SIZE);
}

static void test_what_changes_nothing(void **state)
{
    struct scene *scene = *state;
    const struct hb_path *path;
    uint64_t wanted;

    start_serving(scene);
    path = &backend_one(scene)->path;
    wanted = scene->control->publication.wanted;
    HEAR(.type = 3, .code = 4, .mtu = 9000);
    HEAR(.type = 3, .code = 4, .mtu = 0);
    HEAR(.type = 3, .code = 4, .mtu = 575);
    assert_int_equal(path->too_big, 3);
    assert_int_equal(scene->control->icmp_ignored, 0);
    HEAR(.type = 3, .code = 4, .mtu = 1400, .source = "203.0.113.11");
    HEAR(.type = 3, .code = 4, .mtu = 1400, .to = "198.51.100.3");
    HEAR(.type = 3, .code = 4, .mtu = 1400, .inner = "192.0.2.11");
    HEAR(.type = 3, .code = 4, .mtu = 1400, .size = 26);
    assert_int_equal(path->too_big, 3);
    assert_int_equal(scene->control->icmp_ignored, 4);
    assert_int_equal(path->mtu, 0);
    hb_control_publish(scene->control);
    assert_int_equal(scene->control->publication.wanted, wanted);
}

static void test_errors_are_counted(void **state)
{
    struct scene *scene = *state;
    json_t *json, *path;
    const char *metrics;
    int status;

    start_serving(scene);
    HEAR(.type = 3, .code = 2);
    HEAR(.type = 3, .code = 1, .size = 28);
    HEAR(.type = 11);
    HEAR(.type = 3, .code = 1, .to = "198.51.100.2");
    HEAR(.type = 12);
    json = request(scene, "GET", "/v1/backends", 200);
    path = json_object_get(json_array_get(json_object_get(json, "backends"), 0), "path");
    assert_int_equal(json_integer_value(json_object_get(path, "unreachable")), 2);
    assert_int_equal(json_integer_value(json_object_get(path, "time_exceeded")), 1);
    assert_true(json_is_null(json_object_get(path, "mtu")));
    path = json_object_get(json_array_get(json_object_get(json, "backends"), 1), "path");
    assert_int_equal(json_integer_value(json_object_get(path, "unreachable")), 1);
    json_decref(json);
    ask(scene, "GET", "/metrics");
    metrics = hear_text(scene, &status);
    assert_int_equal(status, 200);
    assert_non_null(strstr(metrics, "halbach_backend_unreachable_total{pool=\"web\",backend="
                                    "\"one\",address=\"198.51.100.1\"} 2\n"));
}

/* ---- floods ---- */

#define FLOOD 100000

static uint32_t next_random(void)
{
    static uint32_t state = 2463534242u; /* xorshift32: the same in every run */

    state ^= state << 13;
    state ^= state >> 17;
    return state ^= state << 5;
}

/* What somebody can send who knows the addresses of backends, VIPs or tunnel, but not all of them,
 * or an MTU that nobody believes. `known`: it names all of them. */
static struct quote forge(bool *known)
{
    static const uint16_t mtus[] = {0, 68, 575, 1501, 65535};
    static const char *const sources[] = {"203.0.113.10", "203.0.113.11", "198.51.100.1"};
    static const char *const backends[] = {"198.51.100.1", "198.51.100.3", "192.0.2.10"};
    static const char *const inners[] = {"192.0.2.10", "192.0.2.11", "10.0.0.1"};
    uint32_t source = next_random() % 3, to = next_random() % 3, inner = next_random() % 3;
    struct quote quote = {.type = 3, .code = 4, .size = next_random() % 2 ? 40 : 28};

    *known = source == 0 && to == 0 && (inner == 0 || quote.size == 28);
    quote.mtu = *known ? mtus[next_random() % 5] : (uint16_t)next_random();
    quote.source = sources[source];
    quote.to = backends[to];
    quote.inner = inners[inner];
    return quote;
}

static void hear_random_bytes(struct scene *scene)
{
    uint8_t message[128];
    size_t size = next_random() % (sizeof(message) + 1);

    for (size_t i = 0; i < size; i++)
        message[i] = (uint8_t)next_random();
    hb_control_icmp_heard(scene->control, next_random() % 2 ? HB_FAMILY_IPV6 : HB_FAMILY_IPV4,
                          message, size);
}

static void test_a_flood_of_forged_errors(void **state)
{
    struct scene *scene = *state;
    struct hb_control *control = scene->control;
    uint64_t wanted, news, ignored = 0, named = 0;
    const struct hb_path *path;
    struct hb_rewrite rewrite;
    size_t memory;

    start_serving(scene);
    path = &backend_one(scene)->path;
    rewrite = backend_one(scene)->rewrite;
    wanted = control->publication.wanted;
    news = hb_events_newest(control->events);
    memory = mallinfo2().uordblks;
    for (uint32_t i = 0; i < FLOOD; i++) {
        bool known;

        hear_error(scene, forge(&known));
        hear_random_bytes(scene);
        ignored += 1 + !known;
        named += known;
    }
    /* Counted, every one, and nothing else. */
    assert_true(named > FLOOD / 20 && named < FLOOD / 2);
    assert_int_equal(path->too_big, named);
    assert_int_equal(control->icmp_ignored, ignored);
    assert_int_equal(path->mtu, 0);
    assert_memory_equal(&backend_one(scene)->rewrite, &rewrite, sizeof(rewrite));
    assert_int_equal(hb_events_newest(control->events), news);
    assert_int_equal(mallinfo2().uordblks, memory);
    hb_control_publish(control);
    assert_int_equal(control->publication.wanted, wanted);
    assert_int_equal(number_of(scene, "icmp_ignored"), ignored);
}

/* IPv6 packets of 1,280 bytes fit every link, so they must fit the tunnel. */
static void test_a_pool_that_serves_ipv6(void **state)
{
    struct scene *scene = *state;
    const struct hb_path *path;

    start_serving(scene);
    path = &backend_one(scene)->path;
    scene->control->model->services[0].vip = address_of("2001:db8:0:a::10");
    HEAR(.type = 3, .code = 4, .mtu = 1280 + IPIP_SIZE - 1, .size = 28);
    assert_int_equal(path->mtu, 0);
    HEAR(.type = 3, .code = 4, .mtu = 1280 + IPIP_SIZE, .size = 28);
    assert_int_equal(path->mtu, 1280 + IPIP_SIZE);
    assert_int_equal(path->too_big, 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_stage, clear_stage)
    const struct CMUnitTest tests[] = {
        TEST(test_a_small_path),
        TEST(test_what_changes_nothing),
        TEST(test_errors_are_counted),
        TEST(test_a_flood_of_forged_errors),
        TEST(test_a_pool_that_serves_ipv6),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
