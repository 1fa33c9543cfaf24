/* SPDX-License-Identifier: BSD-3-Clause */
/* The checks of a generation's services, lists of sources and QUIC configurations; see
 * generation_check.h. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "generation_check_internal.h"
#include "prefix_set.h"

#define MSS_MIN          88u /* bytes; smaller segments are nearly all headers */
#define FLAGS_KNOWN      HB_SERVICE_DENY_OTHERS
#define QUIC_CONFIGS_MAX 7 /* ids 0 to 6 */
#define QUIC_NONCE_MIN   4
#define QUIC_PLAIN_MIN   5
#define QUIC_PLAIN_MAX   19 /* server id and nonce */
#define SERVER_ID_MAX    15

#define REFUSE_SERVICE(c, reason, i, field, format, ...)                                           \
    REFUSE_FIELD(c, reason, i, &services(c)[i].field, "service %u (%s): " format, i,               \
                 services(c)[i].name, __VA_ARGS__)

static const struct hb_prefix_record *prefixes(const struct hb_check *c)
{
    return (const void *)(c->blob + c->header->prefixes.offset);
}

static const struct hb_quic_record *quics(const struct hb_check *c)
{
    return (const void *)(c->blob + c->header->quic.offset);
}

/* No bit is set behind the prefix. */
static bool is_prefix(const uint8_t address[HB_ADDRESS_SIZE], uint32_t length)
{
    for (uint32_t bit = length; bit < 8 * HB_ADDRESS_SIZE; bit++)
        if ((address[bit / 8] & 0x80 >> bit % 8) != 0)
            return false;
    return true;
}

static enum hb_reject check_address(struct hb_check *c, uint32_t i)
{
    const struct hb_service_record *service = &services(c)[i];

    if (service->family != HB_FAMILY_IPV4 && service->family != HB_FAMILY_IPV6)
        return REFUSE_SERVICE(c, HB_REJECT_SERVICE, i, family, "family %u, must be 4 or 6",
                              service->family);
    if (!is_address(service->address, service->family))
        return REFUSE_SERVICE(c, HB_REJECT_SERVICE, i, address, "the VIP is not an IPv%u address",
                              service->family);
    if (service->prefix_length == 0 || service->prefix_length > hb_address_bits(service->family))
        return REFUSE_SERVICE(c, HB_REJECT_SERVICE, i, prefix_length,
                              "prefix length %u, must be 1 to %u", service->prefix_length,
                              hb_address_bits(service->family));
    if (!is_prefix(service->address, service->prefix_length))
        return REFUSE_SERVICE(c, HB_REJECT_SERVICE, i, address,
                              "bits behind the first %u of its VIP are set",
                              service->prefix_length);
    return HB_REJECT_NONE;
}

/* Port 0 is no service's but one that takes any port. */
static enum hb_reject check_ports(struct hb_check *c, uint32_t i)
{
    const struct hb_service_record *service = &services(c)[i];
    uint16_t first = __builtin_bswap16(service->port), last = __builtin_bswap16(service->port_last);

    if (service->protocol != HB_PROTOCOL_TCP && service->protocol != HB_PROTOCOL_UDP &&
        service->protocol != HB_PROTOCOL_SCTP)
        return REFUSE_SERVICE(c, HB_REJECT_SERVICE, i, protocol,
                              "protocol %u, must be 6 (TCP), 17 (UDP) or 132 (SCTP)",
                              service->protocol);
    if (first == 0 && last != UINT16_MAX)
        return REFUSE_SERVICE(c, HB_REJECT_SERVICE, i, port, "port %u, must be 1 to 65535", 0);
    if (last < first)
        return REFUSE_SERVICE(c, HB_REJECT_SERVICE, i, port_last,
                              "ports %u to %u, the first must not be above the last", first, last);
    return HB_REJECT_NONE;
}

static enum hb_reject check_id(struct hb_check *c, uint32_t i)
{
    const struct hb_service_record *service = &services(c)[i];

