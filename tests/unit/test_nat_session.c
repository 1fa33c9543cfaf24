/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions of full NAT: by hand first, then at random against a plain list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nat_session.h"

#define PORT(number) ((hb_be16)((number) >> 8 | ((number)&0xff) << 8))

static const struct hb_flow_timeouts timeouts = {3000, 3600000, 10000, 1000, 60000};
static const struct hb_hash_key seed = {{1, 2, 3, 4, 5, 6, 7, 8}};
static const uint8_t backend_address[16] = {198, 51, 100, 11};

static struct hb_nat_sessions *make(uint32_t max)
{
    void *memory = aligned_alloc(64, (hb_nat_sessions_bytes(max) + 63) & ~(size_t)63);

    return hb_nat_sessions_init(memory, max, &timeouts, &seed);
}

static struct hb_flow_key client(uint16_t port, uint8_t protocol)
{
    return (struct hb_flow_key){.source = {203, 0, 113, 9},
                                .destination = {192, 0, 2, 10},
                                .source_port = PORT(port),
                                .destination_port = PORT(80),
                                .protocol = protocol,
                                .family = 4};
}

static struct hb_nat_source source = {.address = {198, 51, 100, 64}, .family = 4};

static struct hb_nat_session *add(struct hb_nat_sessions *sessions, const struct hb_flow_key *flow,
                                  uint32_t now_ms, enum hb_nat_result *result)
{
    const struct hb_nat_wish wish = {.request = flow,
                                     .backend_address = backend_address,
                                     .backend_port = PORT(8080),
                                     .backend = 1,
                                     .incarnation = 1,
                                     .sources = &source,
                                     .sources_count = 1,
                                     .workers = 2,
                                     .worker = 1};

    return hb_nat_sessions_add(sessions, &wish, now_ms, result);
}

/* BL-85: ten ports serve ten connections; the eleventh is refused, and gets the port of one whose
 * time is over. */
static void ports_run_out(void **state)
{
    struct hb_nat_sessions *sessions = make(64);
    struct hb_nat_session *session[11];
    enum hb_nat_result result;
    uint32_t used = 0;

    (void)state;
    source.first = 2000;
    source.each = 10;
    for (uint16_t i = 0; i < 10; i++) {
        struct hb_flow_key flow = client(1000 + i, 6);
        uint16_t port;

        session[i] = add(sessions, &flow, 0, &result);
        assert_non_null(session[i]);
        port = PORT(session[i]->answer.destination_port);
        assert_true(port >= 2000 && port < 2020 && port % 2 == 1); /* this worker's alone */
        assert_int_equal(used >> (port - 2000) & 1, 0);
        used |= 1u << (port - 2000);
        hb_nat_sessions_touch(sessions, session[i], true, HB_NAT_SAW_DATA, 0);
    }
    for (int round = 0; round < 1000; round++) {
        struct hb_flow_key flow = client((uint16_t)(2000 + round), 6);

        assert_null(add(sessions, &flow, 1, &result));
        assert_int_equal(result, HB_NAT_NO_PORT);
    }
    assert_int_equal(hb_nat_sessions_used(sessions), 10);

    /* a closed one holds its port for a minute */
    hb_nat_sessions_touch(sessions, session[3], true, HB_NAT_SAW_FIN, 1000);
    for (uint32_t now = 1000; now < 61000; now += 500) {
        struct hb_flow_key flow = client(5000, 6);

        assert_null(add(sessions, &flow, now, &result));
    }
    {
        struct hb_flow_key flow = client(5000, 6);
        hb_be16 port = session[3]->answer.destination_port;

        session[10] = add(sessions, &flow, 61000, &result);
        assert_non_null(session[10]);
        assert_int_equal(session[10]->answer.destination_port, port);
    }
    free(sessions);
}

/* A flood of SYNs takes the places of its like, never of a connection. */
static void a_flood(void **state)
{
    struct hb_nat_sessions *sessions = make(32);
    enum hb_nat_result result;

    (void)state;
    source.first = 2000;
    source.each = 30000;
    for (uint16_t i = 0; i < 20; i++) {
        struct hb_flow_key flow = client(100 + i, 6);
        struct hb_nat_session *session = add(sessions, &flow, 0, &result);

        hb_nat_sessions_touch(sessions, session, true, HB_NAT_SAW_DATA, 0);
    }
    for (uint32_t i = 0; i < 10000; i++) {
        struct hb_flow_key flow = client((uint16_t)(1000 + i), 6);

        assert_non_null(add(sessions, &flow, 10, &result));
    }
    assert_int_equal(hb_nat_sessions_used(sessions), 32);
    for (uint16_t i = 0; i < 20; i++) {
        struct hb_flow_key flow = client(100 + i, 6);

        assert_non_null(hb_nat_sessions_by_request(sessions, &flow, 20));
    }
    for (uint16_t i = 0; i < 12; i++) { /* all in use for real: the next is refused */
        struct hb_flow_key flow = client((uint16_t)(1000 + 9999 - i), 6);
        struct hb_nat_session *session = hb_nat_sessions_by_request(sessions, &flow, 20);

        assert_non_null(session);
        hb_nat_sessions_touch(sessions, session, true, HB_NAT_SAW_DATA, 20);
    }
    {
        struct hb_flow_key flow = client(30000, 6);

        assert_null(add(sessions, &flow, 30, &result));
        assert_int_equal(result, HB_NAT_FULL);
    }
    free(sessions);
}

