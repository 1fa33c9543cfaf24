/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config_services.c: the keys of services that say more than one address and one port: prefixes,
 * ranges, affinity, sources, limits; and what must hold between services.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_internal.h"
#include "source_lists.h"

#define PREFIX_MIN4 8 /* bits of a VIP prefix: shorter ones hold addresses that are nobody's */
#define PREFIX_MIN6 16

static int line_of(const yaml_node_t *node)
{
    return (int)node->start_mark.line + 1;
}

static const char *path_of(char path[HB_CONFIG_PATH], uint32_t service, const char *key)
{
    snprintf(path, HB_CONFIG_PATH, "services[%u]%s%s", service, key[0] != '\0' ? "." : "", key);
    return path;
}

/* ---- values ---- */

/* The text of a scalar, or NULL after a complaint. */
static const char *scalar_of(struct hb_config_reader *reader, const yaml_node_t *node,
                             const char *path, const char *expected)
{
    if (node->type == YAML_SCALAR_NODE)
        return (const char *)node->data.scalar.value;
    hb_config_complain(reader, line_of(node), path, "expected %s, found a %s", expected,
                       node->type == YAML_SEQUENCE_NODE ? "list" : "mapping");
    return NULL;
}

/* A port from 1 on: plain digits without a zero in front. */
static bool take_port(const char **text, uint16_t *port)
{
    const char *at = *text;
    uint32_t value = 0;

    if (*at < '1' || *at > '9')
        return false;
    for (; isdigit((unsigned char)*at) && value <= UINT16_MAX; at++)
        value = value * 10 + (uint32_t)(*at - '0');
    if (value > UINT16_MAX)
        return false;
    *text = at;
    *port = (uint16_t)value;
    return true;
}

bool hb_config_read_ports(struct hb_config_reader *reader, const struct hb_config_key *key,
                          const yaml_node_t *node, const char *path, void *object)
{
    struct hb_service_config *service = object;
    const char *text = scalar_of(reader, node, path, key->expected), *at = text;
    char quoted[HB_CONFIG_QUOTED];
    uint16_t first = 0, last = UINT16_MAX;
    bool good;

    if (text == NULL)
        return false;
    if (text[0] == '\0' || strcmp(text, "~") == 0 || strcmp(text, "null") == 0) {
        hb_config_complain(reader, line_of(node), path, "it has no value; expected %s",
                           key->expected);
        return false;
    }
    good = strcmp(text, "any") == 0;
    if (!good && take_port(&at, &first)) {
        last = first;
        good = *at == '\0' || (*at++ == '-' && take_port(&at, &last) && *at == '\0');
        if (good && strchr(text, '-') == NULL &&
            node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE) {
            hb_config_complain(reader, line_of(node), path,
                               "expected %s, found \"%s\" in quotes; write it without",
                               key->expected, hb_config_quote(text, quoted));
            return false;
        }
    }
    if (!good) {
        hb_config_complain(reader, line_of(node), path, "expected %s, found \"%s\"", key->expected,
                           hb_config_quote(text, quoted));
        return false;
    }
    if (last < first) {
        hb_config_complain(reader, line_of(node), path, "the range %s goes down; write %u-%u",
                           hb_config_quote(text, quoted), last, first);
        return false;
    }
    service->port = first;
    service->port_last = last;
    return true;
}

/* Splits "ADDRESS/LENGTH"; without a length it is the whole address. */
static bool parse_prefix(const char *text, struct hb_address *address, uint8_t *length)
{
    const char *slash = strchr(text, '/');
    char copy[HB_ADDRESS_TEXT];
    uint32_t bits = 0;

    if (slash == NULL) {
        if (!hb_address_parse(text, address))
            return false;
        *length = hb_address_bits(address->family);
        return true;
    }
    if ((size_t)(slash - text) >= sizeof(copy))
        return false;
    memcpy(copy, text, (size_t)(slash - text));
    copy[slash - text] = '\0';
    if (!hb_address_parse(copy, address) || !isdigit((unsigned char)slash[1]) ||
        (slash[1] == '0' && slash[2] != '\0'))
        return false;
    for (slash++; isdigit((unsigned char)*slash) && bits <= 128; slash++)
        bits = bits * 10 + (uint32_t)(*slash - '0');
    *length = (uint8_t)bits;
    return *slash == '\0' && bits <= hb_address_bits(address->family);
}

/* A prefix whose bits behind its length are zero; complains when they are not. */
static bool check_clean(struct hb_config_reader *reader, const yaml_node_t *node, const char *path,
                        struct hb_address *address, uint8_t length)
{
    char written[HB_ADDRESS_TEXT], meant[HB_ADDRESS_TEXT];

