/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config_nat.c: the keys of NAT and full NAT.
 *
 *     forwarding: full_nat
 *     nat: { port: 8080, sources: [198.51.100.64/28], ports: 1024-65535, client_address: proxy_v2 }
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_internal.h"
#include "config_nat.h"

#define FIELD(member)                                                                              \
    .offset = offsetof(struct hb_nat_config, member),                                              \
    .size = sizeof(((struct hb_nat_config *)0)->member)

static bool complain_node(struct hb_config_reader *reader, const yaml_node_t *node,
                          const char *path, const char *expected)
{
    char quoted[HB_CONFIG_QUOTED];

    hb_config_complain(reader, (int)node->start_mark.line + 1, path, "expected %s, found %s%s%s",
                       expected, node->type == YAML_SCALAR_NODE ? "\"" : "a list or mapping",
                       node->type == YAML_SCALAR_NODE
                           ? hb_config_quote((const char *)node->data.scalar.value, quoted)
                           : "",
                       node->type == YAML_SCALAR_NODE ? "\"" : "");
    return false;
}

static bool read_small(const char *text, char end, uint32_t max, uint32_t *value, const char **rest)
{
    char *stop;
    unsigned long number;

    if (*text < '0' || *text > '9' || (text[0] == '0' && text[1] != end && text[1] != '\0'))
        return false;
    number = strtoul(text, &stop, 10);
    if (*stop != end || number > max)
        return false;
    *value = (uint32_t)number;
    *rest = stop;
    return true;
}

/* As many addresses as a pool may have in one prefix. */
static bool read_prefix(const char *text, struct hb_address_prefix *prefix)
{
    bool stray;

    return hb_address_or_prefix_parse(text, prefix, &stray) &&
           hb_address_bits(prefix->address.family) - prefix->length <= HB_NAT_PREFIX_BITS;
}

static bool read_sources(struct hb_config_reader *reader, const struct hb_config_key *key,
                         const yaml_node_t *node, const char *path, void *object)
{
    struct hb_nat_sources *sources = (void *)((uint8_t *)object + key->offset);
    const yaml_node_item_t *item;

    if (node->type != YAML_SEQUENCE_NODE)
        return complain_node(reader, node, path, key->expected);
    for (item = node->data.sequence.items.start; item < node->data.sequence.items.top; item++) {
        const yaml_node_t *one = yaml_document_get_node(reader->document, *item);

        if (sources->count == HB_NAT_PREFIXES_MAX) {
            hb_config_complain(reader, (int)one->start_mark.line + 1, path,
                               "more than %d prefixes; join some", HB_NAT_PREFIXES_MAX);
            return false;
        }
        if (one->type != YAML_SCALAR_NODE ||
            !read_prefix((const char *)one->data.scalar.value, &sources->prefix[sources->count]))
            return complain_node(reader, one, path,
                                 "an address or a prefix of up to 1024 addresses, the bits behind "
                                 "it zero, such as 198.51.100.64/28");
        if (!hb_config_check_unicast(reader, (int)one->start_mark.line + 1, path,
                                     &sources->prefix[sources->count].address))
            return false;
        sources->count++;
    }
    return true;
}

static bool read_ports(struct hb_config_reader *reader, const struct hb_config_key *key,
                       const yaml_node_t *node, const char *path, void *field)
{
    struct hb_nat_ports *ports = field;
    const char *text, *rest;
    uint32_t first, last;

    if (node->type != YAML_SCALAR_NODE)
        return complain_node(reader, node, path, key->expected);
    text = (const char *)node->data.scalar.value;
    if (!read_small(text, '-', 65535, &first, &rest) ||
        !read_small(rest + 1, '\0', 65535, &last, &rest) || first == 0 || last < first)
        return complain_node(reader, node, path, key->expected);
    *ports = (struct hb_nat_ports){(uint16_t)first, (uint16_t)last};
    return true;
}

static const struct hb_config_choice client_addresses[] = {
    {"none", HB_CLIENT_NOT_TOLD},
    {"proxy_v2", HB_CLIENT_BY_PROXY_V2},
    {"tcp_option", HB_CLIENT_BY_OPTION},
    {"tcp_option_28", HB_CLIENT_BY_OPTION_28},
    {NULL, 0},
};

static const struct hb_config_key nat_keys[] = {
    {.name = "port",
     .type = HB_CONFIG_NUMBER,
     FIELD(port),
     .expected = "the backends' port, from 1 to 65535",
     .min = 1,
     .max = 65535},
    {.name = "sources",
     .type = HB_CONFIG_CUSTOM,
     FIELD(sources),
     .read = read_sources,
     .expected = "a list of addresses and prefixes, such as [198.51.100.64/28]"},
    {.name = "ports",
     .type = HB_CONFIG_OWN,
     FIELD(ports),
     .read = read_ports,
     .expected = "a range of ports, such as 1024-65535"},
    {.name = "client_address",
     .type = HB_CONFIG_CHOICE,
     FIELD(client_address),
     .expected = "none, proxy_v2, tcp_option or tcp_option_28",
     .choices = client_addresses},
};

const struct hb_config_schema hb_config_nat_schema = {
    .what = "a mapping of port, sources, ports and client_address",
    .keys = nat_keys,
    .keys_count = sizeof(nat_keys) / sizeof(nat_keys[0]),
};
