/* SPDX-License-Identifier: BSD-3-Clause */
/* Services with prefixes and ranges of ports; service_nets.h tells how it works. */
#include "service_nets.h"

#include <stdlib.h>
#include <string.h>

#include "service_map.h"

enum { TCP, UDP, SCTP, PROTOCOLS };

/* The ports from `first` on, up to the next span's. */
struct span {
    uint16_t first; /* host byte order */
    uint16_t reserved;
    int32_t index; /* of the service; HB_SERVICE_NONE */
};

struct net {
    uint64_t address[2]; /* masked */
    uint8_t family;      /* 0: a free slot */
    uint8_t length;
    uint16_t count[PROTOCOLS]; /* spans */
    uint32_t first[PROTOCOLS];
};

struct length {
    uint64_t mask[2];
    uint8_t bits;
};

struct hb_service_nets {
    uint32_t slots_mask, shift;
    struct net *slots;
    struct span *spans;
    uint32_t spans_count;
    uint32_t lengths_count[2];  /* IPv4, IPv6 */
    struct length lengths[162]; /* IPv4 from 0 on, IPv6 from 33 on; longest first */
};
#define FIRST_IPV6 33

/* What building needs beside, behind all that stays. */
struct scratch {
    uint32_t *order;  /* indexes of the wide records, sorted */
    uint32_t *around; /* by place in `order`: the place of the range around this one */
};

static uint32_t count_slots(uint32_t count)
{
    uint32_t slots = 8;

    while (slots < 2 * (uint64_t)count)
        slots *= 2;
    return slots;
}

/* A range makes two spans at most, and each list begins with one more. */
size_t hb_service_nets_bytes(uint32_t count)
{
    if (count == 0)
        return 0;
    return sizeof(struct hb_service_nets) + count_slots(count) * sizeof(struct net) +
           3 * (size_t)count * sizeof(struct span) + 2 * (size_t)count * sizeof(uint32_t);
}

static int protocol_index(uint8_t protocol)
{
    switch (protocol) {
    case HB_PROTOCOL_TCP:
        return TCP;
    case HB_PROTOCOL_UDP:
        return UDP;
    case HB_PROTOCOL_SCTP:
        return SCTP;
    default:
        return PROTOCOLS;
    }
}

static struct length make_length(uint8_t bits)
{
    uint8_t bytes[HB_ADDRESS_SIZE] = {0};
    struct length length = {.bits = bits};

    for (uint32_t bit = 0; bit < bits; bit++)
        bytes[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
    length.mask[0] = hb_load64(bytes);
    length.mask[1] = hb_load64(bytes + 8);
    return length;
}

/* The slot of a prefix, or the free one where it would go. */
static struct net *probe(const struct hb_service_nets *nets, uint8_t family, uint8_t bits,
                         const uint64_t address[2])
{
    uint64_t mixed = hb_mix(address[0] ^ 0x9e3779b97f4a7c15, address[1] ^ 0xc2b2ae3d27d4eb4f);
    uint32_t kind = (uint32_t)family << 8 | bits;
    uint32_t at = (uint32_t)(((mixed ^ kind) * 0x165667b19e3779f9) >> nets->shift);

    for (;; at = (at + 1) & nets->slots_mask) {
        struct net *net = &nets->slots[at];

        if (net->family == 0 || (net->address[0] == address[0] && net->address[1] == address[1] &&
                                 net->family == family && net->length == bits))
            return net;
    }
}

/* By prefix, then protocol, then first port; of two ranges that begin together the larger first. */
static int compare_records(const void *left, const void *right, void *context)
{
    const struct hb_service_record *records = context;
    const struct hb_service_record *a = &records[*(const uint32_t *)left];
    const struct hb_service_record *b = &records[*(const uint32_t *)right];
    int order = (int)a->family - (int)b->family;

    if (order == 0)
        order = (int)a->prefix_length - (int)b->prefix_length;
    if (order == 0)
        order = memcmp(a->address, b->address, sizeof(a->address));
    if (order == 0)
        order = (int)a->protocol - (int)b->protocol;
    if (order == 0)
        order = (int)__builtin_bswap16(a->port) - (int)__builtin_bswap16(b->port);
    if (order == 0)
        order = (int)__builtin_bswap16(b->port_last) - (int)__builtin_bswap16(a->port_last);
    return order;
}

static bool are_alike(const struct hb_service_record *a, const struct hb_service_record *b)
{
    return a->family == b->family && a->prefix_length == b->prefix_length &&
           a->protocol == b->protocol && memcmp(a->address, b->address, sizeof(a->address)) == 0;
}

/* A prefix length that is in use. Records come with lengths growing, so that the newest goes in
 * front. */
static void add_length(struct hb_service_nets *nets, uint8_t family, uint8_t bits)
{
    bool ipv6 = family == HB_FAMILY_IPV6;
    struct length *lengths = nets->lengths + (ipv6 ? FIRST_IPV6 : 0);

    if (nets->lengths_count[ipv6] > 0 && lengths[0].bits == bits)
        return;
    memmove(lengths + 1, lengths, nets->lengths_count[ipv6] * sizeof(*lengths));
    lengths[0] = make_length(bits);
    nets->lengths_count[ipv6]++;
}

/* From port `first` on it is service `index`, until something else is said. */
static void add_span(struct hb_service_nets *nets, struct net *net, int protocol, uint32_t first,
                     int32_t index)
{
    struct span *last = &nets->spans[net->first[protocol] + net->count[protocol]] - 1;

    if (first > UINT16_MAX)
        return;
    if (net->count[protocol] > 0 && last->first == first) {
        last->index = index;
        return;
    }
    nets->spans[nets->spans_count++] = (struct span){.first = (uint16_t)first, .index = index};
    net->count[protocol]++;
}

#define NOTHING UINT32_MAX

/* The ranges of one prefix and protocol, `count` of them in order: a walk over the ports that keeps
 * the ranges which are open, innermost first. */
static void add_ranges(struct hb_service_nets *nets, const struct hb_service_record *records,
                       struct scratch scratch, uint32_t from, uint32_t count)
{
    const struct hb_service_record *first = &records[scratch.order[from]];
    uint64_t address[2] = {hb_load64(first->address), hb_load64(first->address + 8)};
    struct net *net = probe(nets, first->family, first->prefix_length, address);
    int protocol = protocol_index(first->protocol);
    uint32_t open = NOTHING;

