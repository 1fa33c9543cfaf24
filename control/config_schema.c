/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config_schema.c: what a configuration file may say, one row a key.
 *
 * The rows are read by one walk over the nodes of libyaml's document. libcyaml, which fills structs
 * from such a table too, does not keep where a value stood; here every complaint names a line, and
 * a duplicate names both.
 *
 * When a value is refused the walk goes on: its field keeps the preset (or stays empty), and its
 * place is marked as not good, so that the rules do not complain about what nobody wrote.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_internal.h"
#include "hashing/ring.h"

#define ROWS(rows)          .keys = (rows), .keys_count = sizeof(rows) / sizeof((rows)[0])
#define FIELD(type, member) .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)

#define EXPECT_NAME "a name of 1 to 63 letters, digits and . _ -"

static const struct hb_config_choice algorithms[] = {
    {"maglev", HB_ALGORITHM_MAGLEV},         {"ring", HB_ALGORITHM_RING},
    {"rendezvous", HB_ALGORITHM_RENDEZVOUS}, {"jump", HB_ALGORITHM_JUMP},
    {"modulo", HB_ALGORITHM_MODULO},         {NULL, 0},
};

static const struct hb_config_choice protocols[] = {
    {"tcp", HB_PROTOCOL_TCP},
    {"udp", HB_PROTOCOL_UDP},
    {"sctp", HB_PROTOCOL_SCTP},
    {NULL, 0},
};

static const struct hb_config_choice trackings[] = {
    {"all", HB_TRACKING_ALL},
    {"changed", HB_TRACKING_CHANGED},
    {"off", HB_TRACKING_OFF},
    {NULL, 0},
};

static const struct hb_config_choice affinities[] = {
    {"flow", HB_AFFINITY_FLOW},
    {"source", HB_AFFINITY_SOURCE},
    {"source_port", HB_AFFINITY_SOURCE_PORT},
    {NULL, 0},
};

/* clang-format off */
static const struct hb_config_key tunnel_keys[] = {
    {.name = "source", .type = HB_CONFIG_ADDRESS, FIELD(struct hb_config, tunnel_source),
     .expected = "the IPv4 address that tunnels to IPv4 backends come from",
     .check = hb_config_check_unicast_ipv4},
    {.name = "source6", .type = HB_CONFIG_ADDRESS, FIELD(struct hb_config, tunnel_source6),
     .expected = "the IPv6 address that tunnels to IPv6 backends come from",
     .check = hb_config_check_unicast_ipv6},
    {.name = "source_prefix", .type = HB_CONFIG_PREFIX, FIELD(struct hb_config, tunnel_prefix),
     .expected = "an IPv4 prefix from /8 to /31, such as 198.51.100.128/25",
     .check = hb_config_check_prefix_ipv4},
    {.name = "source_prefix6", .type = HB_CONFIG_PREFIX, FIELD(struct hb_config, tunnel_prefix6),
     .expected = "an IPv6 prefix from /64 to /127, such as \"2001:db8:0:2::/112\"",
     .check = hb_config_check_prefix_ipv6},
};

static const struct hb_config_key backend_keys[] = {
    {.name = "name", .type = HB_CONFIG_NAME, FIELD(struct hb_backend_config, name),
     .expected = EXPECT_NAME, .required = true},
    {.name = "address", .type = HB_CONFIG_ADDRESS, FIELD(struct hb_backend_config, address),
     .expected = "an IPv4 or IPv6 address", .check = hb_config_check_unicast, .required = true},
    {.name = "weight", .type = HB_CONFIG_NUMBER, FIELD(struct hb_backend_config, weight),
     .expected = "a whole number from 0 to 65535", .min = 0, .max = 65535, .preset = 1},
    {.name = "zone", .type = HB_CONFIG_NAME, FIELD(struct hb_backend_config, zone),
     .expected = EXPECT_NAME},
    {.name = "bucket", .type = HB_CONFIG_NUMBER, FIELD(struct hb_backend_config, bucket),
     .expected = "a whole number from 0 to 65534", .min = 0, .max = HB_BACKENDS_MAX - 1,
     .preset = HB_BUCKET_NONE},
    {.name = "server_id", .type = HB_CONFIG_CUSTOM, FIELD(struct hb_backend_config, server_id),
     .expected = "2 to 30 hexadecimal digits, in pairs", .read = hb_config_read_server_id},
};

