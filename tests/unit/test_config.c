/* SPDX-License-Identifier: BSD-3-Clause */
/* Configurations that are accepted, files that cannot be, limits, and that nothing half-read
 * survives. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "config_fixture.h"
#include "config_internal.h"
#include "hashing/table_builder.h"
#include "table_fixture.h"

static const char full[] =
    "# A comment.\n"
    "seed: 6f1c2a9b-0123\n"
    "tunnel: { source: 198.51.100.10, source6: \"2001:db8:0:1::10\" }\n"
    "pools:\n"
    "  - name: web\n"
    "    algorithm: maglev\n"
    "    table_size: 1021\n"
    "    forwarding: ipip\n"
    "    health: { type: tcp, port: 8080, interval: 2s, timeout: 1500ms, rise: 4, fall: 5 }\n"
    "    backends:\n"
    "      - { name: web1, address: 198.51.100.11 }\n"
    "      - { name: web2, address: \"2001:0DB8:0:b::12\", weight: 40 }\n"
    "  - name: dns\n"
    "    health: { type: none }\n"
    "    backends:\n"
    "      - name: dns1\n"
    "        address: 198.51.100.21\n"
    "        weight: 0\n"
    "      - { name: dns2, address: 198.51.100.22 }\n"
    "services:\n"
    "  - { name: www, vip: 192.0.2.10, protocol: tcp, port: 40000, pool: web }\n"
    "  - { name: www6, vip: \"2001:db8:0:a::10\", protocol: tcp, port: 80, pool: web }\n"
    "  - { name: dns-tcp, vip: 192.0.2.10, protocol: tcp, port: 53, pool: dns }\n"
    "  - { name: dns-udp, vip: 192.0.2.10, protocol: udp, port: 53, pool: dns }\n";

static void assert_address(const struct hb_address *address, const char *expected)
{
    char text[HB_ADDRESS_TEXT];

    assert_string_equal(hb_address_print(address, text), expected);
}

static void test_everything(void **state)
{
    struct complaints complaints = {0};
    struct hb_config *config = parse(full, &complaints);
    const struct hb_pool_config *web, *dns;

    (void)state;
    print_complaints(&complaints);
    assert_non_null(config);
    assert_int_equal(complaints.count, 0);
    assert_string_equal(config->file, "t");
    assert_string_equal(config->seed, "6f1c2a9b-0123");
    assert_address(&config->tunnel_source, "198.51.100.10");
    assert_address(&config->tunnel_source6, "2001:db8:0:1::10");
    assert_int_equal(config->pools_count, 2);
    web = &config->pools[0];
    assert_string_equal(web->name, "web");
    assert_int_equal(web->line, 5);
    assert_int_equal(web->algorithm, HB_ALGORITHM_MAGLEV);
    assert_int_equal(web->table_size, 1021);
    assert_int_equal(web->forwarding, HB_FORWARDING_IPIP);
    assert_int_equal(web->health.type, HB_HEALTH_TCP);
    assert_int_equal(web->health.port, 8080);
    assert_int_equal(web->health.interval_ms, 2000);
    assert_int_equal(web->health.timeout_ms, 1500);
    assert_int_equal(web->health.rise, 4);
    assert_int_equal(web->health.fall, 5);
    assert_int_equal(web->backends_count, 2);
    assert_string_equal(web->backends[0].name, "web1");
    assert_address(&web->backends[0].address, "198.51.100.11");
    assert_int_equal(web->backends[0].weight, 1);
    assert_int_equal(web->backends[0].line, 11);
    assert_address(&web->backends[1].address, "2001:db8:0:b::12");
    assert_int_equal(web->backends[1].weight, 40);
    assert_string_equal(web->backends[0].zone, "");
    assert_int_equal(web->backends[0].bucket, HB_BUCKET_NONE);
    assert_int_equal(web->bounded_load, 0);
    assert_int_equal(web->options.virtual_nodes, 0);
    assert_false(web->options.ketama);
    assert_false(web->options.jump_replacement);
    dns = &config->pools[1];
    assert_int_equal(dns->health.type, HB_HEALTH_NONE);
    assert_int_equal(dns->backends[0].weight, 0);
    assert_int_equal(dns->backends[0].line, 16);
    hb_config_free(config);
    drop_complaints(&complaints);
}

/* BL-73: four services on two ports of one address, each with its pool. */
static void test_services(void **state)
{
    static const struct {
        const char *name, *vip;
        int protocol, port, pool, line;
    } rows[] = {
        {"www", "192.0.2.10", HB_PROTOCOL_TCP, 40000, 0, 21},
        {"www6", "2001:db8:0:a::10", HB_PROTOCOL_TCP, 80, 0, 22},
        {"dns-tcp", "192.0.2.10", HB_PROTOCOL_TCP, 53, 1, 23},
        {"dns-udp", "192.0.2.10", HB_PROTOCOL_UDP, 53, 1, 24},
    };
    struct complaints complaints = {0};
    struct hb_config *config = parse(full, &complaints);

    (void)state;
    assert_non_null(config);
    assert_int_equal(config->services_count, 4);
    for (int i = 0; i < 4; i++) {
        const struct hb_service_config *service = &config->services[i];

        assert_string_equal(service->name, rows[i].name);
        assert_address(&service->vip, rows[i].vip);
        assert_int_equal(service->protocol, rows[i].protocol);
        assert_int_equal(service->port, rows[i].port);
        assert_int_equal(service->pool, rows[i].pool);
        assert_int_equal(service->line, rows[i].line);
    }
    hb_config_free(config);
}

