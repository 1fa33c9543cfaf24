/* SPDX-License-Identifier: BSD-3-Clause */
/* See service_extras.h. */
#include "service_extras.h"

#include <stdlib.h>
#include <string.h>

uint8_t hb_service_features(const struct hb_service_record *record)
{
    uint8_t features = 0;

    if (record->affinity != HB_AFFINITY_FLOW)
        features |= HB_HAS_AFFINITY;
    if (record->prefix_list != 0)
        features |= HB_HAS_LIST;
    if (record->new_flows_rate != 0 || record->flows_max != 0)
        features |= HB_HAS_LIMIT;
    if (record->quic_count != 0)
        features |= HB_HAS_QUIC;
    return features;
}

/* Where the parts stand. */
struct layout {
    size_t extras, sets, edges, quic, servers, bytes;
    uint8_t features;
};

static size_t place(size_t *end, size_t bytes)
{
    size_t at = (*end + 63) & ~(size_t)63;

    *end = at + bytes;
    return at;
}

/* The records of one list, which stand together. */
static const struct hb_prefix_record *find_list(const struct hb_service_sections *sections,
                                                uint32_t list, uint32_t *count)
{
    const struct hb_prefix_record *prefixes = sections->prefixes;
    uint32_t low = 0, high = sections->prefixes_count;

    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (prefixes[middle].list < list)
            low = middle + 1;
        else
            high = middle;
    }
    for (*count = 0; low + *count < sections->prefixes_count; ++*count)
        if (prefixes[low + *count].list != list)
            break;
    return prefixes + low;
}

static bool denies_others(const struct hb_service_record *record)
{
    return (record->flags & HB_SERVICE_DENY_OTHERS) != 0;
}

/* By list, then what is said about others, then as the services stand. */
static int compare_users(const void *left, const void *right, void *context)
{
    uint16_t i = *(const uint16_t *)left, j = *(const uint16_t *)right;
    const struct hb_service_record *services = context, *a = &services[i], *b = &services[j];

    if (a->prefix_list != b->prefix_list)
        return a->prefix_list < b->prefix_list ? -1 : 1;
    if (denies_others(a) != denies_others(b))
        return denies_others(a) ? 1 : -1;
    return (int)i - (int)j;
}

/* A set is built for the first service that has its list, with the same word about others. Notes
 * for each service which one that is; itself, where it has no list. */
static void find_first_users(const struct hb_service_sections *sections, uint16_t first[])
{
    const struct hb_service_record *services = sections->services;
    uint16_t order[HB_SERVICES_MAX];

    for (uint32_t i = 0; i < sections->services_count; i++)
        order[i] = first[i] = (uint16_t)i;
    qsort_r(order, sections->services_count, sizeof(order[0]), compare_users,
            (void *)(uintptr_t)services);
    for (uint32_t at = 1; at < sections->services_count; at++) {
        uint16_t before = order[at - 1], i = order[at];

        if (services[i].prefix_list != 0 &&
            services[i].prefix_list == services[before].prefix_list &&
            denies_others(&services[i]) == denies_others(&services[before]))
            first[i] = first[before];
    }
}

static struct layout lay_out(const struct hb_service_sections *sections)
{
    uint16_t first[HB_SERVICES_MAX];
    struct layout layout = {0};
    size_t edges = 0;
    uint32_t count;

    find_first_users(sections, first);
    for (uint32_t i = 0; i < sections->services_count; i++) {
        const struct hb_service_record *record = &sections->services[i];

        layout.features |= hb_service_features(record);
        if (record->prefix_list == 0 || first[i] != i)
            continue;
        const struct hb_prefix_record *prefixes = find_list(sections, record->prefix_list, &count);
        edges += hb_prefix_set_bytes(prefixes, count);
    }
    if (layout.features == 0)
        return layout;
    layout.extras =
        place(&layout.bytes, sections->services_count * sizeof(struct hb_service_extra));
    if ((layout.features & HB_HAS_LIST) != 0) {
        layout.sets = place(&layout.bytes, sections->services_count * sizeof(struct hb_prefix_set));
        layout.edges = place(&layout.bytes, edges);
    }
    if ((layout.features & HB_HAS_QUIC) != 0) {
        layout.quic = place(&layout.bytes, sections->quic_count * sizeof(struct hb_quic_config));
        layout.servers = place(&layout.bytes,
                               hb_quic_servers_bytes(sections->backends, sections->backends_count));
    }
    return layout;
}

