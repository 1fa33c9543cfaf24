/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config_health.c: a pool's `health:`, its keys, their values and what must hold between them.
 *
 * A key that the check's type does not look at is an error: the check would prove less than its
 * author thinks.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_internal.h"

#define FIELD(member)                                                                              \
    .offset = offsetof(struct hb_health_config, member),                                           \
    .size = sizeof(((struct hb_health_config *)0)->member)

#define EXPECT_BYTES "1 to 254 characters, or \"hex:\" and pairs of hexadecimal digits"

static const char *scalar_text(const yaml_node_t *node)
{
    return (const char *)node->data.scalar.value;
}

/* ---- values that only health checks have ---- */

/* Stores a text of key->min to key->max characters, all of which `is_allowed`. */
static bool read_characters(struct hb_config_reader *reader, const struct hb_config_key *key,
                            const yaml_node_t *node, const char *path, void *field,
                            int (*is_allowed)(int))
{
    const char *text = scalar_text(node);
    size_t length = node->data.scalar.length;

    if (length < key->min || length > key->max)
        return hb_config_complain_found(reader, key, node, path, "");
    for (size_t i = 0; i < length; i++) {
        if (!is_allowed((unsigned char)text[i]))
            return hb_config_complain_found(reader, key, node, path, "");
    }
    memcpy(field, text, length + 1);
    return true;
}

static int is_host_character(int c)
{
    return c < 0x80 && (isalnum(c) || c == '.' || c == '-' || c == '_');
}

static int is_visible(int c)
{
    return c > ' ' && c <= '~';
}

static int is_printable(int c)
{
    return c >= ' ' && c <= '~';
}

static bool read_host(struct hb_config_reader *reader, const struct hb_config_key *key,
                      const yaml_node_t *node, const char *path, void *field)
{
    return read_characters(reader, key, node, path, field, is_host_character);
}

static bool read_grpc_service(struct hb_config_reader *reader, const struct hb_config_key *key,
                              const yaml_node_t *node, const char *path, void *field)
{
    return read_characters(reader, key, node, path, field, is_visible);
}

/* Paths of URLs and files, and commands: what begins with a slash. */
static bool read_path(struct hb_config_reader *reader, const struct hb_config_key *key,
                      const yaml_node_t *node, const char *path, void *field)
{
    if (scalar_text(node)[0] != '/')
        return hb_config_complain_found(reader, key, node, path, "");
    return read_characters(reader, key, node, path, field, is_visible);
}

