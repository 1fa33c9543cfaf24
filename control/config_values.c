/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config_values.c: from one scalar of the file to one value.
 *
 * Strict on purpose. YAML has many ways to write a number (010 is eight to some, 1e5 a float, "0" a
 * string); here a number is plain decimal digits and nothing else, so that nobody has to know them.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_internal.h"
#include "hashing/table_builder.h"

static const char *scalar_text(const yaml_node_t *node)
{
    return (const char *)node->data.scalar.value;
}

static bool is_plain(const yaml_node_t *node)
{
    return node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

static bool is_null(const yaml_node_t *node)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL"};

    for (size_t i = 0; is_plain(node) && i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(scalar_text(node), words[i]) == 0)
            return true;
    }
    return false;
}

static int line_of(const yaml_node_t *node)
{
    return (int)node->start_mark.line + 1;
}

bool hb_config_complain_found(struct hb_config_reader *reader, const struct hb_config_key *key,
                              const yaml_node_t *node, const char *path, const char *hint)
{
    char quoted[HB_CONFIG_QUOTED];

    hb_config_complain(reader, line_of(node), path, "expected %s, found \"%s\"%s", key->expected,
                       hb_config_quote(scalar_text(node), quoted), hint);
    return false;
}

/* Reads leading digits; false when there is none, a leading zero, or more than 32 bits. */
static bool take_digits(const char **text, uint64_t *value)
{
    const char *at = *text;

    if (!isdigit((unsigned char)*at) || (at[0] == '0' && isdigit((unsigned char)at[1])))
        return false;
    for (*value = 0; isdigit((unsigned char)*at); at++) {
        *value = *value * 10 + (uint64_t)(*at - '0');
        if (*value > UINT32_MAX)
            return false;
    }
    *text = at;
    return true;
}

void hb_config_store(void *field, size_t size, uint32_t value)
{
    uint8_t byte = (uint8_t)value;
    uint16_t half = (uint16_t)value;

    memcpy(field, size == 1 ? (void *)&byte : size == 2 ? (void *)&half : (void *)&value, size);
}

static bool read_number(struct hb_config_reader *reader, const struct hb_config_key *key,
                        const yaml_node_t *node, const char *path, void *field)
{
    const char *text = scalar_text(node);
    uint64_t value;

    if (!is_plain(node))
        return hb_config_complain_found(reader, key, node, path, " in quotes; write it without");
    if (!take_digits(&text, &value) || *text != '\0' || value < key->min || value > key->max)
        return hb_config_complain_found(reader, key, node, path, "");
    hb_config_store(field, key->size, (uint32_t)value);
    return true;
}

static bool read_duration(struct hb_config_reader *reader, const struct hb_config_key *key,
                          const yaml_node_t *node, const char *path, void *field)
{
    static const struct {
        const char *name;
        uint32_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
    const char *text = scalar_text(node);
    uint64_t value, ms = 0;
    bool known = false;

    if (!take_digits(&text, &value))
        return hb_config_complain_found(reader, key, node, path, "");
    if (*text == '\0')
        return hb_config_complain_found(reader, key, node, path, "; add a unit: ms, s, m or h");
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(text, units[i].name) == 0) {
            known = true;
            ms = value * units[i].ms;
        }
    }
    if (!known || ms < key->min || ms > key->max)
        return hb_config_complain_found(reader, key, node, path, "");
    hb_config_store(field, key->size, (uint32_t)ms);
    return true;
}

static bool read_boolean(struct hb_config_reader *reader, const struct hb_config_key *key,
                         const yaml_node_t *node, const char *path, void *field)
{
    const char *text = scalar_text(node);
    bool value = strcmp(text, "true") == 0;

    if (!is_plain(node))
        return hb_config_complain_found(reader, key, node, path, " in quotes; write it without");
    if (!value && strcmp(text, "false") != 0)
        return hb_config_complain_found(reader, key, node, path, "");
    hb_config_store(field, key->size, value);
    return true;
}

/* Reads up to six digits after the point; *millionths gets what they stand for. */
static bool take_decimals(const char **text, uint64_t *millionths)
{
    const char *at = *text;
    uint64_t place = 100000;

    *millionths = 0;
    for (; isdigit((unsigned char)*at) && place > 0; at++, place /= 10)
        *millionths += place * (uint64_t)(*at - '0');
    if (at == *text)
        return false;
    *text = at;
    return true;
}

