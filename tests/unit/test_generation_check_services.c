/* SPDX-License-Identifier: BSD-3-Clause */
/* The checks of what services have: prefixes, ranges, affinity, lists, limits, QUIC. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "blob.h"
#include "generation_check.h"

static const struct hb_generation_limits limits = {
    .services_max = HB_SERVICES_MAX, .backends_max = HB_BACKENDS_MAX + 1, .ports_count = 1};

/* The example and one more service: UDP 443 of 198.18.0.0/24 by pool 0. */
enum { ADDED = 2 };
static struct blob_plan plan_with_one_more(void)
{
    struct blob_plan plan = blob_example();
    uint32_t at = blob_add_service(&plan, "added", "198.18.0.0", HB_PROTOCOL_UDP, 443, 0);

    plan.service[at].prefix_length = 24;
    return plan;
}

static void set_ports(struct hb_service_record *service, uint16_t first, uint16_t last)
{
    service->port = htons(first);
    service->port_last = htons(last);
}

static enum hb_reject check(const struct blob_plan *plan, struct hb_generation_fault *fault)
{
    size_t size;
    void *blob = blob_build(plan, &size);
    enum hb_reject reason = hb_generation_check(blob, size, &limits, fault);

    free(blob);
    return reason;
}

static void take(const struct blob_plan *plan)
{
    struct hb_generation_fault fault;

    if (check(plan, &fault) != HB_REJECT_NONE)
        fail_msg("refused: %s", fault.text);
}