static const struct hb_config_key api_keys[] = {
    {.name = "listen", .type = HB_CONFIG_SECRET, FIELD(struct hb_config, api.listen),
     .expected = "a loopback address and port such as 127.0.0.1:8080", .min = 8,
     .max = HB_NAME_SIZE - 1, .check = hb_config_check_loopback},
    {.name = "listen_may_change", .type = HB_CONFIG_BOOLEAN,
     FIELD(struct hb_config, api.listen_may_change), .expected = "true or false"},
    {.name = "others_may_read", .type = HB_CONFIG_BOOLEAN,
     FIELD(struct hb_config, api.others_may_read), .expected = "true or false"},
};

static const struct hb_config_schema api_schema = {
    .what = "a mapping such as { listen: 127.0.0.1:8080 }", ROWS(api_keys)};
static const struct hb_config_key punt_keys[] = {
    {.name = "rate", .type = HB_CONFIG_NUMBER, FIELD(struct hb_config, punt_rate),
     .expected = "packets a second for each worker, 0 (no limit) to 100000000", .min = 0,
     .max = 100000000, .preset = 100000},
};

static const struct hb_config_schema punt_schema = {.what = "a mapping of rate", ROWS(punt_keys)};
static const struct hb_config_schema tunnel_schema = {
    .what = "a mapping of source, source6, source_prefix and source_prefix6", ROWS(tunnel_keys)};
static const struct hb_config_schema backend_schema = {
    .what = "a backend such as { name: web1, address: 198.51.100.11 }", ROWS(backend_keys),
    .size = sizeof(struct hb_backend_config),
    .line_offset = offsetof(struct hb_backend_config, line)};

static const struct hb_config_key pool_keys[] = {
    {.name = "name", .type = HB_CONFIG_NAME, FIELD(struct hb_pool_config, name),
     .expected = EXPECT_NAME, .required = true},
    {.name = "algorithm", .type = HB_CONFIG_CHOICE, FIELD(struct hb_pool_config, algorithm),
     .expected = "maglev, ring, rendezvous, jump or modulo", .choices = algorithms,
     .preset = HB_ALGORITHM_MAGLEV},
    {.name = "table_size", .type = HB_CONFIG_NUMBER, FIELD(struct hb_pool_config, table_size),
     .expected = "a prime from 7 to 5000011, such as 65537", .check = hb_config_check_prime,
     .min = HB_TABLE_SLOTS_MIN, .max = HB_TABLE_SLOTS_MAX, .preset = 65537},
    {.name = "virtual_nodes", .type = HB_CONFIG_NUMBER,
     FIELD(struct hb_pool_config, options.virtual_nodes),
     .expected = "a whole number from 1 to 65535", .min = 1, .max = HB_RING_VIRTUAL_NODES_MAX},
    {.name = "ketama", .type = HB_CONFIG_BOOLEAN, FIELD(struct hb_pool_config, options.ketama),
     .expected = "true or false"},
    {.name = "jump_replacement", .type = HB_CONFIG_BOOLEAN,
     FIELD(struct hb_pool_config, options.jump_replacement), .expected = "true or false"},
    {.name = "bounded_load", .type = HB_CONFIG_FRACTION, FIELD(struct hb_pool_config, bounded_load),
     .expected = "a number from 0.01 to 10, such as 0.25 for a quarter above the mean",
     .min = 10000, .max = 10000000},
    {.name = "forwarding", .type = HB_CONFIG_CHOICE, FIELD(struct hb_pool_config, forwarding),
     .expected = "ipip, gue, gre, vxlan, l2, l3dsr, nat or full_nat", .choices = hb_config_forwardings,
     .preset = HB_FORWARDING_IPIP},
    {.name = "gue", .type = HB_CONFIG_MAPPING, FIELD(struct hb_pool_config, encap),
     .schema = &hb_config_gue_schema},
    {.name = "vxlan", .type = HB_CONFIG_MAPPING, FIELD(struct hb_pool_config, encap),
     .schema = &hb_config_vxlan_schema},
    {.name = "l3dsr", .type = HB_CONFIG_MAPPING, FIELD(struct hb_pool_config, encap),
     .schema = &hb_config_l3dsr_schema},
    {.name = "fragment", .type = HB_CONFIG_CHOICE, FIELD(struct hb_pool_config, encap.fragment),
     .expected = "drop, inner or outer", .choices = hb_config_fragments},
    {.name = "nat", .type = HB_CONFIG_MAPPING, FIELD(struct hb_pool_config, nat),
     .schema = &hb_config_nat_schema},
    {.name = "health", .type = HB_CONFIG_MAPPING, FIELD(struct hb_pool_config, health),
     .schema = &hb_config_health_schema},
    {.name = "failure", .type = HB_CONFIG_MAPPING, FIELD(struct hb_pool_config, failure),
     .schema = &hb_config_failure_schema},
    {.name = "slow_start", .type = HB_CONFIG_DURATION, FIELD(struct hb_pool_config, slow_start_ms),
     .expected = "a time from 1s to 60m, such as 60s", .min = 1000, .max = 3600000},
    {.name = "backends", .type = HB_CONFIG_LIST, FIELD(struct hb_pool_config, backends),
     .count_offset = offsetof(struct hb_pool_config, backends_count), .schema = &backend_schema,
     .expected = "a list of at least one backend", .max = HB_BACKENDS_MAX, .required = true},
};