static void test_presets(void **state)
{
    struct complaints complaints = {0};
    struct hb_config *config =
        parse("services: [{name: w, vip: 192.0.2.1, protocol: tcp, port: 80, "
              "pool: w}]\n"
              "pools: [{backends: [{address: 198.51.100.1, name: b}], name: w}]\n"
              "seed: 12345678\n",
              &complaints);

    (void)state;
    assert_non_null(config);
    assert_int_equal(complaints.count, 0);
    assert_int_equal(config->tunnel_source.family, 0);
    assert_int_equal(config->tunnel_source6.family, 0);
    assert_int_equal(config->pools[0].algorithm, HB_ALGORITHM_MAGLEV);
    assert_int_equal(config->pools[0].table_size, 65537);
    assert_int_equal(config->pools[0].forwarding, HB_FORWARDING_IPIP);
    assert_int_equal(config->pools[0].health.type, HB_HEALTH_TCP);
    assert_int_equal(config->pools[0].health.port, 0);
    assert_int_equal(config->pools[0].health.interval_ms, 1000);
    assert_int_equal(config->pools[0].health.timeout_ms, 500);
    assert_int_equal(config->pools[0].health.rise, 2);
    assert_int_equal(config->pools[0].health.fall, 3);
    assert_int_equal(config->pools[0].backends[0].weight, 1);
    hb_config_free(config);
}