static bool read_fraction(struct hb_config_reader *reader, const struct hb_config_key *key,
                          const yaml_node_t *node, const char *path, void *field)
{
    const char *text = scalar_text(node);
    uint64_t whole, millionths = 0;
    bool good = is_plain(node) && take_digits(&text, &whole);

    if (good && *text == '.') {
        text++;
        good = take_decimals(&text, &millionths);
    }
    if (!is_plain(node))
        return hb_config_complain_found(reader, key, node, path, " in quotes; write it without");
    if (good && strcmp(text, "%") == 0)
        return hb_config_complain_found(reader, key, node, path, "; write 25 % as 0.25");
    if (!good || *text != '\0')
        return hb_config_complain_found(reader, key, node, path, "");
    millionths += whole * 1000000;
    if (millionths < key->min || millionths > key->max)
        return hb_config_complain_found(reader, key, node, path, "");
    hb_config_store(field, key->size, (uint32_t)((millionths * 1024 + 500000) / 1000000));
    return true;
}

/* Also guards what a hidden difference would make: two balancers whose seeds look the same. */
static bool read_secret(struct hb_config_reader *reader, const struct hb_config_key *key,
                        const yaml_node_t *node, const char *path, void *field)
{
    const char *text = scalar_text(node);
    size_t length = node->data.scalar.length;

    /* The value of a secret is not repeated in a message: messages go to logs. */
    if (length != strlen(text) || length < key->min || length > key->max) {
        hb_config_complain(reader, line_of(node), path, "expected %s, found %zu", key->expected,
                           length);
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        if (text[i] <= ' ' || text[i] > '~') {
            hb_config_complain(reader, line_of(node), path,
                               "expected %s; character %zu is a space or not ASCII", key->expected,
                               i + 1);
            return false;
        }
    }
    memcpy(field, text, length + 1);
    return true;
}

static bool read_command(struct hb_config_reader *reader, const struct hb_config_key *key,
                         const yaml_node_t *node, const char *path, void *field)
{
    const char *text = scalar_text(node);
    size_t length = node->data.scalar.length;

    if (length == 0 || length >= key->size || length != strlen(text))
        return hb_config_complain_found(reader, key, node, path, "");
    for (size_t i = 0; i < length; i++) {
        if (text[i] < ' ' || text[i] == 0x7f)
            return hb_config_complain_found(reader, key, node, path, "; it must be one line");
    }
    memcpy(field, text, length + 1);
    return true;
}

static bool is_name(const yaml_node_t *node)
{
    const char *text = scalar_text(node);
    size_t length = node->data.scalar.length;

    if (length == 0 || length >= HB_NAME_SIZE)
        return false;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];

        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
            c != '.' && c != '_' && c != '-')
            return false;
    }
    return true;
}

static const char *address_hint(const char *text)
{
    if (strchr(text, '/') != NULL)
        return "; write it without a prefix length";
    if (strchr(text, '%') != NULL)
        return "; an address with an interface cannot be used";
    if (text[0] == '[' || (strchr(text, '.') != NULL && strchr(text, ':') != NULL))
        return "; write it without brackets or port";
    if (strspn(text, "0123456789.") == strlen(text) && strchr(text, '.') != NULL)
        return "; four numbers from 0 to 255 without leading zeros (octal to some programs)";
    if (strchr(text, ':') == NULL)
        return "; names are not looked up, write the address itself";
    return "";
}

static bool read_address(struct hb_config_reader *reader, const struct hb_config_key *key,
                         const yaml_node_t *node, const char *path, void *field)
{
    const char *text = scalar_text(node);

    if (strlen(text) == node->data.scalar.length && hb_address_parse(text, field))
        return true;
    return hb_config_complain_found(reader, key, node, path, address_hint(text));
}

static bool read_prefix(struct hb_config_reader *reader, const struct hb_config_key *key,
                        const yaml_node_t *node, const char *path, void *field)
{
    const char *text = scalar_text(node);
    bool stray = false;

    if (strlen(text) == node->data.scalar.length && hb_address_prefix_parse(text, field, &stray))
        return true;
    return hb_config_complain_found(
        reader, key, node, path,
        stray ? "; bits behind the prefix are set, write its first address" : "");
}