static const struct hb_config_key service_keys[] = {
    {.name = "name", .type = HB_CONFIG_NAME, FIELD(struct hb_service_config, name),
     .expected = EXPECT_NAME, .required = true},
    {.name = "vip", .type = HB_CONFIG_CUSTOM, FIELD(struct hb_service_config, vip),
     .expected = "an IPv4 or IPv6 address, or a prefix such as 192.0.2.0/24",
     .read = hb_config_read_vip, .check = hb_config_check_unicast, .required = true},
    {.name = "protocol", .type = HB_CONFIG_CHOICE, FIELD(struct hb_service_config, protocol),
     .expected = "tcp, udp or sctp", .choices = protocols, .required = true},
    {.name = "port", .type = HB_CONFIG_CUSTOM, FIELD(struct hb_service_config, port),
     .expected = "a port from 1 to 65535, a range such as 8000-8999, or any",
     .read = hb_config_read_ports, .required = true},
    {.name = "pool", .type = HB_CONFIG_REFERENCE, FIELD(struct hb_service_config, pool),
     .expected = "the name of a pool", .required = true},
    {.name = "tracking", .type = HB_CONFIG_CHOICE, FIELD(struct hb_service_config, tracking),
     .expected = "all, changed or off", .choices = trackings, .preset = HB_TRACKING_ALL},
    {.name = "mss", .type = HB_CONFIG_NUMBER, FIELD(struct hb_service_config, mss_max),
     .expected = "bytes from 536 to 65495", .min = 536, .max = 65495},
    {.name = "affinity", .type = HB_CONFIG_CHOICE, FIELD(struct hb_service_config, rules.affinity),
     .expected = "flow, source or source_port", .choices = affinities},
    {.name = "affinity_prefix", .type = HB_CONFIG_NUMBER,
     FIELD(struct hb_service_config, rules.affinity_prefix),
     .expected = "a number of bits from 1 to 128", .min = 1, .max = 128},
    {.name = "allow", .type = HB_CONFIG_CUSTOM, FIELD(struct hb_service_config, rules.sources),
     .expected = "a list of source prefixes such as [ 203.0.113.0/24 ]",
     .read = hb_config_read_sources},
    {.name = "deny", .type = HB_CONFIG_CUSTOM, FIELD(struct hb_service_config, rules.sources),
     .expected = "a list of source prefixes such as [ 203.0.113.0/24 ]",
     .read = hb_config_read_sources},
    {.name = "new_flows", .type = HB_CONFIG_NUMBER, FIELD(struct hb_service_config, rules.new_flows),
     .expected = "a number of new flows a second, from 1 on", .min = 1, .max = UINT32_MAX},
    {.name = "flows", .type = HB_CONFIG_NUMBER, FIELD(struct hb_service_config, rules.flows),
     .expected = "a number of flows, from 1 on", .min = 1, .max = UINT32_MAX},
    {.name = "quic", .type = HB_CONFIG_LIST, FIELD(struct hb_service_config, quic),
     .count_offset = offsetof(struct hb_service_config, quic_count),
     .schema = &hb_config_quic_schema, .expected = "a list of 1 to 7 configurations",
     .max = HB_QUIC_CONFIGS_MAX},
};

static const struct hb_config_schema pool_schema = {
    .what = "a pool with name and backends", ROWS(pool_keys),
    .size = sizeof(struct hb_pool_config), .line_offset = offsetof(struct hb_pool_config, line)};
static const struct hb_config_schema service_schema = {
    .what = "a service with name, vip, protocol, port and pool", ROWS(service_keys),
    .size = sizeof(struct hb_service_config),
    .line_offset = offsetof(struct hb_service_config, line)};