static void test_hashing_keys(void **state)
{
    static const char text[] =
        "seed: 0123456789abcdef\n"
        "pools:\n"
        "  - { name: r, algorithm: ring, virtual_nodes: 250, bounded_load: 0.25, backends: [\n"
        "      { name: a, address: 198.51.100.1, zone: east } ] }\n"
        "  - { name: k, algorithm: ring, ketama: true, bounded_load: 10, backends: [\n"
        "      { name: a, address: 198.51.100.1 } ] }\n"
        "  - { name: v, algorithm: rendezvous, bounded_load: 0.01, backends: [\n"
        "      { name: a, address: 198.51.100.1 } ] }\n"
        "  - { name: j, algorithm: jump, jump_replacement: true, bounded_load: 1.5, backends: [\n"
        "      { name: b, address: 198.51.100.2, bucket: 1 },\n"
        "      { name: a, address: 198.51.100.1, bucket: 0 } ] }\n"
        "services:\n"
        "  - { name: r, vip: 192.0.2.1, protocol: tcp, port: 80, pool: r }\n"
        "  - { name: k, vip: 192.0.2.2, protocol: tcp, port: 80, pool: k }\n"
        "  - { name: v, vip: 192.0.2.3, protocol: tcp, port: 80, pool: v }\n"
        "  - { name: j, vip: 192.0.2.4, protocol: tcp, port: 80, pool: j }\n";
    static const enum hb_algorithm algorithms[] = {HB_ALGORITHM_RING, HB_ALGORITHM_RING,
                                                   HB_ALGORITHM_RENDEZVOUS, HB_ALGORITHM_JUMP};
    static const uint32_t bounds[] = {256, 10240, 10, 1536};
    struct complaints complaints = {0};
    struct hb_config *config = parse(text, &complaints);

    (void)state;
    print_complaints(&complaints);
    assert_non_null(config);
    assert_int_equal(complaints.count, 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(config->pools[i].algorithm, algorithms[i]);
        assert_int_equal(config->pools[i].bounded_load, bounds[i]);
        assert_int_equal(config->pools[i].options.virtual_nodes, i == 0 ? 250 : 0);
        assert_int_equal(config->pools[i].options.ketama, i == 1);
        assert_int_equal(config->pools[i].options.jump_replacement, i == 3);
    }
    assert_string_equal(config->pools[0].backends[0].zone, "east");
    assert_string_equal(config->pools[1].backends[0].zone, "");
    assert_int_equal(config->pools[2].backends[0].bucket, HB_BUCKET_NONE);
    assert_int_equal(config->pools[3].backends[0].bucket, 1);
    assert_int_equal(config->pools[3].backends[1].bucket, 0);
    hb_config_free(config);
}

/* BL-62: a fleet's balancers must derive the same keys, whatever built them. */
static void test_bl62_derived_keys(void **state)
{
    static const uint64_t expected[HB_HASH_KEY_WORDS] = {
        UINT64_C(0x64439946d8fa212d), UINT64_C(0x88d481d0667f6a4f), UINT64_C(0x8d21ad04c0c8c633),
        UINT64_C(0xe57423ae18e1f258), UINT64_C(0xf93add15475ad1a6), UINT64_C(0xf0258d53db1f20f0),
        UINT64_C(0x70b2c9023f9c499d), UINT64_C(0xb5c9aa9d3ebd6770)};
    struct complaints complaints = {0};
    char *text = edit_base(0, "");
    struct hb_config *config = parse(text, &complaints), *other;
    char *changed = edit_base(1, "seed: 0123456789abcdeg");

    (void)state;
    assert_non_null(config);
    for (int i = 0; i < HB_HASH_KEY_WORDS; i++)
        assert_int_equal(config->hash_key.word[i], expected[i]);
    assert_int_equal(config->table_seed, UINT64_C(0xd8a83798e0841134));
    other = parse(changed, &complaints);
    assert_non_null(other);
    for (int i = 0; i < HB_HASH_KEY_WORDS; i++)
        assert_int_not_equal(config->hash_key.word[i], other->hash_key.word[i]);
    assert_int_not_equal(config->table_seed, other->table_seed);
    hb_config_free(other);
    hb_config_free(config);
    free(changed);
    free(text);
}