    if (service->id >= c->limits->services_max)
        return REFUSE_SERVICE(c, HB_REJECT_SERVICE, i, id,
                              "id %u, this dataplane counts ids below %u", service->id,
                              c->limits->services_max);
    if (i > 0 && service->id <= services(c)[i - 1].id)
        return REFUSE_SERVICE(c, HB_REJECT_SERVICE, i, id,
                              "id %u follows id %u; records must be sorted by unique ids",
                              service->id, services(c)[i - 1].id);
    if (service->tracking >= HB_TRACKINGS)
        return REFUSE_SERVICE(c, HB_REJECT_SERVICE, i, tracking,
                              "tracking %u, must be 0 (all), 1 (changed) or 2 (off)",
                              service->tracking);
    return HB_REJECT_NONE;
}

static enum hb_reject check_affinity(struct hb_check *c, uint32_t i)
{
    const struct hb_service_record *service = &services(c)[i];
    uint32_t least = service->affinity != HB_AFFINITY_FLOW;
    uint32_t most = least != 0 ? hb_address_bits(service->family) : 0;

    if (service->affinity >= HB_AFFINITIES)
        return REFUSE_SERVICE(c, HB_REJECT_SERVICE, i, affinity,
                              "affinity %u, must be 0 (flow), 1 (source) or 2 (source and port)",
                              service->affinity);
    if (service->affinity_prefix < least || service->affinity_prefix > most)
        return REFUSE_SERVICE(c, HB_REJECT_SERVICE, i, affinity_prefix,
                              "affinity %u by a prefix of %u bits, must be %u to %u",
                              service->affinity, service->affinity_prefix, least, most);
    return HB_REJECT_NONE;
}

/* Limits need to know which packet begins a flow: by its entry, or by a SYN. */
static enum hb_reject check_limits(struct hb_check *c, uint32_t i)
{
    const struct hb_service_record *service = &services(c)[i];
    bool has_entries =
        service->tracking == HB_TRACKING_ALL ||
        (service->protocol != HB_PROTOCOL_TCP && service->tracking == HB_TRACKING_CHANGED);

    if (service->mss_max != 0 &&
        (service->protocol != HB_PROTOCOL_TCP || service->mss_max < MSS_MIN))
        return REFUSE_SERVICE(c, HB_REJECT_SERVICE, i, mss_max,
                              "MSS %u, must be 0, or %u and more for TCP", service->mss_max,
                              MSS_MIN);
    if (service->flows_max != 0 && !has_entries)
        return REFUSE_SERVICE(c, HB_REJECT_SERVICE, i, flows_max,
                              "a limit on flows with tracking %u, which needs 0 (all)",
                              service->tracking);
    if (service->new_flows_rate != 0 && !has_entries && service->protocol != HB_PROTOCOL_TCP)
        return REFUSE_SERVICE(c, HB_REJECT_SERVICE, i, new_flows_rate,
                              "a limit on new flows with protocol %u and without tracking",
                              service->protocol);
    return HB_REJECT_NONE;
}

static enum hb_reject check_rest(struct hb_check *c, uint32_t i)
{
    const struct hb_service_record *service = &services(c)[i];

    if ((service->flags & ~FLAGS_KNOWN) != 0)
        return REFUSE_SERVICE(c, HB_REJECT_SERVICE, i, flags,
                              "flags %#x are set, this dataplane knows %#x", service->flags,
                              FLAGS_KNOWN);
    if (!is_zero(service->reserved, sizeof(service->reserved)))
        return REFUSE_SERVICE(c, HB_REJECT_SERVICE, i, reserved, "reserved bytes are not zero%s",
                              "");
    return HB_REJECT_NONE;
}

enum hb_reject hb_check_services(struct hb_check *c)
{
    static enum hb_reject (*const steps[])(struct hb_check *, uint32_t) = {
        check_address, check_ports, check_id, check_affinity, check_limits, check_rest};
    enum hb_reject reason = HB_REJECT_NONE;

    for (uint32_t i = 0; i < c->header->services.count; i++)
        for (size_t s = 0; s < sizeof(steps) / sizeof(steps[0]) && reason == HB_REJECT_NONE; s++)
            reason = steps[s](c, i);
    return reason;
}

