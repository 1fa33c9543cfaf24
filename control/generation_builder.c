/* SPDX-License-Identifier: BSD-3-Clause */
#include "generation_builder.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

static uint64_t align(uint64_t offset)
{
    return (offset + HB_SECTION_ALIGN - 1) / HB_SECTION_ALIGN * HB_SECTION_ALIGN;
}

static bool is_held(const struct hb_held_tables *held, const uint8_t *digest)
{
    for (uint32_t i = 0; i < held->count; i++) {
        if (memcmp(held->digest[i], digest, HB_DIGEST_SIZE) == 0)
            return true;
    }
    return false;
}

/* Places a section at *end and moves *end behind it. */
static struct hb_section place(uint64_t *end, uint32_t count, uint32_t record_size)
{
    struct hb_section section = {align(*end), count, record_size};

    *end = section.offset + (uint64_t)count * record_size;
    return section;
}

static uint64_t lay_out(const struct hb_plan *plan, const struct hb_held_tables *held,
                        struct hb_generation_header *header, struct hb_table_record *tables)
{
    uint64_t end = sizeof(*header);

    header->services = place(&end, plan->services_count, sizeof(*plan->services));
    header->pools = place(&end, plan->pools_count, sizeof(*plan->pools));
    header->backends = place(&end, plan->backends_count, sizeof(*plan->backends));
    header->tables = place(&end, plan->tables_count, sizeof(*tables));
    header->prefixes = place(&end, plan->prefixes_count, sizeof(*plan->prefixes));
    header->quic = place(&end, plan->quic_count, sizeof(*plan->quic));
    header->sources = place(&end, plan->sources_count, sizeof(*plan->sources));
    for (uint32_t t = 0; t < plan->tables_count; t++) {
        memcpy(tables[t].digest, plan->tables[t].digest, HB_DIGEST_SIZE);
        tables[t].slots = plan->tables[t].slots;
        tables[t].flags = plan->tables[t].column.unsettled ? HB_TABLE_TWO_OWNERS : 0;
        if (is_held(held, tables[t].digest))
            continue;
        tables[t].offset = align(end);
        end = tables[t].offset + hb_table_body_bytes(tables[t].slots, tables[t].flags);
    }
    return align(end);
}

/* Copies `size` bytes and zeroes what is left of the last line. Nothing else of the blob is zeroed:
 * with ten thousand backends that would be another walk through megabytes. */
static void put(uint8_t *blob, uint64_t offset, const void *bytes, uint64_t size)
{
    uint64_t end = offset + size;

    if (size > 0)
        memcpy(blob + offset, bytes, size);
    memset(blob + end, 0, align(end) - end);
}

static void put_section(uint8_t *blob, struct hb_section section, const void *records)
{
    put(blob, section.offset, records, (uint64_t)section.count * section.record_size);
}

static void put_body(uint8_t *blob, uint64_t offset, const struct hb_plan_table *table)
{
    const struct hb_table_columns *column = &table->column;
    uint64_t next = hb_table_previous_offset(table->slots);
    uint64_t bytes = table->slots * sizeof(uint16_t);

    put(blob, offset, column->owner, bytes);
    if (column->unsettled == NULL)
        return;
    put(blob, offset + next, column->previous, bytes);
    put(blob, offset + 2 * next, column->unsettled, hb_table_unsettled_bytes(table->slots));
}

int hb_generation_encode(const struct hb_plan *plan, uint64_t number,
                         const struct hb_held_tables *held, void **blob, size_t *size)
{
    struct hb_generation_header header = {
        .magic = HB_GENERATION_MAGIC,
        .version = HB_GENERATION_VERSION,
        .header_size = sizeof(header),
        .number = number,
        .hash_key = plan->hash_key,
        .settings = plan->settings,
    };
    struct hb_table_record *tables = calloc(plan->tables_count + 1, sizeof(*tables));
    uint8_t *out = NULL;
    int error = -ENOMEM;

    if (tables == NULL)
        return -ENOMEM;
    memcpy(header.content, plan->content, sizeof(header.content));
    header.total_size = lay_out(plan, held, &header, tables);
    if (header.total_size > HB_GENERATION_SIZE_MAX) {
        error = -EFBIG;
        goto free_tables;
    }
    out = aligned_alloc(HB_SECTION_ALIGN, header.total_size);
    if (out == NULL)
        goto free_tables;
    put(out, 0, &header, sizeof(header));
    put_section(out, header.services, plan->services);
    put_section(out, header.pools, plan->pools);
    put_section(out, header.backends, plan->backends);
    put_section(out, header.tables, tables);
    put_section(out, header.prefixes, plan->prefixes);
    put_section(out, header.quic, plan->quic);
    put_section(out, header.sources, plan->sources);
    for (uint32_t t = 0; t < plan->tables_count; t++) {
        if (tables[t].offset != 0)
            put_body(out, tables[t].offset, &plan->tables[t]);
    }
    header.checksum = XXH3_64bits(out, header.total_size);
    memcpy(out, &header, sizeof(header));
    *blob = out;
    *size = header.total_size;
    error = 0;
free_tables:
    free(tables);
    return error;
}