    hb_address_print(address, written);
    if (hb_address_mask(address, length))
        return true;
    hb_config_complain(reader, line_of(node), path,
                       "%s is an address within a prefix of %u bits; write %s/%u for the prefix, "
                       "or the address alone",
                       written, length, hb_address_print(address, meant), length);
    return false;
}

bool hb_config_read_vip(struct hb_config_reader *reader, const struct hb_config_key *key,
                        const yaml_node_t *node, const char *path, void *object)
{
    struct hb_service_config *service = object;
    const char *text = scalar_of(reader, node, path, key->expected);
    struct hb_config_key address_key = *key;
    struct hb_address vip;
    uint8_t length, least;

    if (text == NULL)
        return false;
    if (strchr(text, '/') == NULL) {
        address_key.type = HB_CONFIG_ADDRESS;
        if (!hb_config_read_value(reader, &address_key, node, path, &service->vip))
            return false;
        service->prefix_length = hb_address_bits(service->vip.family);
        return true;
    }
    if (!parse_prefix(text, &vip, &length)) {
        char quoted[HB_CONFIG_QUOTED];

        hb_config_complain(reader, line_of(node), path, "expected %s, found \"%s\"", key->expected,
                           hb_config_quote(text, quoted));
        return false;
    }
    least = vip.family == HB_FAMILY_IPV4 ? PREFIX_MIN4 : PREFIX_MIN6;
    if (length < least) {
        hb_config_complain(reader, line_of(node), path,
                           "a VIP prefix of %u bits, at least %u are needed; name smaller ones",
                           length, least);
        return false;
    }
    if (!check_clean(reader, node, path, &vip, length))
        return false;
    service->vip = vip;
    service->prefix_length = length;
    return true;
}

/* One more entry of a service's list. */
static bool add_source(struct hb_config_reader *reader, struct hb_service_rules *rules,
                       const struct hb_address *address, uint8_t length, bool allow)
{
    struct hb_source_list *list = rules->sources;
    uint32_t count = list != NULL ? list->count : 0;

    /* Doubled whenever it is full: at powers of two. */
    if ((count & (count - 1)) == 0) {
        uint32_t room = count == 0 ? 1 : 2 * count;

        list = realloc(list, sizeof(*list) + room * sizeof(list->prefix[0]));
        if (list == NULL) {
            reader->no_memory = true;
            return false;
        }
        if (rules->sources == NULL)
            *list = (struct hb_source_list){.holders = 1};
        rules->sources = list;
    }
    list->denies_others = list->denies_others || allow;
    list->prefix[list->count] =
        (struct hb_prefix_record){.family = address->family, .length = length, .allow = allow};
    memcpy(list->prefix[list->count++].address, address->bytes, sizeof(address->bytes));
    return true;
}

static bool read_source(struct hb_config_reader *reader, const yaml_node_t *node, const char *path,
                        struct hb_service_rules *rules, bool allow)
{
    static const char expected[] = "a prefix of source addresses such as 203.0.113.0/24";
    const char *text = scalar_of(reader, node, path, expected);
    char quoted[HB_CONFIG_QUOTED];
    struct hb_address address;
    uint8_t length;

    if (text == NULL)
        return false;
    if (!parse_prefix(text, &address, &length)) {
        hb_config_complain(reader, line_of(node), path, "expected %s, found \"%s\"", expected,
                           hb_config_quote(text, quoted));
        return false;
    }
    return check_clean(reader, node, path, &address, length) &&
           add_source(reader, rules, &address, length, allow);
}

/* `allow` and `deny`: one list in the end. */
bool hb_config_read_sources(struct hb_config_reader *reader, const struct hb_config_key *key,
                            const yaml_node_t *node, const char *path, void *object)
{
    struct hb_service_config *service = object;
    bool allow = strcmp(key->name, "allow") == 0, good = true;
    const yaml_node_item_t *item;
    char item_path[HB_CONFIG_PATH];

    if (node->type != YAML_SEQUENCE_NODE) {
        hb_config_complain(reader, line_of(node), path, "expected %s", key->expected);
        return false;
    }
    item = node->data.sequence.items.start;
    if (item == node->data.sequence.items.top) {
        hb_config_complain(reader, line_of(node), path,
                           "the list is empty; name a prefix, or leave the key out");
        return false;
    }
    for (uint32_t i = 0; item < node->data.sequence.items.top; i++, item++) {
        snprintf(item_path, sizeof(item_path), "%.160s[%u]", path, i);
        good = read_source(reader, yaml_document_get_node(reader->document, *item), item_path,
                           &service->rules, allow) &&
               good;
    }
    return good;
}

