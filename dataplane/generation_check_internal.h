/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * generation_check_internal.h: what the files of the check share: generation_check.c (header,
 * sections, pools, backends), generation_check_services.c (services and what belongs to them),
 * generation_check_nat.c (what NAT needs) and
 * generation_check_tables.c (tables and their slots).
 */
#ifndef HB_DATAPLANE_GENERATION_CHECK_INTERNAL_H
#define HB_DATAPLANE_GENERATION_CHECK_INTERNAL_H

#include "generation_check.h"

#define HB_NO_INDEX UINT16_MAX

/* What the checks pass from one to the next. */
struct hb_check {
    const uint8_t *blob;
    uint64_t size;
    const struct hb_generation_header *header;
    const struct hb_generation_limits *limits;
    struct hb_generation_fault *fault;
    uint16_t *index_of; /* backend id to its record, HB_NO_INDEX: not in this generation */
};

/* Fills *fault and returns `reason`. */
enum hb_reject hb_check_refuse(struct hb_generation_fault *fault, enum hb_reject reason,
                               uint32_t record, uint64_t offset, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Refuses with the offset of `field`, which lies in the blob. */
#define REFUSE_FIELD(c, reason, record, field, ...)                                                \
    hb_check_refuse((c)->fault, reason, record, (uint64_t)((const uint8_t *)(field) - (c)->blob),  \
                    __VA_ARGS__)

static inline const struct hb_service_record *services(const struct hb_check *c)
{
    return (const void *)(c->blob + c->header->services.offset);
}

static inline const struct hb_pool_record *pools(const struct hb_check *c)
{
    return (const void *)(c->blob + c->header->pools.offset);
}

static inline const struct hb_backend_record *backends(const struct hb_check *c)
{
    return (const void *)(c->blob + c->header->backends.offset);
}

static inline bool is_zero(const void *bytes, size_t count)
{
    const uint8_t *at = bytes;

    while (count > 0 && *at == 0)
        at++, count--;
    return count == 0;
}

/* An IPv4 address uses the first four bytes of its field only; "any" is no address of a service or
 * a backend. */
static inline bool is_address(const uint8_t address[HB_ADDRESS_SIZE], uint8_t family)
{
    if (is_zero(address, HB_ADDRESS_SIZE))
        return false;
    if (family == HB_FAMILY_IPV4)
        return is_zero(address + 4, HB_ADDRESS_SIZE - 4);
    return family == HB_FAMILY_IPV6;
}

/* One section or table body lies in the blob behind the header. Bytes do not overflow: counts are
 * 32 bits and records less than 2^31. */
static inline bool is_inside(const struct hb_check *c, uint64_t offset, uint64_t bytes)
{
    return offset % HB_SECTION_ALIGN == 0 && offset >= sizeof(*c->header) && offset <= c->size &&
           bytes <= c->size - offset;
}

/* Sources of full NAT, and whether answers can be told apart, in generation_check_nat.c. */
enum hb_reject hb_check_sources(struct hb_check *c);
enum hb_reject hb_check_nat(struct hb_check *c);
/* In generation_check_services.c. */
enum hb_reject hb_check_services(struct hb_check *c);
enum hb_reject hb_check_service_duplicates(struct hb_check *c);
enum hb_reject hb_check_prefixes(struct hb_check *c);
enum hb_reject hb_check_quic(struct hb_check *c);
enum hb_reject hb_check_service_pools(struct hb_check *c);
enum hb_reject hb_check_server_ids(struct hb_check *c); /* after the backends */

/* The last steps of the ladder, in generation_check_tables.c. */
enum hb_reject hb_check_table_indexes(struct hb_check *c);
enum hb_reject hb_check_tables(struct hb_check *c);
enum hb_reject hb_check_table_digests(struct hb_check *c);
enum hb_reject hb_check_tables_known(struct hb_check *c);
enum hb_reject hb_check_slots(struct hb_check *c);
enum hb_reject hb_check_previous(struct hb_check *c);

#endif