static void refuse(const struct blob_plan *plan, enum hb_reject reason, const char *words)
{
    struct hb_generation_fault fault;

    if (check(plan, &fault) != reason)
        fail_msg("%s (%s) instead of %s", hb_reject_text(fault.reason), fault.text,
                 hb_reject_text(reason));
    if (strstr(fault.text, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", fault.text, words);
}

/* Changes one thing of the plan. */
#define WITH(change) ((plan = plan_with_one_more()), (change), &plan)
#define IT           plan.service[ADDED]

static void prefixes_and_ranges(void **state)
{
    struct blob_plan plan;

    (void)state;
    take(WITH((void)0));
    take(WITH(set_ports(&IT, 0, 65535)));
    take(WITH(set_ports(&IT, 8000, 8999)));
    take(WITH(IT.protocol = HB_PROTOCOL_SCTP));
    refuse(WITH(IT.prefix_length = 0), HB_REJECT_SERVICE, "prefix length 0, must be 1 to 32");
    refuse(WITH(IT.prefix_length = 33), HB_REJECT_SERVICE, "prefix length 33");
    refuse(WITH(IT.prefix_length = 14), HB_REJECT_SERVICE, "bits behind the first 14");
    refuse(WITH(set_ports(&IT, 9, 8)), HB_REJECT_SERVICE, "ports 9 to 8");
    refuse(WITH(set_ports(&IT, 0, 8)), HB_REJECT_SERVICE, "port 0");
}

/* Ranges of one place nest or lie apart; those of other places do not matter. */
static void overlaps(void **state)
{
    static const struct {
        uint16_t first, last;
        const char *problem; /* NULL: none */
    } rows[] = {
        {8100, 8200, NULL},
        {7000, 9500, NULL},
        {9000, 9000, NULL},
        {8000, 8100, NULL},
        {8900, 8999, NULL},
        {8000, 8999, "has the address, protocol and port of service 2 (added)"},
        {7999, 8000, "ports 7999 to 8000 overlap ports 8000 to 8999 of service 2 (added) in part"},
        {8999, 9000, "in part"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct blob_plan plan = plan_with_one_more();
        uint32_t at = blob_add_service(&plan, "other", "198.18.0.0", HB_PROTOCOL_UDP, 1, 0);

        set_ports(&IT, 8000, 8999);
        set_ports(&plan.service[at], rows[i].first, rows[i].last);
        plan.service[at].prefix_length = 24;
        if (rows[i].problem == NULL)
            take(&plan);
        else
            refuse(&plan, HB_REJECT_SERVICE_DUPLICATE, rows[i].problem);
        plan.service[at].prefix_length = 23;
        take(&plan);
        plan.service[at].prefix_length = 24;
        plan.service[at].protocol = HB_PROTOCOL_TCP;
        take(&plan);
    }
}

/* One range within the other, and a third that lies in the outer one and cuts the inner one. */
static void an_overlap_within_a_range(void **state)
{
    struct blob_plan plan = plan_with_one_more();

    (void)state;
    set_ports(&IT, 0, 65535);
    for (uint16_t i = 0; i < 3; i++) {
        uint32_t at = blob_add_service(&plan, "more", "198.18.0.0", HB_PROTOCOL_UDP, 1, 0);

        plan.service[at].prefix_length = 24;
        set_ports(&plan.service[at], (uint16_t)(100 + 10 * i), (uint16_t)(109 + 10 * i));
    }
    take(&plan);
    set_ports(&plan.service[4], 105, 115);
    refuse(&plan, HB_REJECT_SERVICE_DUPLICATE, "in part");
}

static void affinity_and_limits(void **state)
{
    struct blob_plan plan;

    (void)state;
    take(WITH((IT.affinity = HB_AFFINITY_SOURCE, IT.affinity_prefix = 32)));
    take(WITH((IT.affinity = HB_AFFINITY_SOURCE_PORT, IT.affinity_prefix = 1)));
    refuse(WITH((IT.affinity = HB_AFFINITY_SOURCE, IT.affinity_prefix = 33)), HB_REJECT_SERVICE,
           "33 bits");
    refuse(WITH(IT.affinity = HB_AFFINITY_SOURCE), HB_REJECT_SERVICE, "0 bits, must be 1 to 32");
    refuse(WITH(IT.affinity_prefix = 8), HB_REJECT_SERVICE, "8 bits, must be 0 to 0");
    refuse(WITH(IT.affinity = 3), HB_REJECT_SERVICE, "affinity 3");
    take(WITH((IT.flows_max = 1, IT.new_flows_rate = 1)));
    take(WITH((IT.flows_max = 1, IT.tracking = HB_TRACKING_CHANGED)));
    refuse(WITH((IT.flows_max = 1, IT.tracking = HB_TRACKING_OFF)), HB_REJECT_SERVICE,
           "a limit on flows");
    refuse(WITH((IT.new_flows_rate = 1, IT.tracking = HB_TRACKING_OFF)), HB_REJECT_SERVICE,
           "a limit on new flows");
    take(WITH(
        (IT.new_flows_rate = 1, IT.tracking = HB_TRACKING_OFF, IT.protocol = HB_PROTOCOL_TCP)));
    refuse(WITH(IT.flags = 2), HB_REJECT_SERVICE, "flags 0x2");
}

static void add_prefix(struct blob_plan *plan, uint32_t list, const char *address, uint8_t length)
{
    struct hb_prefix_record *prefix = &plan->prefix[plan->prefixes++];

    *prefix = (struct hb_prefix_record){.list = list, .length = length};
    prefix->family = strchr(address, ':') != NULL ? HB_FAMILY_IPV6 : HB_FAMILY_IPV4;
    inet_pton(prefix->family == HB_FAMILY_IPV6 ? AF_INET6 : AF_INET, address, prefix->address);
}

static void lists_of_sources(void **state)
{
    struct blob_plan plan = plan_with_one_more(), good;

    (void)state;
    add_prefix(&plan, 1, "0.0.0.0", 0);
    add_prefix(&plan, 1, "10.0.0.0", 8);
    add_prefix(&plan, 1, "10.0.0.0", 24);
    add_prefix(&plan, 1, "2001:db8::", 32);
    add_prefix(&plan, 7, "10.0.0.0", 8);
    IT.prefix_list = 7;
    IT.flags = HB_SERVICE_DENY_OTHERS;
    take(&plan);
    good = plan;
    plan.service[0].prefix_list = 3;
    refuse(&plan, HB_REJECT_PREFIX, "names list 3");
    plan = good, IT.prefix_list = 0;
    refuse(&plan, HB_REJECT_PREFIX, "has none");
    plan = good, plan.prefix[1].list = 0;
    refuse(&plan, HB_REJECT_PREFIX, "list 0");
    plan = good, plan.prefix[2].length = 33;
    refuse(&plan, HB_REJECT_PREFIX, "length 33");
    plan = good, plan.prefix[2].length = 6;
    refuse(&plan, HB_REJECT_PREFIX, "bits behind it");
    plan = good, plan.prefix[2].length = 8;
    refuse(&plan, HB_REJECT_PREFIX, "sorted");
    plan = good, plan.prefix[4].list = 1;
    refuse(&plan, HB_REJECT_PREFIX, "sorted");
    plan = good, plan.prefix[4].allow = 2;
    refuse(&plan, HB_REJECT_PREFIX, "allow 2");
    plan = good, plan.prefix[3].family = 5;
    refuse(&plan, HB_REJECT_PREFIX, "family 5");
}

static void quic(void **state)
{
    struct blob_plan plan = plan_with_one_more(), good;

    (void)state;
    plan.quics = 3;
    plan.quic[0] =
        (struct hb_quic_record){.config_id = 0, .server_id_length = 1, .nonce_length = 4};
    plan.quic[1] = (struct hb_quic_record){
        .config_id = 6, .server_id_length = 15, .nonce_length = 4, .encrypted = 1, .key = {1}};
    plan.quic[2] =
        (struct hb_quic_record){.config_id = 6, .server_id_length = 8, .nonce_length = 8};
    IT.quic_first = 0;
    IT.quic_count = 2;
    plan.backend[0].server_id_length = plan.backend[1].server_id_length = 2;
    plan.backend[0].server_id[0] = 1;
    take(&plan);
    good = plan;
    plan.quic[0].config_id = 7;
    refuse(&plan, HB_REJECT_QUIC, "config id 7");
    plan = good, plan.quic[0].nonce_length = 3;
    refuse(&plan, HB_REJECT_QUIC, "nonce of 3");
    plan = good, plan.quic[0].server_id_length = 0;
    refuse(&plan, HB_REJECT_QUIC, "server id of 0");
    plan = good, plan.quic[1].nonce_length = 5;
    refuse(&plan, HB_REJECT_QUIC, "at most 19");
    plan = good, plan.quic[0].key[15] = 1;
    refuse(&plan, HB_REJECT_QUIC, "has no key");
    plan = good, IT.quic_first = 1;
    refuse(&plan, HB_REJECT_QUIC, "two QUIC records with config id 6");
    plan = good, IT.quic_first = 2;
    refuse(&plan, HB_REJECT_QUIC, "there are 3");
    plan = good, IT.quic_count = 8;
    refuse(&plan, HB_REJECT_QUIC, "there are 3");
    plan = good, IT.protocol = HB_PROTOCOL_TCP;
    refuse(&plan, HB_REJECT_QUIC, "must be 17");
    plan = good, plan.backend[0].server_id[0] = 0;
    refuse(&plan, HB_REJECT_BACKEND, "has the server id of another of its pool");
    plan = good, plan.backend[1].pool = 1; /* another pool may have it too */
    plan.backend[1].server_id[0] = 1;
    plan.pool[0].owner = (uint16_t[13]){1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    take(&plan);
    plan = good, plan.backend[0].server_id[2] = 1;
    refuse(&plan, HB_REJECT_BACKEND, "server id has 2 bytes or others behind");
    plan = good, plan.backend[0].server_id_length = 16;
    refuse(&plan, HB_REJECT_BACKEND, "server id has 16 bytes");
}

static uint32_t comparisons;

int __real_hb_prefix_compare(const struct hb_prefix_record *a, const struct hb_prefix_record *b);
int __wrap_hb_prefix_compare(const struct hb_prefix_record *a, const struct hb_prefix_record *b);

int __wrap_hb_prefix_compare(const struct hb_prefix_record *a, const struct hb_prefix_record *b)
{
    comparisons++;
    return __real_hb_prefix_compare(a, b);
}

/* A list is asked for its order once, however long it is. */
static void long_lists(void **state)
{
    enum { MANY = 100000 };
    struct hb_prefix_record *prefixes = calloc(MANY, sizeof(*prefixes));
    struct blob_plan plan = plan_with_one_more();

    (void)state;
    assert_non_null(prefixes);
    for (uint32_t i = 0; i < MANY; i++) {
        prefixes[i] = (struct hb_prefix_record){.list = 1, .family = 4, .length = 32};
        prefixes[i].address[0] = 10;
        prefixes[i].address[1] = (uint8_t)(i >> 16);
        prefixes[i].address[2] = (uint8_t)(i >> 8);
        prefixes[i].address[3] = (uint8_t)i;
    }
    plan.many = prefixes;
    plan.prefixes = MANY;
    IT.prefix_list = 1;
    comparisons = 0;
    take(&plan);
    assert_in_range(comparisons, 1, MANY);
    prefixes[MANY - 1] = prefixes[0];
    refuse(&plan, HB_REJECT_PREFIX, "prefix 99999: records must be sorted");
    free(prefixes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefixes_and_ranges),
        cmocka_unit_test(overlaps),
        cmocka_unit_test(an_overlap_within_a_range),
        cmocka_unit_test(affinity_and_limits),
        cmocka_unit_test(lists_of_sources),
        cmocka_unit_test(quic),
        cmocka_unit_test(long_lists),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