static bool read_mac(struct hb_config_reader *reader, const struct hb_config_key *key,
                     const yaml_node_t *node, const char *path, void *field)
{
    const char *text = scalar_text(node);
    uint8_t mac[6], all = 0;

    if (strlen(text) != 17 || node->data.scalar.length != 17)
        return hb_config_complain_found(reader, key, node, path, "");
    for (size_t i = 0; i < sizeof(mac); i++) {
        const char *at = text + 3 * i;
        char pair[3] = {at[0], at[1], '\0'};

        if (!isxdigit((unsigned char)at[0]) || !isxdigit((unsigned char)at[1]) ||
            (i < 5 && at[2] != ':'))
            return hb_config_complain_found(reader, key, node, path, "");
        mac[i] = (uint8_t)strtoul(pair, NULL, 16);
        all |= mac[i];
    }
    if ((mac[0] & 1) != 0 || all == 0)
        return hb_config_complain_found(reader, key, node, path,
                                        "; it must be that of one interface");
    memcpy(field, mac, sizeof(mac));
    return true;
}

static bool read_choice(struct hb_config_reader *reader, const struct hb_config_key *key,
                        const yaml_node_t *node, const char *path, void *field)
{
    for (const struct hb_config_choice *choice = key->choices; choice->word != NULL; choice++) {
        if (strcmp(scalar_text(node), choice->word) != 0)
            continue;
        if (choice->value == HB_CONFIG_NOT_YET) {
            hb_config_complain(reader, line_of(node), path,
                               "\"%s\" is not available in this version; expected %s", choice->word,
                               key->expected);
            return false;
        }
        hb_config_store(field, key->size, choice->value);
        return true;
    }
    return hb_config_complain_found(reader, key, node, path, "");
}

bool hb_config_read_value(struct hb_config_reader *reader, const struct hb_config_key *key,
                          const yaml_node_t *node, const char *path, void *field)
{
    if (node->type != YAML_SCALAR_NODE) {
        hb_config_complain(reader, line_of(node), path, "expected %s, found a %s", key->expected,
                           node->type == YAML_SEQUENCE_NODE ? "list" : "mapping");
        return false;
    }
    if (is_null(node)) {
        hb_config_complain(reader, line_of(node), path, "it has no value; expected %s",
                           key->expected);
        return false;
    }
    switch (key->type) {
    case HB_CONFIG_NUMBER:
        return read_number(reader, key, node, path, field);
    case HB_CONFIG_DURATION:
        return read_duration(reader, key, node, path, field);
    case HB_CONFIG_BOOLEAN:
        return read_boolean(reader, key, node, path, field);
    case HB_CONFIG_FRACTION:
        return read_fraction(reader, key, node, path, field);
    case HB_CONFIG_SECRET:
        return read_secret(reader, key, node, path, field);
    case HB_CONFIG_COMMAND:
        return read_command(reader, key, node, path, field);
    case HB_CONFIG_NAME:
        if (is_name(node)) {
            memcpy(field, scalar_text(node), node->data.scalar.length + 1);
            return true;
        }
        return hb_config_complain_found(reader, key, node, path, "");
    case HB_CONFIG_REFERENCE:
        return is_name(node) || hb_config_complain_found(reader, key, node, path, "");
    case HB_CONFIG_ADDRESS:
        return read_address(reader, key, node, path, field);
    case HB_CONFIG_PREFIX:
        return read_prefix(reader, key, node, path, field);
    case HB_CONFIG_MAC:
        return read_mac(reader, key, node, path, field);
    case HB_CONFIG_CHOICE:
        return read_choice(reader, key, node, path, field);
    case HB_CONFIG_OWN:
        return key->read(reader, key, node, path, field);
    case HB_CONFIG_CUSTOM:
    case HB_CONFIG_MAPPING:
    case HB_CONFIG_LIST:
        break; /* the schema's own */
    }
    return false;
}

bool hb_config_check_prime(struct hb_config_reader *reader, int line, const char *path,
                           const void *field)
{
    uint32_t size;

    memcpy(&size, field, sizeof(size));
    if (hb_is_prime(size))
        return true;
    hb_config_complain(reader, line, path,
                       "%" PRIu32 " is not prime; the nearest primes are %" PRIu32 " and %" PRIu32,
                       size, hb_prime_below(size), hb_prime_above(size));
    return false;
}