/* One file with many faults: each is reported, in the order of the lines. */
static void test_all_complaints_are_reported(void **state)
{
    static const char *const expected[] = {
        "t:1: seed: expected a secret of 8 to 63 characters, the same on all balancers of a fleet, "
        "found 5",
        "t:4: pools[0].table_size: 256 is not prime; the nearest primes are 251 and 257",
        "t:6: pools[0].backends[0].weight: expected a whole number from 0 to 65535, found \"x\"",
        "t:7: pools[0].backends[1].name: \"web1\" is the name of another backend of this pool at "
        "line 6 "
        "already; choose another",
        "t:9: services[0].port: expected a port from 1 to 65535, a range such as 8000-8999, or "
        "any, "
        "found \"0\"",
        "t:10: services[1].name: \"www\" is the name of services[0] at line 9 already; choose "
        "another",
        "t:10: services[1].pool: no pool is named \"wep\"; did you mean \"web\"?",
    };
    struct complaints complaints = {0};
    struct hb_config *config =
        parse("seed: short\n"
              "pools:\n"
              "  - name: web\n"
              "    table_size: 256\n"
              "    backends:\n"
              "      - { name: web1, address: 198.51.100.11, weight: x }\n"
              "      - { name: web1, address: 198.51.100.12 }\n"
              "services:\n"
              "  - { name: www, vip: 192.0.2.10, protocol: tcp, port: 0, pool: web }\n"
              "  - { name: www, vip: 192.0.2.11, protocol: tcp, port: 80, pool: wep }\n",
              &complaints);

    (void)state;
    assert_null(config);
    print_complaints(&complaints);
    assert_int_equal(complaints.count, sizeof(expected) / sizeof(expected[0]));
    for (int i = 0; i < complaints.count; i++)
        assert_string_equal(complaints.messages[i], expected[i]);
    drop_complaints(&complaints);
}

/* BL-91: a file that is cut anywhere but at the end of a line is refused; at the end of a line,
 * whatever is accepted is a part of the whole and nothing else. */
static void test_bl91_cut_at_every_byte(void **state)
{
    size_t size = strlen(full);
    int accepted = 0;

    (void)state;
    for (size_t cut = 0; cut <= size; cut++) {
        struct complaints complaints = {0};
        /* Exactly as large as the text, so that reading past its end shows under a sanitizer. */
        char *text = malloc(cut > 0 ? cut : 1);
        struct hb_config *config;

        memcpy(text, full, cut);
        config = hb_config_parse(text, cut, "t", keep_complaint, &complaints);
        assert_true((config == NULL) == (complaints.errors > 0));
        if (config != NULL) {
            accepted++;
            assert_int_equal(text[cut - 1], '\n');
            assert_int_equal(config->pools_count, 2);
            assert_in_range(config->services_count, 1, 4);
        }
        hb_config_free(config);
        drop_complaints(&complaints);
        free(text);
    }
    /* Whole; after three services. After one or two the pool dns has no user: a warning. */
    assert_int_equal(accepted, 4);
}

static void test_bl91_nothing_in_it(void **state)
{
    static const char *const texts[] = {"",      "\n",     "# only\n# comments\n",
                                        "---\n", "{}\n",   "[]\n",
                                        "~\n",   "text\n", "--- {}\n...\n"};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct complaints complaints = {0};

        assert_null(parse(texts[i], &complaints));
        assert_in_range(complaints.errors, 1, 3);
        drop_complaints(&complaints);
    }
}

/* ---- files ---- */

struct file {
    char path[64];
    int fd;
};

static struct file make_file(const char *text)
{
    struct file file = {.path = "/tmp/hb-test-config-XXXXXX"};

    file.fd = mkstemp(file.path);
    assert_true(file.fd >= 0);
    assert_int_equal(write(file.fd, text, strlen(text)), strlen(text));
    return file;
}

static void drop_file(struct file *file)
{
    close(file->fd);
    unlink(file->path);
}

static void assert_load_fails(const char *path, const char *expected)
{
    struct complaints complaints = {0};
    char message[256];

    snprintf(message, sizeof(message), "%s: %s", path, expected);
    assert_null(hb_config_load(path, keep_complaint, &complaints));
    assert_int_equal(complaints.count, 1);
    assert_string_equal(complaints.messages[0], message);
    drop_complaints(&complaints);
}

static void test_load(void **state)
{
    struct complaints complaints = {0};
    struct file file = make_file(full);
    struct hb_config *config = hb_config_load(file.path, keep_complaint, &complaints);

    (void)state;
    assert_non_null(config);
    assert_string_equal(config->file, file.path);
    assert_int_equal(complaints.count, 0);
    hb_config_free(config);
    drop_file(&file);
}