static bool read_command(struct hb_config_reader *reader, const struct hb_config_key *key,
                         const yaml_node_t *node, const char *path, void *field)
{
    if (scalar_text(node)[0] != '/')
        return hb_config_complain_found(reader, key, node, path, "");
    return read_characters(reader, key, node, path, field, is_printable);
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Pairs of digits, with spaces between pairs as one likes. */
static bool take_hex(const char *text, struct hb_check_bytes *bytes)
{
    while (*text != '\0') {
        int high, low;

        if (*text == ' ') {
            text++;
            continue;
        }
        high = hex_value(text[0]);
        low = high < 0 ? -1 : hex_value(text[1]);
        if (low < 0 || bytes->length == HB_CHECK_BYTES_MAX)
            return false;
        bytes->bytes[bytes->length++] = (uint8_t)(high << 4 | low);
        text += 2;
    }
    return bytes->length > 0;
}

static bool read_bytes(struct hb_config_reader *reader, const struct hb_config_key *key,
                       const yaml_node_t *node, const char *path, void *field)
{
    const char *text = scalar_text(node);
    size_t length = node->data.scalar.length;
    struct hb_check_bytes bytes = {0};

    if (strncmp(text, "hex:", 4) == 0) {
        if (strlen(text) != length || !take_hex(text + 4, &bytes))
            return hb_config_complain_found(reader, key, node, path, "");
    } else {
        if (length == 0 || length > HB_CHECK_BYTES_MAX)
            return hb_config_complain_found(reader, key, node, path, "");
        bytes.length = (uint16_t)length;
        memcpy(bytes.bytes, text, length);
    }
    memcpy(field, &bytes, sizeof(bytes));
    return true;
}

static bool take_status(const char **text, uint16_t *status)
{
    const char *at = *text;

    for (int i = 0; i < 3; i++) {
        if (!isdigit((unsigned char)at[i]))
            return false;
    }
    *status = (uint16_t)((at[0] - '0') * 100 + (at[1] - '0') * 10 + (at[2] - '0'));
    *text = at + 3;
    return *status >= 100 && *status <= 599;
}

/* "200", "200-299", "200,204,301-308". */
static bool read_statuses(struct hb_config_reader *reader, const struct hb_config_key *key,
                          const yaml_node_t *node, const char *path, void *field)
{
    const char *text = scalar_text(node);
    struct hb_check_statuses statuses = {0};

    do {
        struct hb_check_status_range range;

        text += statuses.count > 0; /* the comma */
        if (statuses.count == HB_CHECK_STATUSES || !take_status(&text, &range.first))
            return hb_config_complain_found(reader, key, node, path, "");
        range.last = range.first;
        if (*text == '-' && (text++, !take_status(&text, &range.last)))
            return hb_config_complain_found(reader, key, node, path, "");
        if (range.last < range.first)
            return hb_config_complain_found(reader, key, node, path, "");
        statuses.range[statuses.count++] = range;
    } while (*text == ',');
    if (text != scalar_text(node) + node->data.scalar.length)
        return hb_config_complain_found(reader, key, node, path, "");
    memcpy(field, &statuses, sizeof(statuses));
    return true;
}

/* ---- keys ---- */

static const struct hb_config_choice types[] = {
    {"tcp", HB_HEALTH_TCP},     {"http", HB_HEALTH_HTTP},
    {"https", HB_HEALTH_HTTPS}, {"udp", HB_HEALTH_UDP},
    {"icmp", HB_HEALTH_ICMP},   {"grpc", HB_HEALTH_GRPC},
    {"grpcs", HB_HEALTH_GRPCS}, {"exec", HB_HEALTH_EXEC},
    {"none", HB_HEALTH_NONE},   {NULL, 0},
};

static const struct hb_config_choice ways[] = {
    {"direct", HB_VIA_DIRECT},
    {"tunnel", HB_VIA_TUNNEL},
    {NULL, 0},
};

/* clang-format off */
static const struct hb_config_key damping_keys[] = {
    {.name = "enabled", .type = HB_CONFIG_BOOLEAN, FIELD(damping.enabled),
     .expected = "true or false", .preset = 1},
    {.name = "half_life", .type = HB_CONFIG_DURATION, FIELD(damping.half_life_ms),
     .expected = "a time from 1s to 24h, such as 1m", .min = 1000, .max = 86400000,
     .preset = 60000},
    {.name = "suppress", .type = HB_CONFIG_FRACTION, FIELD(damping.suppress),
     .expected = "a number of falls from 1.1 to 1000, such as 3", .min = 1100000,
     .max = 1000000000, .preset = 3 * 1024},
    {.name = "reuse", .type = HB_CONFIG_FRACTION, FIELD(damping.reuse),
     .expected = "a number of falls from 0.1 to 1000, such as 1", .min = 100000,
     .max = 1000000000, .preset = 1024},
    {.name = "max_hold", .type = HB_CONFIG_DURATION, FIELD(damping.max_hold_ms),
     .expected = "a time from 1s to 24h, such as 5m", .min = 1000, .max = 86400000,
     .preset = 300000},
};
static const struct hb_config_schema damping_schema = {
    .what = "a mapping such as { half_life: 1m, suppress: 3, reuse: 1 }, or { enabled: false }",
    .keys = damping_keys, .keys_count = sizeof(damping_keys) / sizeof(damping_keys[0])};

static const struct hb_config_key health_keys[] = {
    {.name = "type", .type = HB_CONFIG_CHOICE, FIELD(type),
     .expected = "tcp, http, https, udp, icmp, grpc, grpcs, exec or none", .choices = types,
     .preset = HB_HEALTH_TCP},
    {.name = "port", .type = HB_CONFIG_NUMBER, FIELD(port),
     .expected = "a port from 1 to 65535", .min = 1, .max = 65535},
    {.name = "interval", .type = HB_CONFIG_DURATION, FIELD(interval_ms),
     .expected = "a time from 10ms to 60m, such as 500ms or 1s", .min = 10, .max = 3600000,
     .preset = 1000},
    {.name = "timeout", .type = HB_CONFIG_DURATION, FIELD(timeout_ms),
     .expected = "a time from 1ms to 60m, such as 500ms or 1s", .min = 1, .max = 3600000,
     .preset = 500},
    {.name = "rise", .type = HB_CONFIG_NUMBER, FIELD(rise),
     .expected = "a count from 1 to 1000", .min = 1, .max = 1000, .preset = 2},
    {.name = "fall", .type = HB_CONFIG_NUMBER, FIELD(fall),
     .expected = "a count from 1 to 1000", .min = 1, .max = 1000, .preset = 3},
    {.name = "jitter", .type = HB_CONFIG_DURATION, FIELD(jitter_ms),
     .expected = "a time from 0ms to 30m, such as 100ms", .min = 0, .max = 1800000},
    {.name = "via", .type = HB_CONFIG_CHOICE, FIELD(via),
     .expected = "direct or tunnel", .choices = ways},
    {.name = "vip", .type = HB_CONFIG_ADDRESS, FIELD(vip),
     .expected = "the VIP of a service that uses this pool", .check = hb_config_check_unicast},
    {.name = "path", .type = HB_CONFIG_OWN, FIELD(path), .read = read_path,
     .expected = "a path of 1 to 255 visible characters that begins with /", .min = 1,
     .max = HB_CHECK_PATH_SIZE - 1},
    {.name = "host", .type = HB_CONFIG_OWN, FIELD(host), .read = read_host,
     .expected = "a host name without port", .min = 1, .max = HB_CHECK_HOST_SIZE - 1},
    {.name = "status", .type = HB_CONFIG_OWN, FIELD(statuses), .read = read_statuses,
     .expected = "up to 8 HTTP status codes or ranges such as 200 or 200-299,404"},
    {.name = "body", .type = HB_CONFIG_OWN, FIELD(body), .read = read_bytes,
     .expected = EXPECT_BYTES},
    {.name = "verify", .type = HB_CONFIG_BOOLEAN, FIELD(verify),
     .expected = "true or false", .preset = 1},
    {.name = "ca", .type = HB_CONFIG_OWN, FIELD(ca), .read = read_path,
     .expected = "the absolute path of a file with certificates (PEM)", .min = 1,
     .max = HB_CHECK_FILE_SIZE - 1},
    {.name = "send", .type = HB_CONFIG_OWN, FIELD(send), .read = read_bytes,
     .expected = EXPECT_BYTES},
    {.name = "expect", .type = HB_CONFIG_OWN, FIELD(expect), .read = read_bytes,
     .expected = EXPECT_BYTES},
    {.name = "grpc_service", .type = HB_CONFIG_OWN, FIELD(grpc_service),
     .read = read_grpc_service, .expected = "the name of a gRPC service, such as shop.Cart",
     .min = 1, .max = HB_CHECK_GRPC_SIZE - 1},
    {.name = "command", .type = HB_CONFIG_OWN, FIELD(command), .read = read_command,
     .expected = "the absolute path of a program and its arguments, 511 characters at most",
     .min = 2, .max = HB_CHECK_COMMAND_MAX - 1},
    {.name = "damping", .type = HB_CONFIG_MAPPING, .schema = &damping_schema},
};
const struct hb_config_schema hb_config_health_schema = {
    .what = "a health check such as { type: tcp, interval: 1s }",
    .keys = health_keys, .keys_count = sizeof(health_keys) / sizeof(health_keys[0])};
/* clang-format on */
_Static_assert(sizeof(health_keys) / sizeof(health_keys[0]) <= HB_CONFIG_KEYS_MAX, "too small");

/* ---- rules ---- */

#define TYPE(name) (1u << HB_HEALTH_##name)
#define WITH_PORT  (TYPE(TCP) | TYPE(HTTP) | TYPE(HTTPS) | TYPE(UDP) | TYPE(GRPC) | TYPE(GRPCS))

/* Which types look at a key. Those that all types look at are not here. */
static const struct {
    const char *key;
    size_t offset;
    uint32_t types;
} uses[] = {
    {"port", offsetof(struct hb_health_config, port), WITH_PORT | TYPE(EXEC) | TYPE(NONE)},
    {"path", offsetof(struct hb_health_config, path), TYPE(HTTP) | TYPE(HTTPS)},
    {"host", offsetof(struct hb_health_config, host), TYPE(HTTP) | TYPE(HTTPS) | TYPE(GRPCS)},
    {"status", offsetof(struct hb_health_config, statuses), TYPE(HTTP) | TYPE(HTTPS)},
    {"body", offsetof(struct hb_health_config, body), TYPE(HTTP) | TYPE(HTTPS)},
    {"verify", offsetof(struct hb_health_config, verify), TYPE(HTTPS) | TYPE(GRPCS)},
    {"ca", offsetof(struct hb_health_config, ca), TYPE(HTTPS) | TYPE(GRPCS)},
    {"send", offsetof(struct hb_health_config, send), TYPE(UDP)},
    {"expect", offsetof(struct hb_health_config, expect), TYPE(UDP)},
    {"grpc_service", offsetof(struct hb_health_config, grpc_service), TYPE(GRPC) | TYPE(GRPCS)},
    {"command", offsetof(struct hb_health_config, command), TYPE(EXEC)},
    {"via", offsetof(struct hb_health_config, via), WITH_PORT | TYPE(ICMP)},
};

struct rule {
    struct hb_config_reader *reader;
    const struct hb_pool_config *pool;
    const struct hb_health_config *health;
    uint32_t pool_index;
    uint32_t service; /* the pool's first */
};

static int line_of(const struct rule *rule, const void *field)
{
    return hb_config_line_of(rule->reader, field, rule->pool->line);
}

static const char *print_path(const struct rule *rule, const char *key, char path[HB_CONFIG_PATH])
{
    snprintf(path, HB_CONFIG_PATH, "pools[%u].health%s%s", rule->pool_index, key[0] ? "." : "",
             key);
    return path;
}

static void check_uses(const struct rule *rule)
{
    const struct hb_health_config *health = rule->health;
    char path[HB_CONFIG_PATH];

    if (!hb_config_is_good(rule->reader, &health->type))
        return;
    for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++) {
        const void *field = (const char *)health + uses[i].offset;
        const struct hb_config_place *place = hb_config_find_place(rule->reader, field);

        if (place != NULL && place->good && (uses[i].types & 1u << health->type) == 0)
            hb_config_complain(rule->reader, place->line, print_path(rule, uses[i].key, path),
                               "type %s has no use for it; remove it or choose another type",
                               hb_health_type_name(health->type));
    }
}

