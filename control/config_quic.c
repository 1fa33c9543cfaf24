/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config_quic.c: the keys of QUIC services: how connection ids name their server (QUIC-LB), and the
 * servers' ids.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_internal.h"

#define NONCE_MIN           4
#define NONCE_MAX           18
#define PLAIN_MIN           5
#define PLAIN_MAX           19 /* server id and nonce */
#define FIELD(type, member) .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)

static int line_of(const yaml_node_t *node)
{
    return (int)node->start_mark.line + 1;
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Pairs of hexadecimal digits; false when there is anything else, or more than `max` bytes. */
static bool read_hex(const char *text, uint8_t *bytes, size_t max, size_t *count)
{
    for (*count = 0; text[0] != '\0'; text += 2) {
        int high = digit_of(text[0]), low = high < 0 ? -1 : digit_of(text[1]);

        if (low < 0 || *count == max)
            return false;
        bytes[(*count)++] = (uint8_t)(high << 4 | low);
    }
    return *count > 0;
}

/* The value of a key is not repeated in a message: messages go to logs. */
static bool read_key(struct hb_config_reader *reader, const struct hb_config_key *key,
                     const yaml_node_t *node, const char *path, void *object)
{
    struct hb_quic_entry *entry = object;
    size_t count;

    if (node->type == YAML_SCALAR_NODE &&
        read_hex((const char *)node->data.scalar.value, entry->key, sizeof(entry->key), &count) &&
        count == sizeof(entry->key)) {
        entry->encrypted = true;
        return true;
    }
    hb_config_complain(reader, line_of(node), path, "expected %s", key->expected);
    return false;
}

bool hb_config_read_server_id(struct hb_config_reader *reader, const struct hb_config_key *key,
                              const yaml_node_t *node, const char *path, void *object)
{
    struct hb_backend_config *backend = object;
    char quoted[HB_CONFIG_QUOTED];
    size_t count = 0;

    if (node->type == YAML_SCALAR_NODE &&
        read_hex((const char *)node->data.scalar.value, backend->server_id,
                 sizeof(backend->server_id), &count)) {
        backend->server_id_length = (uint8_t)count;
        return true;
    }
    memset(backend->server_id, 0, sizeof(backend->server_id));
    hb_config_complain(reader, line_of(node), path, "expected %s, found \"%s\"", key->expected,
                       node->type == YAML_SCALAR_NODE
                           ? hb_config_quote((const char *)node->data.scalar.value, quoted)
                           : "a list or mapping");
    return false;
}

/* clang-format off */
static const struct hb_config_key keys[] = {
    {.name = "id", .type = HB_CONFIG_NUMBER, FIELD(struct hb_quic_entry, id),
     .expected = "a configuration id from 0 to 6", .min = 0, .max = 6, .required = true},
    {.name = "key", .type = HB_CONFIG_CUSTOM, FIELD(struct hb_quic_entry, key), .read = read_key,
     .expected = "an AES key of 32 hexadecimal digits, such as from: openssl rand -hex 16"},
    {.name = "nonce", .type = HB_CONFIG_NUMBER, FIELD(struct hb_quic_entry, nonce),
     .expected = "a length from 4 to 18 bytes", .min = NONCE_MIN, .max = NONCE_MAX, .preset = 8},
};
/* clang-format on */

const struct hb_config_schema hb_config_quic_schema = {
    .what = "a configuration of connection ids such as { id: 0, nonce: 8 }",
    .keys = keys,
    .keys_count = sizeof(keys) / sizeof(keys[0]),
    .size = sizeof(struct hb_quic_entry),
    .line_offset = offsetof(struct hb_quic_entry, line),
};

/* How long the server ids of a pool are; 0 after a complaint. */
static uint8_t find_length(struct hb_config_reader *reader, uint32_t index)
{
    const struct hb_config *config = reader->config;
    const struct hb_pool_config *pool = &config->pools[config->services[index].pool];
    uint8_t length = 0;
    char path[HB_CONFIG_PATH];

    snprintf(path, sizeof(path), "services[%u].quic", index);
    for (uint32_t b = 0; b < pool->backends_count; b++) {
        const struct hb_backend_config *backend = &pool->backends[b];

        if (backend->server_id_length == 0) {
            hb_config_complain(reader, backend->line, path,
                               "backend %s of pool %s has no \"server_id\", so no connection id "
                               "can name it; give it one",
                               backend->name, pool->name);
            return 0;
        }
        if (length != 0 && backend->server_id_length != length) {
            hb_config_complain(reader, backend->line, path,
                               "the server id of backend %s of pool %s has %u bytes, those of "
                               "others have %u; make all equally long",
                               backend->name, pool->name, backend->server_id_length, length);
            return 0;
        }
        length = backend->server_id_length;
    }
    return length;
}

static bool check_entry(struct hb_config_reader *reader, uint32_t index, uint32_t q, uint8_t length)
{
    const struct hb_service_config *service = &reader->config->services[index];
    const struct hb_quic_entry *entry = &service->quic[q];
    uint32_t both = (uint32_t)length + entry->nonce;
    char path[HB_CONFIG_PATH];

    snprintf(path, sizeof(path), "services[%u].quic[%u]", index, q);
    for (uint32_t other = 0; other < q; other++) {
        if (service->quic[other].id != entry->id)
            continue;
        hb_config_complain(reader, entry->line, path,
                           "id %u is that of the configuration at line %d already; use another",
                           entry->id, service->quic[other].line);
        return false;
    }
    if (both >= PLAIN_MIN && both <= PLAIN_MAX)
        return true;
    hb_config_complain(reader, entry->line, path,
                       "a nonce of %u and server ids of %u bytes make %u, but %d to %d fit a "
                       "connection id; change the nonce",
                       entry->nonce, length, both, PLAIN_MIN, PLAIN_MAX);
    return false;
}

static void fill_record(struct hb_quic_record *record, const struct hb_quic_entry *entry,
                        uint8_t length)
{
    *record = (struct hb_quic_record){.config_id = entry->id,
                                      .server_id_length = length,
                                      .nonce_length = entry->nonce,
                                      .encrypted = entry->encrypted};
    memcpy(record->key, entry->key, sizeof(record->key));
}

void hb_config_check_quic(struct hb_config_reader *reader, uint32_t index)
{
    struct hb_service_config *service = &reader->config->services[index];
    const struct hb_config_place *pool = hb_config_find_place(reader, &service->pool);
    char path[HB_CONFIG_PATH];
    uint8_t length;

    if (service->quic_count == 0 || service->pool >= reader->config->pools_count || pool == NULL ||
        strcmp(pool->text, reader->config->pools[service->pool].name) != 0)
        return;
    snprintf(path, sizeof(path), "services[%u].quic", index);
    if (service->protocol != HB_PROTOCOL_UDP) {
        if (service->protocol != 0)
            hb_config_complain(reader, service->line, path,
                               "QUIC goes over UDP; set \"protocol: udp\"");
        return;
    }
    length = find_length(reader, index);
    for (uint32_t q = 0; length != 0 && q < service->quic_count; q++) {
        if (check_entry(reader, index, q, length))
            fill_record(&service->rules.quic[service->rules.quic_count++], &service->quic[q],
                        length);
    }
}

static int compare_server_ids(const void *left, const void *right)
{
    const struct hb_backend_config *a = *(const struct hb_backend_config *const *)left;
    const struct hb_backend_config *b = *(const struct hb_backend_config *const *)right;
    int order = (int)a->server_id_length - (int)b->server_id_length;

    if (order == 0)
        order = memcmp(a->server_id, b->server_id, sizeof(a->server_id));
    return order != 0 ? order : (a > b) - (a < b);
}

/* A server id names one backend of its pool, backup pool included; two of the backup pool are that
 * pool's to complain about. */
void hb_config_check_server_ids(struct hb_config_reader *reader, uint32_t pool_index)
{
    const struct hb_pool_config *pool = &reader->config->pools[pool_index];
    const struct hb_backend_config **sorted = calloc(pool->backends_count + 1, sizeof(*sorted));
    uint32_t count = 0;
    char path[HB_CONFIG_PATH];

    if (sorted == NULL) {
        reader->no_memory = true;
        return;
    }
    for (uint32_t b = 0; b < pool->backends_count; b++) {
        if (pool->backends[b].server_id_length != 0)
            sorted[count++] = &pool->backends[b];
    }
    qsort(sorted, count, sizeof(*sorted), compare_server_ids);
    for (uint32_t i = 1; i < count; i++) {
        const struct hb_backend_config *first = sorted[i - 1], *again = sorted[i];

        if (first->server_id_length != again->server_id_length ||
            memcmp(first->server_id, again->server_id, sizeof(first->server_id)) != 0 ||
            (first->backup && again->backup))
            continue;
        snprintf(path, sizeof(path), "pools[%u].backends[%u].server_id", pool_index,
                 (uint32_t)(again - pool->backends));
        hb_config_complain(reader, again->line, path,
                           "it is the server id of backend \"%s\" at line %d already; choose "
                           "another",
                           first->name, first->line);
    }
    free(sorted);
}