static void test_bl91_files(void **state)
{
    struct file file = make_file("");
    char fifo[80];

    (void)state;
    assert_load_fails("/nonexistent/halbach.yaml", "there is no such file; is the path right?");
    assert_load_fails("/tmp", "it is a directory; name the file in it");
    assert_load_fails(file.path,
                      "it is empty; it needs at least \"seed\", \"pools\" and \"services\"");
    assert_int_equal(ftruncate(file.fd, HB_CONFIG_FILE_MAX + 1), 0);
    assert_load_fails(file.path, "it is larger than 16 MB; is it the right file?");
    snprintf(fifo, sizeof(fifo), "%s.fifo", file.path);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_load_fails(fifo, "it is not a regular file"); /* and does not wait for a writer */
    unlink(fifo);
    if (geteuid() != 0) { /* root may read anything */
        assert_int_equal(fchmod(file.fd, 0), 0);
        assert_load_fails(file.path, "it may not be read by this user; check its permissions");
    }
    drop_file(&file);
}

static void append(int fd)
{
    assert_int_equal(lseek(fd, 0, SEEK_END), strlen(full));
    assert_int_equal(write(fd, "# more\n", 7), 7);
}

static void cut(int fd)
{
    assert_int_equal(ftruncate(fd, 100), 0);
}

static void overwrite(int fd)
{
    assert_int_equal(pwrite(fd, "# Another", 9, 0), 9);
}

/* BL-91: the file changes between the moment it was looked at and the end of reading. */
static void test_bl91_changed_while_read(void **state)
{
    static void (*const changes[])(int fd) = {append, cut, overwrite};
    static const struct timespec long_ago[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    char *text = NULL;
    size_t size = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        struct file file = make_file(full);
        int fd = open(file.path, O_RDONLY);
        struct stat before;

        /* So that the change shows in the time, however coarse the clock. */
        assert_int_equal(futimens(file.fd, long_ago), 0);
        assert_int_equal(fstat(fd, &before), 0);
        changes[i](file.fd);
        assert_int_equal(hb_config_read_file(fd, &before, &text, &size), -EAGAIN);
        assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
        assert_int_equal(fstat(fd, &before), 0);
        assert_int_equal(hb_config_read_file(fd, &before, &text, &size), 0);
        assert_int_equal(size, before.st_size);
        assert_int_equal(strlen(text), size);
        free(text);
        close(fd);
        drop_file(&file);
    }
}

/* The example that people start from is accepted, and says what it says. */
static void test_example(void **state)
{
    struct complaints complaints = {0};
    struct hb_config *config = hb_config_load(HB_EXAMPLE, keep_complaint, &complaints);
    uint32_t types = 0;

    (void)state;
    print_complaints(&complaints);
    assert_non_null(config);
    assert_int_equal(complaints.count, 1); /* its seed is known */
    assert_true(has_complaint(
        &complaints, true,
        HB_EXAMPLE ":13: seed: it is the example of the documentation, which everybody knows; take "
                   "the output of 'openssl rand -hex 16'"));
    assert_int_equal(config->pools_count, 14);
    assert_int_equal(config->services_count, 16);
    for (uint32_t p = 0; p < config->pools_count; p++)
        types |= 1u << config->pools[p].health.type;
    assert_int_equal(types, 1u << HB_HEALTH_NONE | 1u << HB_HEALTH_TCP | 1u << HB_HEALTH_HTTPS |
                                1u << HB_HEALTH_UDP | 1u << HB_HEALTH_ICMP | 1u << HB_HEALTH_GRPC |
                                1u << HB_HEALTH_EXEC);
    drop_complaints(&complaints);
    hb_config_free(config);
}