/* By family, prefix and protocol. */
static int compare_places(const struct hb_service_record *a, const struct hb_service_record *b)
{
    int order = (int)a->family - (int)b->family;

    if (order == 0)
        order = memcmp(a->address, b->address, sizeof(a->address));
    if (order == 0)
        order = (int)a->prefix_length - (int)b->prefix_length;
    return order != 0 ? order : (int)a->protocol - (int)b->protocol;
}

static uint16_t first_port(const struct hb_service_record *service)
{
    return __builtin_bswap16(service->port);
}

static uint16_t last_port(const struct hb_service_record *service)
{
    return __builtin_bswap16(service->port_last);
}

/* Then by the first port; of two ranges that begin together the larger comes first. */
static int compare_services(const void *left, const void *right)
{
    const struct hb_service_record *a = *(const struct hb_service_record *const *)left;
    const struct hb_service_record *b = *(const struct hb_service_record *const *)right;
    int order = compare_places(a, b);

    if (order == 0)
        order = (int)first_port(a) - (int)first_port(b);
    return order != 0 ? order : (int)last_port(b) - (int)last_port(a);
}

static enum hb_reject refuse_pair(struct hb_check *c, const struct hb_service_record *a,
                                  const struct hb_service_record *b)
{
    const struct hb_service_record *first = a < b ? a : b, *second = a < b ? b : a;
    uint32_t i = (uint32_t)(second - services(c)), other = (uint32_t)(first - services(c));
    bool same = compare_services(&a, &b) == 0;

    if (same)
        return REFUSE_SERVICE(c, HB_REJECT_SERVICE_DUPLICATE, i, address,
                              "has the address, protocol and port of service %u (%s)", other,
                              first->name);
    return REFUSE_SERVICE(c, HB_REJECT_SERVICE_DUPLICATE, i, port,
                          "ports %u to %u overlap ports %u to %u of service %u (%s) in part",
                          first_port(second), last_port(second), first_port(first),
                          last_port(first), other, first->name);
}

/* Ranges of one place nest or lie apart. `around` keeps, for each place of the sorted list, the
 * range that it lies in. */
enum hb_reject hb_check_service_duplicates(struct hb_check *c)
{
    uint32_t count = c->header->services.count, open = UINT32_MAX;
    const struct hb_service_record **sorted = calloc(count + 1, sizeof(*sorted));
    uint32_t *around = calloc(count + 1, sizeof(*around));
    enum hb_reject reason = HB_REJECT_NONE;

    if (sorted == NULL || around == NULL)
        reason = hb_check_refuse(c->fault, HB_REJECT_NO_MEMORY, 0, 0,
                                 "no memory to compare %u services", count);
    for (uint32_t i = 0; i < count && reason == HB_REJECT_NONE; i++)
        sorted[i] = &services(c)[i];
    if (reason == HB_REJECT_NONE)
        qsort(sorted, count, sizeof(*sorted), compare_services);
    for (uint32_t i = 0; i < count && reason == HB_REJECT_NONE; i++) {
        while (open != UINT32_MAX && (compare_places(sorted[open], sorted[i]) != 0 ||
                                      last_port(sorted[open]) < first_port(sorted[i])))
            open = around[open];
        if (open != UINT32_MAX && (compare_services(&sorted[open], &sorted[i]) == 0 ||
                                   last_port(sorted[open]) < last_port(sorted[i])))
            reason = refuse_pair(c, sorted[open], sorted[i]);
        around[i] = open;
        open = i;
    }
    free(sorted);
    free(around);
    return reason;
}

#define REFUSE_PREFIX(c, i, field, ...)                                                            \
    REFUSE_FIELD(c, HB_REJECT_PREFIX, i, &prefixes(c)[i].field, __VA_ARGS__)

static enum hb_reject check_prefix(struct hb_check *c, uint32_t i)
{
    const struct hb_prefix_record *prefix = &prefixes(c)[i], *before = prefix - 1;