static void times_by_state(void **state)
{
    static const struct {
        enum hb_nat_event event[3];
        int events;
        uint8_t protocol;
        uint32_t lives_ms;
    } rows[] = {
        {{0}, 0, 6, 3000},
        {{HB_NAT_SAW_DATA}, 1, 6, 3600000},
        {{HB_NAT_SAW_DATA, HB_NAT_SAW_FIN}, 2, 6, 60000},
        {{HB_NAT_SAW_DATA, HB_NAT_SAW_FIN, HB_NAT_SAW_RST}, 3, 6, 60000},
        {{HB_NAT_SAW_DATA, HB_NAT_SAW_RST}, 2, 6, 10000},
        {{HB_NAT_SAW_DATA, HB_NAT_SAW_RST, HB_NAT_SAW_DATA}, 3, 6, 3600000}, /* RFC 5961 */
        {{0}, 0, 17, 60000},
        {{HB_NAT_SAW_DATA}, 1, 17, 60000},
    };
    struct hb_nat_sessions *sessions = make(8);
    enum hb_nat_result result;

    (void)state;
    source.first = 2000;
    source.each = 30000;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t now = UINT32_MAX - 500; /* the clock wraps */
        struct hb_flow_key flow = client(100, rows[i].protocol);
        struct hb_nat_session *session = add(sessions, &flow, now, &result);
        struct hb_flow_key answer = session->answer;

        for (int e = 0; e < rows[i].events; e++)
            hb_nat_sessions_touch(sessions, session, true, rows[i].event[e], now);
        now += rows[i].lives_ms;
        assert_non_null(hb_nat_sessions_by_answer(sessions, &answer, now - 1));
        hb_nat_sessions_age(sessions, 8, now - 1);
        assert_int_equal(hb_nat_sessions_used(sessions), 1);
        hb_nat_sessions_age(sessions, 8, now);
        assert_int_equal(hb_nat_sessions_used(sessions), 0);
        assert_null(hb_nat_sessions_by_request(sessions, &flow, now));
    }
    free(sessions);
}

#define MODEL 200

/* Each step adds, finds, touches, detaches, ends or ages; a plain array says what must be there. */
static void a_model(void **state)
{
    struct {
        struct hb_flow_key request, answer;
        bool live, detached;
    } model[MODEL] = {0};
    struct hb_nat_sessions *sessions = make(64);
    uint32_t live = 0;

    (void)state;
    source.first = 2000;
    source.each = 40;
    srand(20);
    for (int step = 0; step < 200000; step++) {
        uint32_t at = (uint32_t)rand() % MODEL;
        struct hb_flow_key request = client((uint16_t)(1000 + at), 6);
        struct hb_nat_session *session = hb_nat_sessions_by_request(sessions, &request, 0);
        enum hb_nat_result result;

        assert_int_equal(session != NULL, model[at].live && !model[at].detached);
        if (model[at].live)
            assert_non_null(hb_nat_sessions_by_answer(sessions, &model[at].answer, 0));
        if (!model[at].live) {
            session = add(sessions, &request, 0, &result);
            if (session == NULL) {
                assert_int_equal(live, 40);
                assert_int_equal(result, HB_NAT_NO_PORT);
                continue;
            }
            for (uint32_t i = 0; i < MODEL; i++)
                assert_true(!model[i].live ||
                            memcmp(&model[i].answer, &session->answer, sizeof(session->answer)));
            model[at].live = true;
            model[at].detached = false;
            model[at].request = request;
            model[at].answer = session->answer;
            hb_nat_sessions_touch(sessions, session, true, HB_NAT_SAW_DATA, 0);
            live++;
        } else {
            session = hb_nat_sessions_by_answer(sessions, &model[at].answer, 0);
            assert_memory_equal(&session->request, &model[at].request, sizeof(request));
            if (rand() % 3 == 0) {
                hb_nat_sessions_detach(sessions, session);
                model[at].detached = true;
            } else {
                hb_nat_sessions_end(sessions, session);
                model[at].live = false;
                live--;
            }
        }
        assert_int_equal(hb_nat_sessions_used(sessions), live);
    }
    free(sessions);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ports_run_out), cmocka_unit_test(a_flood),
                                       cmocka_unit_test(times_by_state), cmocka_unit_test(a_model)};

    return cmocka_run_group_tests_name("nat_session", tests, NULL, NULL);
}