static void check_times(const struct rule *rule)
{
    const struct hb_health_config *health = rule->health;
    struct hb_config_reader *reader = rule->reader;
    bool interval_good = hb_config_is_good(reader, &health->interval_ms);
    char path[HB_CONFIG_PATH];

    print_path(rule, "", path);
    if (health->timeout_ms >= health->interval_ms &&
        hb_config_is_good(reader, &health->timeout_ms) && interval_good)
        hb_config_complain(
            reader,
            hb_config_line_of(reader, &health->timeout_ms, line_of(rule, &health->interval_ms)),
            path, "the timeout (%" PRIu32 " ms) must be less than the interval (%" PRIu32 " ms)",
            health->timeout_ms, health->interval_ms);
    if (health->jitter_ms > health->interval_ms / 2 && interval_good)
        hb_config_complain(reader, line_of(rule, &health->jitter_ms), path,
                           "the jitter (%" PRIu32 " ms) must be at most half the interval "
                           "(%" PRIu32 " ms)",
                           health->jitter_ms, health->interval_ms);
}

static void check_damping(const struct rule *rule)
{
    const struct hb_damping_config *damping = &rule->health->damping;
    char path[HB_CONFIG_PATH];

    if (damping->reuse < damping->suppress ||
        !hb_config_is_good(rule->reader, &damping->suppress) ||
        !hb_config_is_good(rule->reader, &damping->reuse))
        return;
    hb_config_complain(rule->reader, line_of(rule, &damping->reuse),
                       print_path(rule, "damping", path),
                       "\"reuse\" must be less than \"suppress\"");
}