    if (prefix->list == 0)
        return REFUSE_PREFIX(c, i, list, "prefix %u: list 0, lists are numbered from 1 on", i);
    if (prefix->family != HB_FAMILY_IPV4 && prefix->family != HB_FAMILY_IPV6)
        return REFUSE_PREFIX(c, i, family, "prefix %u: family %u, must be 4 or 6", i,
                             prefix->family);
    if (prefix->length > hb_address_bits(prefix->family) ||
        !is_prefix(prefix->address, prefix->length))
        return REFUSE_PREFIX(c, i, length,
                             "prefix %u: length %u is above %u, or bits behind it are set", i,
                             prefix->length, hb_address_bits(prefix->family));
    if (prefix->allow > 1 || prefix->reserved32 != 0 ||
        !is_zero(prefix->reserved, sizeof(prefix->reserved)))
        return REFUSE_PREFIX(c, i, allow, "prefix %u: allow %u must be 0 or 1, the rest zero", i,
                             prefix->allow);
    if (i > 0 && (prefix->list < before->list ||
                  (prefix->list == before->list && hb_prefix_compare(before, prefix) >= 0)))
        return REFUSE_PREFIX(c, i, list,
                             "prefix %u: records must be sorted by list, family, address and "
                             "length, each once",
                             i);
    return HB_REJECT_NONE;
}

static bool has_list(const struct hb_check *c, uint32_t list)
{
    uint32_t low = 0, high = c->header->prefixes.count;

    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (prefixes(c)[middle].list < list)
            low = middle + 1;
        else
            high = middle;
    }
    return low < c->header->prefixes.count && prefixes(c)[low].list == list;
}

enum hb_reject hb_check_prefixes(struct hb_check *c)
{
    enum hb_reject reason = HB_REJECT_NONE;

    for (uint32_t i = 0; i < c->header->prefixes.count && reason == HB_REJECT_NONE; i++)
        reason = check_prefix(c, i);
    for (uint32_t i = 0; i < c->header->services.count && reason == HB_REJECT_NONE; i++) {
        const struct hb_service_record *service = &services(c)[i];

        if (service->prefix_list == 0 && (service->flags & HB_SERVICE_DENY_OTHERS) != 0)
            reason =
                REFUSE_SERVICE(c, HB_REJECT_PREFIX, i, flags,
                               "denies sources that its list does not match, and has %s", "none");
        else if (service->prefix_list != 0 && !has_list(c, service->prefix_list))
            reason = REFUSE_SERVICE(c, HB_REJECT_PREFIX, i, prefix_list,
                                    "names list %u, which no prefix is of", service->prefix_list);
    }
    return reason;
}

#define REFUSE_QUIC(c, i, field, ...)                                                              \
    REFUSE_FIELD(c, HB_REJECT_QUIC, i, &quics(c)[i].field, __VA_ARGS__)

static enum hb_reject check_config(struct hb_check *c, uint32_t i)
{
    const struct hb_quic_record *quic = &quics(c)[i];
    uint32_t both = (uint32_t)quic->server_id_length + quic->nonce_length;

    if (quic->config_id >= QUIC_CONFIGS_MAX)
        return REFUSE_QUIC(c, i, config_id, "QUIC record %u: config id %u, must be 0 to 6", i,
                           quic->config_id);
    if (quic->server_id_length == 0 || quic->server_id_length > SERVER_ID_MAX ||
        quic->nonce_length < QUIC_NONCE_MIN || both < QUIC_PLAIN_MIN || both > QUIC_PLAIN_MAX)
        return REFUSE_QUIC(c, i, server_id_length,
                           "QUIC record %u: server id of %u and nonce of %u bytes, must be 1 to 15 "
                           "and at least 4, at most 19 together",
                           i, quic->server_id_length, quic->nonce_length);
    if (quic->encrypted > 1 || (quic->encrypted == 0 && !is_zero(quic->key, sizeof(quic->key))))
        return REFUSE_QUIC(c, i, encrypted,
                           "QUIC record %u: encrypted %u must be 0 or 1, and 0 has no key", i,
                           quic->encrypted);
    if (quic->reserved != 0 || quic->reserved64 != 0)
        return REFUSE_QUIC(c, i, reserved, "QUIC record %u: reserved bytes are not zero", i);
    return HB_REJECT_NONE;
}

/* The run of configurations that a service names. */
static enum hb_reject check_run(struct hb_check *c, uint32_t i)
{
    const struct hb_service_record *service = &services(c)[i];
    uint32_t count = c->header->quic.count, seen = 0;

