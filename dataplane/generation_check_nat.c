/* SPDX-License-Identifier: BSD-3-Clause */
/* The checks of what NAT and full NAT need; see generation_check.h. */
#include <arpa/inet.h>
#include <stdlib.h>

#include "generation_check_internal.h"
#include "nat_map.h"

static const struct hb_source_record *sources(const struct hb_check *c)
{
    return (const void *)(c->blob + c->header->sources.offset);
}

static enum hb_reject check_source(struct hb_check *c, uint32_t i)
{
    const struct hb_source_record *source = &sources(c)[i];
    bool is_ipv4 = source->family == HB_FAMILY_IPV4;

    if ((!is_ipv4 && source->family != HB_FAMILY_IPV6) ||
        is_zero(source->address, HB_ADDRESS_SIZE) ||
        (is_ipv4 && !is_zero(source->address + 4, HB_ADDRESS_SIZE - 4)))
        return REFUSE_FIELD(c, HB_REJECT_SOURCE, i, source->address,
                            "source %u is not an address of its family (%u)", i, source->family);
    if (source->own > 1 || !is_zero(source->reserved, sizeof(source->reserved)) ||
        source->reserved64 != 0)
        return REFUSE_FIELD(c, HB_REJECT_SOURCE, i, &source->own,
                            "source %u: own %u, must be 0 or 1, and reserved bytes 0", i,
                            source->own);
    if (source->own && (source->port_first != 0 || source->port_last != 0))
        return REFUSE_FIELD(c, HB_REJECT_SOURCE, i, &source->port_first,
                            "source %u: an own address has no ports", i);
    if (!source->own && (source->port_first == 0 || source->port_last < source->port_first))
        return REFUSE_FIELD(c, HB_REJECT_SOURCE, i, &source->port_first,
                            "source %u: ports %u to %u, must be 1 to 65535 and in order", i,
                            source->port_first, source->port_last);
    return HB_REJECT_NONE;
}

enum hb_reject hb_check_sources(struct hb_check *c)
{
    uint32_t count = c->header->sources.count;

    for (uint32_t i = 0; i < count; i++) {
        enum hb_reject reason = check_source(c, i);

        if (reason != HB_REJECT_NONE)
            return reason;
    }
    for (uint32_t i = 0; i < c->header->pools.count; i++) {
        const struct hb_pool_record *pool = &pools(c)[i];

        if (pool->sources_first > count || pool->sources_count > count - pool->sources_first)
            return REFUSE_FIELD(c, HB_REJECT_SOURCE, i, &pool->sources_first,
                                "pool %u (%s): names sources %u and %u more, there are %u", i,
                                pool->name, pool->sources_first, pool->sources_count, count);
        for (uint32_t s = 0; s < pool->sources_count; s++)
            if (sources(c)[pool->sources_first + s].own)
                return REFUSE_FIELD(c, HB_REJECT_SOURCE, i, &pool->sources_first,
                                    "pool %u (%s): source %u is an own address of the balancer", i,
                                    pool->name, pool->sources_first + s);
    }
    return HB_REJECT_NONE;
}

/* Addresses are translated within one family. With NAT the service alone says what an answer's
 * source becomes, so it has one address and port; a session of full NAT knows what the client used.
 * SCTP's checksum covers the ports and can't be brought in line by differences. */
static enum hb_reject check_nat_service(struct hb_check *c, uint32_t i, const uint8_t *mode)
{
    const struct hb_service_record *service = &services(c)[i];