/* ---- rules of one service ---- */

static int compare_sources(const void *left, const void *right)
{
    const struct hb_prefix_record *a = left, *b = right;
    int order = (int)a->family - (int)b->family;

    if (order == 0)
        order = memcmp(a->address, b->address, sizeof(a->address));
    return order != 0 ? order : (int)a->length - (int)b->length;
}

static void check_sources(struct hb_config_reader *reader, uint32_t index)
{
    struct hb_service_config *service = &reader->config->services[index];
    struct hb_source_list *list = service->rules.sources;
    char path[HB_CONFIG_PATH], text[HB_ADDRESS_TEXT];

    if (list == NULL)
        return;
    qsort(list->prefix, list->count, sizeof(list->prefix[0]), compare_sources);
    for (uint32_t i = 1; i < list->count; i++) {
        const struct hb_prefix_record *a = &list->prefix[i - 1], *b = &list->prefix[i];
        struct hb_address address = {.family = b->family};

        if (compare_sources(a, b) != 0)
            continue;
        memcpy(address.bytes, b->address, sizeof(address.bytes));
        hb_config_complain(reader, service->line, path_of(path, index, ""),
                           "%s/%u is %s; remove one of them", hb_address_print(&address, text),
                           b->length,
                           a->allow != b->allow ? "both allowed and denied" : "listed twice");
    }
}

/* What the dataplane has room for. Equal lists of several services are kept once. */
void hb_config_check_lists(struct hb_config_reader *reader)
{
    const struct hb_config *config = reader->config;
    uint32_t count = config->services_count;
    const struct hb_source_list **lists = calloc((size_t)count + 1, sizeof(*lists));
    uint32_t *first = calloc((size_t)count + 1, sizeof(*first));
    uint64_t total = 0;

    if (lists == NULL || first == NULL)
        goto no_memory;
    for (uint32_t i = 0; i < count; i++)
        lists[i] = config->services[i].rules.sources;
    if (!hb_source_lists_find_first(lists, count, first))
        goto no_memory;
    for (uint32_t i = 0; i < count; i++)
        total += lists[i] != NULL && first[i] == i ? lists[i]->count : 0;
    if (total > HB_PREFIXES_MAX)
        hb_config_complain(reader, 0, "services",
                           "%" PRIu64 " prefixes in all \"allow\" and \"deny\" lists, equal lists "
                           "counted once, but the limit is %d; join some",
                           total, HB_PREFIXES_MAX);
    goto free_both;

no_memory:
    reader->no_memory = true;
free_both:
    free(lists);
    free(first);
}

static void check_affinity(struct hb_config_reader *reader, uint32_t index)
{
    struct hb_service_config *service = &reader->config->services[index];
    struct hb_service_rules *rules = &service->rules;
    uint8_t most = hb_address_bits(service->vip.family);
    int line = hb_config_line_of(reader, &rules->affinity_prefix, service->line);
    char path[HB_CONFIG_PATH];

    if (service->vip.family == 0)
        return;
    path_of(path, index, "affinity_prefix");
    if (rules->affinity == HB_AFFINITY_FLOW && rules->affinity_prefix != 0)
        hb_config_complain(reader, line, path,
                           "without affinity there is no source to take %u bits of; add "
                           "\"affinity: source\" or remove it",
                           rules->affinity_prefix);
    else if (rules->affinity_prefix > most)
        hb_config_complain(reader, line, path, "%u bits, but addresses of IPv%u have %u; use fewer",
                           rules->affinity_prefix, service->vip.family, most);
    else if (rules->affinity != HB_AFFINITY_FLOW && rules->affinity_prefix == 0)
        rules->affinity_prefix = most;
}

/* Limits need to know which packet begins a flow: by its entry, or by a SYN. */
static void check_limits(struct hb_config_reader *reader, uint32_t index)
{
    const struct hb_service_config *service = &reader->config->services[index];
    bool has_entries =
        service->tracking == HB_TRACKING_ALL ||
        (service->tracking == HB_TRACKING_CHANGED && service->protocol != HB_PROTOCOL_TCP);
    char path[HB_CONFIG_PATH];

    if (has_entries || service->protocol == 0)
        return;
    if (service->rules.flows != 0)
        hb_config_complain(reader, hb_config_line_of(reader, &service->rules.flows, service->line),
                           path_of(path, index, "flows"),
                           "flows without an entry can't be counted; it needs \"tracking: all\"");
    if (service->rules.new_flows != 0 && service->protocol != HB_PROTOCOL_TCP)
        hb_config_complain(reader,
                           hb_config_line_of(reader, &service->rules.new_flows, service->line),
                           path_of(path, index, "new_flows"),
                           "without entries nothing tells a new flow of this protocol; it needs "
                           "\"tracking: all\"");
}