static void check_needed(const struct rule *rule)
{
    const struct hb_health_config *health = rule->health;
    int line = line_of(rule, &health->type);
    char path[HB_CONFIG_PATH];

    print_path(rule, "", path);
    if (health->type == HB_HEALTH_UDP && health->send.length == 0 &&
        hb_config_is_good(rule->reader, &health->send))
        hb_config_complain(rule->reader, line, path,
                           "\"send\" is missing; expected the bytes to send, " EXPECT_BYTES);
    if (health->type == HB_HEALTH_EXEC && health->command[0] == '\0' &&
        hb_config_is_good(rule->reader, &health->command))
        hb_config_complain(rule->reader, line, path,
                           "\"command\" is missing; expected the absolute path of a program and "
                           "its arguments");
    if (hb_health_only_assumes(health) && hb_config_is_good(rule->reader, &health->expect))
        hb_config_warn(rule->reader, line, path,
                       "without \"expect\" silence counts as success: backends are shown as "
                       "assumed, never as up; add what the answer begins with");
}

static void check_port(const struct rule *rule)
{
    const struct hb_config *config = rule->reader->config;
    const struct hb_health_config *health = rule->health;
    char path[HB_CONFIG_PATH];

    if (!hb_health_type_has_port(health->type) || health->port != 0 ||
        !hb_config_is_good(rule->reader, &health->port))
        return;
    print_path(rule, "", path);
    if (rule->service == HB_CONFIG_NO_SERVICE)
        hb_config_complain(rule->reader, rule->pool->line, path,
                           "no service uses this pool, so there is no port to check; add "
                           "\"port\" here or a service");
    else if (rule->service < HB_CONFIG_UNKNOWN_SERVICE &&
             config->services[rule->service].port == 0 &&
             hb_config_is_good(rule->reader, &config->services[rule->service].port))
        hb_config_complain(rule->reader, rule->pool->line, path,
                           "the first service of this pool takes any port, so there is no port "
                           "to check; add \"port\" here");
    else if (rule->service < HB_CONFIG_UNKNOWN_SERVICE && health->type != HB_HEALTH_UDP &&
             config->services[rule->service].protocol != HB_PROTOCOL_TCP &&
             config->services[rule->service].protocol != 0)
        hb_config_warn(rule->reader, rule->pool->line, path,
                       "TCP port %u is checked because the first service of this pool is there, "
                       "but that service is %s; set \"port\" if nothing accepts TCP on it",
                       config->services[rule->service].port,
                       config->services[rule->service].protocol == HB_PROTOCOL_UDP ? "UDP"
                                                                                   : "SCTP");
}