static const struct hb_config_key root_keys[] = {
    {.name = "seed", .type = HB_CONFIG_SECRET, FIELD(struct hb_config, seed),
     .expected = "a secret of 8 to 63 characters, the same on all balancers of a fleet",
     .min = 8, .max = HB_NAME_SIZE - 1, .required = true},
    {.name = "tunnel", .type = HB_CONFIG_MAPPING, .schema = &tunnel_schema},
    {.name = "icmp", .type = HB_CONFIG_MAPPING, FIELD(struct hb_config, icmp),
     .schema = &hb_config_icmp_schema},
    {.name = "punt", .type = HB_CONFIG_MAPPING, .schema = &punt_schema},
    {.name = "settle_after", .type = HB_CONFIG_DURATION, FIELD(struct hb_config, settle_after_ms),
     .expected = "a time from 1s to 24h, such as 1h", .min = 1000, .max = 86400000},
    {.name = "keep_configurations", .type = HB_CONFIG_NUMBER,
     FIELD(struct hb_config, keep_configurations),
     .expected = "a whole number from 2 to 100", .min = 2, .max = 100},
    {.name = "api", .type = HB_CONFIG_MAPPING, .schema = &api_schema},
    {.name = "maintenance", .type = HB_CONFIG_MAPPING, FIELD(struct hb_config, maintenance),
     .schema = &hb_config_maintenance_schema},
    {.name = "pools", .type = HB_CONFIG_LIST, FIELD(struct hb_config, pools),
     .count_offset = offsetof(struct hb_config, pools_count), .schema = &pool_schema,
     .expected = "a list of at least one pool", .max = HB_POOLS_MAX, .required = true},
    {.name = "services", .type = HB_CONFIG_LIST, FIELD(struct hb_config, services),
     .count_offset = offsetof(struct hb_config, services_count), .schema = &service_schema,
     .expected = "a list of at least one service", .max = HB_SERVICES_MAX, .required = true},
};
static const struct hb_config_schema root_schema = {
    .what = "a mapping with seed, pools and services", ROWS(root_keys)};
/* clang-format on */

static int line_of(const yaml_node_t *node)
{
    return (int)node->start_mark.line + 1;
}

static void set_presets(const struct hb_config_schema *schema, uint8_t *object)
{
    for (uint32_t i = 0; i < schema->keys_count; i++) {
        const struct hb_config_key *key = &schema->keys[i];

        if (key->type == HB_CONFIG_MAPPING)
            set_presets(key->schema, object + key->offset);
        else if (key->preset != 0)
            hb_config_store(object + key->offset, key->size, key->preset);
    }
}

static const char *join_path(char *joined, const char *path, const char *name)
{
    snprintf(joined, HB_CONFIG_PATH, "%s%s%s", path, path[0] != '\0' ? "." : "", name);
    return joined;
}

static void complain_unknown(struct hb_config_reader *reader, const struct hb_config_schema *schema,
                             const yaml_node_t *node, const char *path)
{
    const char *name = (const char *)node->data.scalar.value;
    char quoted[HB_CONFIG_QUOTED], known[256] = "";

    hb_config_quote(name, quoted);
    for (uint32_t i = 0; i < schema->keys_count; i++) {
        const char *other = schema->keys[i].name;

        if (hb_config_is_close(other, name)) {
            hb_config_complain(reader, line_of(node), path,
                               "unknown key \"%s\"; did you mean \"%s\"?", quoted, other);
            return;
        }
        snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s",
                 i == 0 ? "" : (i + 1 == schema->keys_count ? " and " : ", "), other);
    }
    hb_config_complain(reader, line_of(node), path, "unknown key \"%s\"; the keys here are %s",
                       quoted, known);
}

static void read_mapping(struct hb_config_reader *reader, const struct hb_config_schema *schema,
                         const yaml_node_t *node, const char *path, uint8_t *object);