size_t hb_service_extras_bytes(const struct hb_service_sections *sections)
{
    return lay_out(sections).bytes;
}

static void fill_affinity(struct hb_service_extra *extra, const struct hb_service_record *record)
{
    uint8_t mask[HB_ADDRESS_SIZE] = {0};

    extra->affinity = record->affinity;
    for (uint32_t bit = 0; bit < record->affinity_prefix; bit++)
        mask[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
    extra->source_mask[0] = hb_load64(mask);
    extra->source_mask[1] = hb_load64(mask + 8);
}

/* Each worker keeps to its part by itself. A second's worth of new flows may come at once. */
static void fill_limits(struct hb_service_extra *extra, const struct hb_service_record *record,
                        uint32_t workers)
{
    uint64_t flows = record->flows_max < UINT32_MAX ? record->flows_max : UINT32_MAX;

    extra->limits_rate = record->new_flows_rate != 0;
    extra->rate.token = HB_FLOW_TOKEN;
    extra->rate.depth = record->new_flows_rate * HB_FLOW_TOKEN / workers;
    extra->rate.step = (extra->rate.depth + 999) / 1000;
    if (extra->rate.depth < HB_FLOW_TOKEN)
        extra->rate.depth = HB_FLOW_TOKEN;
    extra->limits_flows = flows != 0;
    extra->flows_share = (uint32_t)(flows / workers);
    extra->flows_rest = (uint32_t)(flows % workers);
    if (extra->flows_share == 0) {
        extra->flows_share = 1;
        extra->flows_rest = 0;
    }
}

static void fill_lists(struct hb_service_extra *extras, struct hb_prefix_set *sets, uint8_t *edges,
                       const struct hb_service_sections *sections)
{
    uint16_t first[HB_SERVICES_MAX];

    find_first_users(sections, first);
    for (uint32_t i = 0; i < sections->services_count; i++) {
        const struct hb_service_record *record = &sections->services[i];
        const struct hb_prefix_record *prefixes;
        uint32_t count;

        if (record->prefix_list == 0)
            continue;
        extras[i].list = &sets[first[i]];
        if (first[i] != i)
            continue;
        prefixes = find_list(sections, record->prefix_list, &count);
        hb_prefix_set_build(&sets[i], edges, prefixes, count, !denies_others(record));
        edges += hb_prefix_set_bytes(prefixes, count);
    }
}

struct hb_service_extras hb_service_extras_build(void *memory,
                                                 const struct hb_service_sections *sections)
{
    struct layout layout = lay_out(sections);
    struct hb_service_extras built = {.features = layout.features};
    struct hb_service_extra *extras = memory;
    struct hb_quic_config *quic = (void *)((uint8_t *)memory + layout.quic);

    if (layout.features == 0)
        return built;
    memset(memory, 0, layout.bytes);
    for (uint32_t i = 0; i < sections->services_count; i++) {
        const struct hb_service_record *record = &sections->services[i];

        fill_affinity(&extras[i], record);
        fill_limits(&extras[i], record, sections->workers > 0 ? sections->workers : 1);
        for (uint32_t q = 0; q < record->quic_count; q++) {
            uint32_t at = record->quic_first + q;

            extras[i].quic_config[sections->quic[at].config_id] = (uint8_t)(q + 1);
        }
        extras[i].quic_first = record->quic_first;
    }
    if ((layout.features & HB_HAS_LIST) != 0)
        fill_lists(extras, (void *)((uint8_t *)memory + layout.sets),
                   (uint8_t *)memory + layout.edges, sections);
    if ((layout.features & HB_HAS_QUIC) != 0) {
        for (uint32_t i = 0; i < sections->quic_count; i++)
            hb_quic_config_prepare(&quic[i], &sections->quic[i]);
        built.quic = quic;
        built.servers = hb_quic_servers_build((uint8_t *)memory + layout.servers,
                                              sections->backends, sections->backends_count);
    }
    built.extra = extras;
    return built;
}