static bool is_vip_of_pool(const struct rule *rule)
{
    const struct hb_config *config = rule->reader->config;

    for (uint32_t s = 0; s < config->services_count; s++) {
        const struct hb_service_config *service = &config->services[s];

        if (service->pool == rule->pool_index &&
            hb_address_compare(&service->vip, &rule->health->vip) == 0)
            return true;
    }
    return false;
}

static void check_tunnel(const struct rule *rule)
{
    const struct hb_health_config *health = rule->health;
    const struct hb_config_place *vip = hb_config_find_place(rule->reader, &health->vip);
    char path[HB_CONFIG_PATH], text[HB_ADDRESS_TEXT];

    print_path(rule, "vip", path);
    if (health->via != HB_VIA_TUNNEL) {
        if (vip != NULL && vip->good && hb_config_is_good(rule->reader, &health->via))
            hb_config_complain(rule->reader, vip->line, path,
                               "only a check through the tunnel goes to a VIP; add \"via: "
                               "tunnel\" or remove it");
        return;
    }
    if (vip == NULL && rule->service == HB_CONFIG_NO_SERVICE)
        hb_config_complain(rule->reader, line_of(rule, &health->via), path,
                           "no service uses this pool, so there is no VIP to check; add a service");
    if (vip != NULL && vip->good && rule->service < HB_CONFIG_UNKNOWN_SERVICE &&
        !is_vip_of_pool(rule))
        hb_config_complain(rule->reader, vip->line, path,
                           "expected the VIP of a service that uses this pool, but %s is none",
                           hb_address_print(&health->vip, text));
}

void hb_config_check_health(struct hb_config_reader *reader, uint32_t pool_index, uint32_t service)
{
    const struct hb_pool_config *pool = &reader->config->pools[pool_index];
    const struct rule rule = {reader, pool, &pool->health, pool_index, service};

    check_uses(&rule);
    check_damping(&rule);
    if (pool->health.type == HB_HEALTH_NONE)
        return;
    check_times(&rule);
    check_needed(&rule);
    check_port(&rule);
    check_tunnel(&rule);
}