    if (mode[service->pool] == 0)
        return HB_REJECT_NONE;
    if (service->protocol != HB_PROTOCOL_TCP && service->protocol != HB_PROTOCOL_UDP)
        return REFUSE_FIELD(c, HB_REJECT_SERVICE, i, &service->protocol,
                            "service %u (%s): protocol %u, but its pool is NAT, which carries TCP "
                            "and UDP",
                            i, service->name, service->protocol);
    if (mode[service->pool] == HB_FORWARDING_NAT &&
        (service->prefix_length != hb_address_bits(service->family) ||
         service->port_last != service->port))
        return REFUSE_FIELD(c, HB_REJECT_SERVICE, i, &service->prefix_length,
                            "service %u (%s): a prefix or a range of ports, but its pool is NAT, "
                            "which needs one address and port; full NAT does not",
                            i, service->name);
    for (uint32_t b = 0; b < c->header->backends.count; b++)
        if (backends(c)[b].pool == service->pool && backends(c)[b].family != service->family)
            return REFUSE_FIELD(c, HB_REJECT_REWRITE, b, &backends(c)[b].family,
                                "backend %u (%s): family %u, but service %u (%s) has %u, and NAT "
                                "does not translate between them",
                                b, backends(c)[b].name, backends(c)[b].family, i, service->name,
                                service->family);
    return HB_REJECT_NONE;
}

/* Which pools have NAT backends, NAT if any has it; full NAT needs sources. */
static enum hb_reject find_nat_pools(struct hb_check *c, uint8_t *mode)
{
    for (uint32_t i = 0; i < c->header->backends.count; i++) {
        const struct hb_backend_record *backend = &backends(c)[i];
        const struct hb_pool_record *pool = &pools(c)[backend->pool];

        if (backend->rewrite.size == 0 || !hb_forwarding_is_nat(backend->rewrite.forwarding))
            continue;
        if (mode[backend->pool] != HB_FORWARDING_NAT) /* the stricter one */
            mode[backend->pool] = backend->rewrite.forwarding;
        if (backend->rewrite.forwarding == HB_FORWARDING_FULL_NAT && pool->sources_count == 0)
            return REFUSE_FIELD(c, HB_REJECT_SOURCE, i, &pool->sources_count,
                                "backend %u (%s): full NAT, but pool %s names no source addresses",
                                i, backend->name, pool->name);
    }
    return HB_REJECT_NONE;
}

/* Builds the map to see whether it can be. */
static enum hb_reject check_answers(struct hb_check *c)
{
    struct hb_nat_input input = hb_nat_input_of(c->header, 1);
    size_t bytes = (hb_nat_bytes(&input) + 63) & ~(size_t)63;
    struct hb_nat_conflict conflict;
    const struct hb_backend_record *backend;
    void *memory;
    bool good;

    if (bytes == 0)
        return HB_REJECT_NONE;
    memory = aligned_alloc(64, bytes);
    if (memory == NULL)
        return hb_check_refuse(c->fault, HB_REJECT_NO_MEMORY, 0, 0, "no memory to check NAT");
    memset(memory, 0, bytes);
    good = hb_nat_build(memory, &input, &conflict) != NULL;
    free(memory);
    if (good)
        return HB_REJECT_NONE;
    backend = &backends(c)[conflict.backend];
    return REFUSE_FIELD(c, HB_REJECT_REWRITE, conflict.backend, &backend->rewrite.nat_port,
                        "backend %u (%s): answers from its port %u would be of service %s and of "
                        "service %s; give each a pool with a nat port of its own, or use full NAT",
                        conflict.backend, backend->name,
                        ntohs(backend->rewrite.nat_port != 0 ? backend->rewrite.nat_port
                                                             : services(c)[conflict.second].port),
                        services(c)[conflict.first].name, services(c)[conflict.second].name);
}

enum hb_reject hb_check_nat(struct hb_check *c)
{
    uint8_t *mode = calloc((size_t)c->header->pools.count + 1, sizeof(*mode));
    enum hb_reject reason;

    if (mode == NULL)
        return hb_check_refuse(c->fault, HB_REJECT_NO_MEMORY, 0, 0, "no memory to check NAT");
    reason = find_nat_pools(c, mode);
    for (uint32_t i = 0; reason == HB_REJECT_NONE && i < c->header->services.count; i++)
        reason = check_nat_service(c, i, mode);
    free(mode);
    return reason != HB_REJECT_NONE ? reason : check_answers(c);
}