    if (net->family == 0) {
        *net = (struct net){.address = {address[0], address[1]},
                            .family = first->family,
                            .length = first->prefix_length};
        add_length(nets, first->family, first->prefix_length);
    }
    net->first[protocol] = nets->spans_count;
    add_span(nets, net, protocol, 0, HB_SERVICE_NONE);
    for (uint32_t i = from; i <= from + count; i++) {
        uint32_t begin =
            i < from + count ? __builtin_bswap16(records[scratch.order[i]].port) : UINT32_MAX;

        while (open != NOTHING) {
            uint32_t end = __builtin_bswap16(records[scratch.order[open]].port_last);

            if (end >= begin)
                break;
            open = scratch.around[open];
            add_span(nets, net, protocol, end + 1,
                     open != NOTHING ? (int32_t)scratch.order[open] : HB_SERVICE_NONE);
        }
        if (i == from + count)
            break;
        scratch.around[i] = open;
        open = i;
        add_span(nets, net, protocol, begin, (int32_t)scratch.order[i]);
    }
}

static uint32_t list_wide(const struct hb_service_record *records, uint32_t count, uint32_t *order)
{
    uint32_t wide = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (!hb_service_is_wide(&records[i]))
            continue;
        if (order != NULL)
            order[wide] = i;
        wide++;
    }
    return wide;
}

struct hb_service_nets *hb_service_nets_build(void *memory, const struct hb_service_record *records,
                                              uint32_t count, uint32_t *duplicate)
{
    struct hb_service_nets *nets = memory;
    uint32_t wide = list_wide(records, count, NULL), slots = count_slots(wide), run;
    struct scratch scratch;

    memset(memory, 0, hb_service_nets_bytes(wide));
    nets->slots_mask = slots - 1;
    nets->shift = 64 - (uint32_t)__builtin_ctz(slots);
    nets->slots = (struct net *)(nets + 1);
    nets->spans = (struct span *)(nets->slots + slots);
    scratch.order = (uint32_t *)(nets->spans + 3 * (size_t)wide);
    scratch.around = scratch.order + wide;
    list_wide(records, count, scratch.order);
    qsort_r(scratch.order, wide, sizeof(*scratch.order), compare_records,
            (void *)(uintptr_t)records);
    for (uint32_t from = 0; from < wide; from += run) {
        for (run = 1; from + run < wide; run++) {
            uint32_t before = scratch.order[from + run - 1], at = scratch.order[from + run];

            if (!are_alike(&records[before], &records[at]))
                break;
            if (compare_records(&before, &at, (void *)(uintptr_t)records) == 0) {
                *duplicate = before > at ? before : at;
                return NULL;
            }
        }
        add_ranges(nets, records, scratch, from, run);
    }
    return nets;
}

/* The service whose span holds the port. */
static int32_t find_span(const struct hb_service_nets *nets, const struct net *net, int protocol,
                         uint16_t port)
{
    const struct span *spans = &nets->spans[net->first[protocol]];
    uint32_t low = 0, high = net->count[protocol]; /* the first one begins at port 0 */

    if (high == 0)
        return HB_SERVICE_NONE;
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;

        if (spans[middle].first <= port)
            low = middle;
        else
            high = middle;
    }
    return spans[low].index;
}

int32_t hb_service_nets_find(const struct hb_service_nets *nets, uint8_t family,
                             const uint64_t address[2], hb_be16 port, uint8_t protocol)
{
    bool ipv6 = family == HB_FAMILY_IPV6;
    const struct length *length = nets->lengths + (ipv6 ? FIRST_IPV6 : 0);
    int at = protocol_index(protocol);
    int32_t found = HB_SERVICE_NOT_VIP;

    for (uint32_t i = 0; i < nets->lengths_count[ipv6]; i++, length++) {
        uint64_t masked[2] = {address[0] & length->mask[0], address[1] & length->mask[1]};
        const struct net *net = probe(nets, family, length->bits, masked);

        if (net->family == 0)
            continue;
        found = HB_SERVICE_NONE;
        if (at != PROTOCOLS)
            found = find_span(nets, net, at, __builtin_bswap16(port));
        if (found >= 0)
            return found;
    }
    return found;
}