/* What keeps an address from being one host's; NULL when nothing does. */
static const char *special_kind(const struct hb_address *address)
{
    static const uint8_t zero[HB_ADDRESS_SIZE], loopback[HB_ADDRESS_SIZE] = {[15] = 1};
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    const uint8_t *b = address->bytes;

    if (address->family == HB_FAMILY_IPV4) {
        if (b[0] == 0)
            return "unspecified (0.0.0.0/8)";
        if (b[0] == 127)
            return "loopback (127.0.0.0/8)";
        if (b[0] >= 224 && b[0] < 240)
            return "multicast (224.0.0.0/4)";
        if (memcmp(b, "\xff\xff\xff\xff", 4) == 0)
            return "broadcast";
        return NULL;
    }
    if (memcmp(b, zero, sizeof(zero)) == 0)
        return "unspecified (::)";
    if (memcmp(b, loopback, sizeof(loopback)) == 0)
        return "loopback (::1)";
    if (b[0] == 0xff)
        return "multicast (ff00::/8)";
    if (b[0] == 0xfe && (b[1] & 0xc0) == 0x80)
        return "link-local (fe80::/10), which needs an interface";
    if (memcmp(b, mapped, sizeof(mapped)) == 0)
        return "IPv4-mapped (::ffff:0:0/96); write it as IPv4";
    return NULL;
}

bool hb_config_check_unicast(struct hb_config_reader *reader, int line, const char *path,
                             const void *field)
{
    const char *kind = special_kind(field);
    char text[HB_ADDRESS_TEXT];

    if (kind == NULL)
        return true;
    hb_config_complain(reader, line, path,
                       "expected the unicast address of a host or a service, but %s is %s",
                       hb_address_print(field, text), kind);
    return false;
}

static bool check_family(struct hb_config_reader *reader, int line, const char *path,
                         const struct hb_address *address, enum hb_family family)
{
    char text[HB_ADDRESS_TEXT];

    if (address->family != family) {
        hb_config_complain(reader, line, path, "expected an IPv%d address, but %s is IPv%d; the %s",
                           (int)family, hb_address_print(address, text), address->family,
                           family == HB_FAMILY_IPV4 ? "IPv6 source is source6"
                                                    : "IPv4 source is source");
        return false;
    }
    return hb_config_check_unicast(reader, line, path, address);
}

bool hb_config_check_unicast_ipv4(struct hb_config_reader *reader, int line, const char *path,
                                  const void *field)
{
    return check_family(reader, line, path, field, HB_FAMILY_IPV4);
}

bool hb_config_check_unicast_ipv6(struct hb_config_reader *reader, int line, const char *path,
                                  const void *field)
{
    return check_family(reader, line, path, field, HB_FAMILY_IPV6);
}

static bool check_prefix(struct hb_config_reader *reader, int line, const char *path,
                         const struct hb_address_prefix *prefix, enum hb_family family,
                         uint8_t shortest)
{
    char text[HB_ADDRESS_PREFIX_TEXT];

    if (prefix->address.family != family) {
        hb_config_complain(reader, line, path, "expected an IPv%d prefix, but %s is IPv%d",
                           (int)family, hb_address_prefix_print(prefix, text),
                           prefix->address.family);
        return false;
    }
    if (prefix->length < shortest || prefix->length >= hb_address_bits(prefix->address.family)) {
        hb_config_complain(reader, line, path, "expected a length from /%u to /%u, found /%u",
                           shortest, hb_address_bits(prefix->address.family) - 1u, prefix->length);
        return false;
    }
    return hb_config_check_unicast(reader, line, path, &prefix->address);
}

bool hb_config_check_prefix_ipv4(struct hb_config_reader *reader, int line, const char *path,
                                 const void *field)
{
    return check_prefix(reader, line, path, field, HB_FAMILY_IPV4, 8);
}

bool hb_config_check_prefix_ipv6(struct hb_config_reader *reader, int line, const char *path,
                                 const void *field)
{
    return check_prefix(reader, line, path, field, HB_FAMILY_IPV6, 64);
}

bool hb_config_check_loopback(struct hb_config_reader *reader, int line, const char *path,
                              const void *field)
{
    static const uint8_t loopback6[HB_ADDRESS_SIZE] = {[15] = 1};
    char quoted[HB_CONFIG_QUOTED];
    struct hb_address address;
    uint16_t port;

    if (!hb_address_port_parse(field, &address, &port) || port == 0)
        hb_config_complain(reader, line, path,
                           "\"%s\" is not an address and a port; expected one such as "
                           "127.0.0.1:8080 or [::1]:8080",
                           hb_config_quote(field, quoted));
    else if (address.family == HB_FAMILY_IPV4 ? address.bytes[0] != 127
                                              : memcmp(address.bytes, loopback6, 16) != 0)
        hb_config_complain(reader, line, path,
                           "\"%s\" can be reached from other hosts, and the API asks for no "
                           "password; expected 127.0.0.1 or ::1, and a proxy in front of it if "
                           "others shall reach it",
                           hb_config_quote(field, quoted));
    else
        return true;
    return false;
}