    if (service->quic_count == 0 && service->quic_first == 0)
        return HB_REJECT_NONE;
    if (service->quic_count == 0 || service->quic_count > QUIC_CONFIGS_MAX ||
        service->quic_first > count || service->quic_count > count - service->quic_first)
        return REFUSE_SERVICE(c, HB_REJECT_QUIC, i, quic_count,
                              "names QUIC records %u on, %u of them; there are %u",
                              service->quic_first, service->quic_count, count);
    if (service->protocol != HB_PROTOCOL_UDP)
        return REFUSE_SERVICE(c, HB_REJECT_QUIC, i, protocol,
                              "QUIC over protocol %u, must be 17 (UDP)", service->protocol);
    for (uint32_t q = 0; q < service->quic_count; q++) {
        uint32_t bit = 1u << quics(c)[service->quic_first + q].config_id;

        if ((seen & bit) != 0)
            return REFUSE_SERVICE(c, HB_REJECT_QUIC, i, quic_first,
                                  "names two QUIC records with config id %u",
                                  quics(c)[service->quic_first + q].config_id);
        seen |= bit;
    }
    return HB_REJECT_NONE;
}

enum hb_reject hb_check_quic(struct hb_check *c)
{
    enum hb_reject reason = HB_REJECT_NONE;

    for (uint32_t i = 0; i < c->header->quic.count && reason == HB_REJECT_NONE; i++)
        reason = check_config(c, i);
    for (uint32_t i = 0; i < c->header->services.count && reason == HB_REJECT_NONE; i++)
        reason = check_run(c, i);
    return reason;
}

enum hb_reject hb_check_service_pools(struct hb_check *c)
{
    uint32_t count = c->header->pools.count;

    for (uint32_t i = 0; i < c->header->services.count; i++)
        if (services(c)[i].pool >= count)
            return REFUSE_SERVICE(c, HB_REJECT_POOL_INDEX, i, pool,
                                  "names pool %u, there are %u pools", services(c)[i].pool, count);
    for (uint32_t i = 0; i < c->header->services.count; i++)
        if (services(c)[i].tracking != HB_TRACKING_ALL &&
            pools(c)[services(c)[i].pool].bounded_load != 0)
            return REFUSE_SERVICE(c, HB_REJECT_SERVICE, i, tracking,
                                  "tracking %u, but pool %u bounds its load, which needs 0 (all)",
                                  services(c)[i].tracking, services(c)[i].pool);
    return HB_REJECT_NONE;
}

static int compare_server_ids(const void *left, const void *right)
{
    const struct hb_backend_record *a = *(const struct hb_backend_record *const *)left;
    const struct hb_backend_record *b = *(const struct hb_backend_record *const *)right;

    if (a->pool != b->pool)
        return a->pool < b->pool ? -1 : 1;
    if (a->server_id_length != b->server_id_length)
        return (int)a->server_id_length - (int)b->server_id_length;
    return memcmp(a->server_id, b->server_id, sizeof(a->server_id));
}

/* A server id names one backend of its pool. */
enum hb_reject hb_check_server_ids(struct hb_check *c)
{
    uint32_t count = 0;
    const struct hb_backend_record **sorted =
        calloc((size_t)c->header->backends.count + 1, sizeof(*sorted));
    enum hb_reject reason = HB_REJECT_NONE;

    if (sorted == NULL)
        return hb_check_refuse(c->fault, HB_REJECT_NO_MEMORY, 0, 0,
                               "no memory to compare %u backends", c->header->backends.count);
    for (uint32_t i = 0; i < c->header->backends.count; i++)
        if (backends(c)[i].server_id_length != 0)
            sorted[count++] = &backends(c)[i];
    qsort(sorted, count, sizeof(*sorted), compare_server_ids);
    for (uint32_t i = 1; i < count && reason == HB_REJECT_NONE; i++)
        if (compare_server_ids(&sorted[i - 1], &sorted[i]) == 0)
            reason = REFUSE_FIELD(
                c, HB_REJECT_BACKEND, (uint32_t)(sorted[i] - backends(c)), sorted[i]->server_id,
                "backend %u (%s): has the server id of another of its pool (%s)",
                (unsigned)(sorted[i] - backends(c)), sorted[i]->name, sorted[i - 1]->name);
    free(sorted);
    return reason;
}