void hb_config_check_service(struct hb_config_reader *reader, uint32_t index)
{
    check_sources(reader, index);
    check_affinity(reader, index);
    check_limits(reader, index);
    hb_config_check_quic(reader, index);
}

/* ---- rules between services ---- */

static const struct hb_service_config *service_at(const void *entry)
{
    return *(const struct hb_service_config *const *)entry;
}

/* The same VIP or prefix, and protocol. */
static int compare_places(const struct hb_service_config *a, const struct hb_service_config *b)
{
    int order = hb_address_compare(&a->vip, &b->vip);

    if (order == 0)
        order = (int)a->prefix_length - (int)b->prefix_length;
    return order != 0 ? order : (int)a->protocol - (int)b->protocol;
}

/* Then by the first port, of two that begin together the larger range, then as in the file. */
static int compare_services(const void *left, const void *right)
{
    const struct hb_service_config *a = service_at(left), *b = service_at(right);
    int order = compare_places(a, b);

    if (order == 0)
        order = (int)a->port - (int)b->port;
    if (order == 0)
        order = (int)b->port_last - (int)a->port_last;
    return order != 0 ? order : (a > b) - (a < b);
}

static const char *protocol_name(uint8_t protocol)
{
    return protocol == HB_PROTOCOL_TCP ? "tcp" : protocol == HB_PROTOCOL_UDP ? "udp" : "sctp";
}

static void complain_pair(struct hb_config_reader *reader, const struct hb_service_config *a,
                          const struct hb_service_config *b)
{
    const struct hb_service_config *first = a < b ? a : b, *again = a < b ? b : a;
    bool same = a->port == b->port && a->port_last == b->port_last;
    char path[HB_CONFIG_PATH], vip[HB_ADDRESS_TEXT], ports[HB_PORTS_TEXT], other[HB_PORTS_TEXT];

    path_of(path, (uint32_t)(again - reader->config->services), "");
    hb_vip_print(&again->vip, again->prefix_length, vip);
    hb_ports_print(again->port, again->port_last, ports);
    if (same)
        hb_config_complain(reader, again->line, path,
                           "%s %s %s is defined already at line %d; remove one of them", vip,
                           protocol_name(again->protocol), ports, first->line);
    else
        hb_config_complain(reader, again->line, path,
                           "ports %s of %s %s overlap ports %s at line %d in part, so neither is "
                           "the more specific; let one lie within the other, or apart",
                           ports, vip, protocol_name(again->protocol),
                           hb_ports_print(first->port, first->port_last, other), first->line);
}

/* Ranges of one place nest or lie apart. `around` has, by place in the sorted list, the range that
 * each one lies in. */
void hb_config_check_service_keys(struct hb_config_reader *reader)
{
    const struct hb_config *config = reader->config;
    const struct hb_service_config **sorted = calloc(config->services_count + 1, sizeof(*sorted));
    uint32_t *around = calloc(config->services_count + 1, sizeof(*around));
    uint32_t count = 0, open = UINT32_MAX;

    if (sorted == NULL || around == NULL) {
        reader->no_memory = true;
        goto free_both;
    }
    for (uint32_t i = 0; i < config->services_count; i++) {
        const struct hb_service_config *service = &config->services[i];

        if (service->vip.family != 0 && service->protocol != 0 && service->port_last != 0)
            sorted[count++] = service;
    }
    qsort(sorted, count, sizeof(*sorted), compare_services);
    for (uint32_t i = 0; i < count; i++) {
        while (open != UINT32_MAX && (compare_places(sorted[open], sorted[i]) != 0 ||
                                      sorted[open]->port_last < sorted[i]->port))
            open = around[open];
        if (open != UINT32_MAX && ((sorted[open]->port == sorted[i]->port &&
                                    sorted[open]->port_last == sorted[i]->port_last) ||
                                   sorted[open]->port_last < sorted[i]->port_last)) {
            complain_pair(reader, sorted[open], sorted[i]);
            continue; /* compare others with the first of them */
        }
        around[i] = open;
        open = i;
    }
free_both:
    free(sorted);
    free(around);
}