/* A list: refused as a whole when it is empty or over the limit, so nothing half-read remains. */
static void read_list(struct hb_config_reader *reader, const struct hb_config_key *key,
                      const yaml_node_t *node, const char *path, uint8_t *object)
{
    const struct hb_config_schema *schema = key->schema;
    const yaml_node_item_t *item;
    uint8_t *elements;
    size_t count;

    if (node->type != YAML_SEQUENCE_NODE) {
        hb_config_complain(reader, line_of(node), path, "expected %s; each starts with \"- \"",
                           key->expected);
        return;
    }
    item = node->data.sequence.items.start;
    count = (size_t)(node->data.sequence.items.top - item);
    if (count == 0 || count > key->max) {
        if (count == 0)
            hb_config_complain(reader, line_of(node), path, "the list is empty; expected %s",
                               key->expected);
        else
            hb_config_complain(reader, line_of(node), path,
                               "%zu entries, but the limit is %u; remove some", count, key->max);
        return;
    }
    elements = calloc(count, schema->size);
    if (elements == NULL) {
        reader->no_memory = true;
        return;
    }
    memcpy(object + key->offset, &elements, sizeof(elements));
    hb_config_store(object + key->count_offset, sizeof(uint32_t), (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        char element_path[HB_CONFIG_PATH];

        snprintf(element_path, sizeof(element_path), "%.160s[%zu]", path, i);
        set_presets(schema, elements + i * schema->size);
        read_mapping(reader, schema, yaml_document_get_node(reader->document, item[i]),
                     element_path, elements + i * schema->size);
    }
}

static void read_key(struct hb_config_reader *reader, const struct hb_config_key *key,
                     const yaml_node_t *node, const char *path, uint8_t *object)
{
    void *field = object + key->offset;
    bool good;

    switch (key->type) {
    case HB_CONFIG_CUSTOM:
        good = key->read(reader, key, node, path, object);
        if (good && key->check != NULL && !key->check(reader, line_of(node), path, field)) {
            memset(field, 0, key->size);
            good = false;
        }
        hb_config_add_place(reader, field, node, good);
        break;
    case HB_CONFIG_MAPPING:
        read_mapping(reader, key->schema, node, path, field);
        break;
    case HB_CONFIG_LIST:
        read_list(reader, key, node, path, object);
        break;
    default:
        good = hb_config_read_value(reader, key, node, path, field) &&
               (key->check == NULL || key->check(reader, line_of(node), path, field));
        hb_config_add_place(reader, field, node, good);
        if (!good) { /* nothing of it remains */
            memset(field, 0, key->size);
            if (key->preset != 0)
                hb_config_store(field, key->size, key->preset);
        }
    }
}

/* The index of the row that a key of the file belongs to, or keys_count after a complaint. */
static uint32_t find_key(struct hb_config_reader *reader, const struct hb_config_schema *schema,
                         const yaml_node_t *node, const char *path)
{
    if (node->type != YAML_SCALAR_NODE) {
        hb_config_complain(reader, line_of(node), path, "expected a key, found a list or mapping");
        return schema->keys_count;
    }
    for (uint32_t i = 0; i < schema->keys_count; i++) {
        if (strcmp((const char *)node->data.scalar.value, schema->keys[i].name) == 0)
            return i;
    }
    complain_unknown(reader, schema, node, path);
    return schema->keys_count;
}

static void read_mapping(struct hb_config_reader *reader, const struct hb_config_schema *schema,
                         const yaml_node_t *node, const char *path, uint8_t *object)
{
    int seen[HB_CONFIG_KEYS_MAX] = {0}; /* line of each key */
    char key_path[HB_CONFIG_PATH];
    int line = line_of(node);

    if (schema->line_offset != 0)
        memcpy(object + schema->line_offset, &line, sizeof(line));
    if (node->type != YAML_MAPPING_NODE) {
        hb_config_complain(reader, line, path, "expected %s", schema->what);
        return;
    }
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *name = yaml_document_get_node(reader->document, pair->key);
        uint32_t row = find_key(reader, schema, name, path);

        if (row == schema->keys_count)
            continue;
        join_path(key_path, path, schema->keys[row].name);
        if (seen[row] != 0) {
            hb_config_complain(reader, line_of(name), key_path,
                               "it is given already at line %d; remove one of them", seen[row]);
            continue;
        }
        seen[row] = line_of(name);
        read_key(reader, &schema->keys[row], yaml_document_get_node(reader->document, pair->value),
                 key_path, object);
    }
    for (uint32_t i = 0; i < schema->keys_count; i++) {
        if (schema->keys[i].required && seen[i] == 0)
            hb_config_complain(reader, line, path, "\"%s\" is missing; expected %s",
                               schema->keys[i].name, schema->keys[i].expected);
    }
}

void hb_config_apply_schema(struct hb_config_reader *reader)
{
    const yaml_node_t *root = yaml_document_get_root_node(reader->document);

    _Static_assert(sizeof(pool_keys) / sizeof(pool_keys[0]) <= HB_CONFIG_KEYS_MAX, "too small");
    set_presets(&root_schema, (uint8_t *)reader->config);
    read_mapping(reader, &root_schema, root, "", (uint8_t *)reader->config);
}