/* BL-58, BL-75: another order, other spellings, maps or lists: the same table. */
static void test_bl58_spelling_and_order(void **state)
{
    static const char *const texts[] = {
        "seed: 0123456789abcdef\n"
        "pools:\n"
        "  - name: web\n"
        "    table_size: 251\n"
        "    backends:\n"
        "      - { name: a, address: 198.51.100.11 }\n"
        "      - { name: b, address: 2001:db8::11, weight: 2 }\n"
        "      - { name: c, address: 198.51.100.9 }\n"
        "services:\n"
        "  - { name: www, vip: 192.0.2.10, protocol: tcp, port: 80, pool: web }\n",
        /* JSON is YAML. */
        "{\"services\": [{\"pool\": \"w\", \"name\": \"s\", \"vip\": \"192.0.2.10\", \"port\": 80, "
        "\"protocol\": \"tcp\"}],\n"
        " \"pools\": [{\"backends\": [{\"address\": \"2001:0DB8:0:0:0::0011\", \"name\": \"x\", "
        "\"weight\": 2},\n"
        "  {\"name\": \"y\", \"address\": \"198.51.100.9\"}, {\"name\": \"z\", \"address\": "
        "\"198.51.100.11\", \"weight\": 1}],\n"
        "  \"table_size\": 251, \"name\": \"w\"}], \"seed\": \"0123456789abcdef\"}\n",
    };
    uint8_t digest[2][HB_DIGEST_SIZE];

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct complaints complaints = {0};
        struct hb_config *config = parse(texts[i], &complaints);
        struct hb_table_member members[3];
        char identities[3][HB_ADDRESS_TEXT];
        uint16_t owner[251];

        print_complaints(&complaints);
        assert_non_null(config);
        for (uint16_t b = 0; b < 3; b++) {
            const struct hb_backend_config *backend = &config->pools[0].backends[b];

            members[b] = (struct hb_table_member){
                .identity = hb_address_print(&backend->address, identities[b]),
                .weight = backend->weight,
                .id = (uint16_t)(b + 1),
            };
        }
        assert_int_equal(build_maglev(members, 3, 251, config->table_seed, owner), HB_TABLE_OK);
        hb_table_owners_digest(owner, 251, members, 3, digest[i]);
        hb_config_free(config);
        drop_complaints(&complaints);
    }
    assert_memory_equal(digest[0], digest[1], HB_DIGEST_SIZE);
}

/* BL-86: what is written is what is read, over the whole width. */
static void test_bl86_round_trip(void **state)
{
    static const unsigned values[] = {1, 127, 128, 255, 256, 32767, 32768, 40000, 65534, 65535};

    (void)state;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        struct complaints complaints = {0};
        char line[128];
        struct hb_config *config;
        char *text;

        snprintf(line, sizeof(line),
                 "  - { name: www, vip: 192.0.2.10, protocol: tcp, port: %u, pool: web }",
                 values[i]);
        text = edit_base(9, line);
        config = parse(text, &complaints);
        assert_non_null(config);
        assert_int_equal(config->services[0].port, values[i]);
        hb_config_free(config);
        free(text);
        snprintf(line, sizeof(line), "      - { name: web1, address: 198.51.100.11, weight: %u }",
                 values[i]);
        text = edit_base(7, line);
        config = parse(text, &complaints);
        assert_non_null(config);
        assert_int_equal(config->pools[0].backends[0].weight, values[i]);
        hb_config_free(config);
        free(text);
        assert_int_equal(complaints.count, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything),
        cmocka_unit_test(test_services),
        cmocka_unit_test(test_presets),
        cmocka_unit_test(test_hashing_keys),
        cmocka_unit_test(test_bl62_derived_keys),
        cmocka_unit_test(test_all_complaints_are_reported),
        cmocka_unit_test(test_bl91_cut_at_every_byte),
        cmocka_unit_test(test_bl91_nothing_in_it),
        cmocka_unit_test(test_load),
        cmocka_unit_test(test_bl91_files),
        cmocka_unit_test(test_bl91_changed_while_read),
        cmocka_unit_test(test_example),
        cmocka_unit_test(test_bl58_spelling_and_order),
        cmocka_unit_test(test_bl86_round_trip),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
