/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * address.c: parses and prints addresses.
 *
 * The printed text is an identity: tables are built from it, on every balancer of a fleet. So it is
 * made here and not left to the C library, whose forms differ in corners (RFC 5952 leaves one
 * form).
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"

#define GROUPS 8

/* True when a part of a dotted IPv4 address starts with a zero that does not stand alone. Not every
 * C library's inet_pton() refuses that. */
static bool has_leading_zero(const char *dotted)
{
    for (const char *at = dotted; *at != '\0'; at++) {
        bool starts = at == dotted || at[-1] == '.';

        if (starts && at[0] == '0' && isdigit((unsigned char)at[1]))
            return true;
    }
    return false;
}

static bool parse_ipv6(const char *text, uint8_t *bytes)
{
    const char *last = strrchr(text, ':');

    /* "::ffff:192.0.2.1": the dotted end obeys the same rule. */
    if (strchr(text, '.') != NULL && last != NULL && has_leading_zero(last + 1))
        return false;
    return inet_pton(AF_INET6, text, bytes) == 1;
}

bool hb_address_parse(const char *text, struct hb_address *address)
{
    struct hb_address parsed = {0};

    if (strchr(text, ':') != NULL) {
        parsed.family = HB_FAMILY_IPV6;
        if (!parse_ipv6(text, parsed.bytes))
            return false;
    } else {
        parsed.family = HB_FAMILY_IPV4;
        if (has_leading_zero(text) || inet_pton(AF_INET, text, parsed.bytes) != 1)
            return false;
    }
    *address = parsed;
    return true;
}

/* The longest run of at least two zero groups, the first of equal ones (RFC 5952, 4.2). */
static void find_zero_run(const uint16_t *group, int *run_start, int *run_length)
{
    *run_start = -1;
    *run_length = 1;
    for (int start = 0; start < GROUPS; start++) {
        int length = 0;

        while (start + length < GROUPS && group[start + length] == 0)
            length++;
        if (length > *run_length) {
            *run_start = start;
            *run_length = length;
        }
    }
}

static void print_ipv4(const uint8_t *bytes, char *text, size_t size)
{
    snprintf(text, size, "%u.%u.%u.%u", bytes[0], bytes[1], bytes[2], bytes[3]);
}

static void print_ipv6(const uint8_t *bytes, char *text)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    uint16_t group[GROUPS];
    int run_start, run_length, length = 0;

    if (memcmp(bytes, mapped, sizeof(mapped)) == 0) { /* RFC 5952, 5 */
        memcpy(text, "::ffff:", 7);
        print_ipv4(bytes + 12, text + 7, HB_ADDRESS_TEXT - 7);
        return;
    }
    for (int i = 0; i < GROUPS; i++)
        group[i] = (uint16_t)(bytes[2 * i] << 8 | bytes[2 * i + 1]);
    find_zero_run(group, &run_start, &run_length);
    text[0] = '\0';
    for (int i = 0; i < GROUPS; i++) {
        if (i == run_start) {
            length += snprintf(text + length, HB_ADDRESS_TEXT - length, "::");
            i += run_length - 1;
            continue;
        }
        if (length > 0 && text[length - 1] != ':')
            text[length++] = ':';
        length += snprintf(text + length, HB_ADDRESS_TEXT - length, "%x", group[i]);
    }
}

const char *hb_address_print(const struct hb_address *address, char *text)
{
    switch (address->family) {
    case HB_FAMILY_IPV4:
        print_ipv4(address->bytes, text, HB_ADDRESS_TEXT);
        break;
    case HB_FAMILY_IPV6:
        print_ipv6(address->bytes, text);
        break;
    default:
        snprintf(text, HB_ADDRESS_TEXT, "none");
    }
    return text;
}

int hb_address_compare(const struct hb_address *a, const struct hb_address *b)
{
    int order;

    if (a->family != b->family)
        return a->family < b->family ? -1 : 1;
    order = memcmp(a->bytes, b->bytes, HB_ADDRESS_SIZE);
    return order < 0 ? -1 : order > 0;
}

/* Digits only, no leading zero, 0 to 65,535. */
static bool parse_port(const char *text, uint16_t *port)
{
    unsigned value = 0;

    if (text[0] == '\0' || (text[0] == '0' && text[1] != '\0') || strlen(text) > 5)
        return false;
    for (; *text != '\0'; text++) {
        if (!isdigit((unsigned char)*text))
            return false;
        value = value * 10 + (unsigned)(*text - '0');
    }
    *port = (uint16_t)value;
    return value <= UINT16_MAX;
}

bool hb_address_port_parse(const char *text, struct hb_address *address, uint16_t *port)
{
    bool brackets = text[0] == '[';
    const char *end = brackets ? strchr(text, ']') : strchr(text, ':');
    const char *start = text + brackets;
    struct hb_address parsed;
    char copy[HB_ADDRESS_TEXT];
    uint16_t number;

    if (end == NULL || (size_t)(end - start) >= sizeof(copy))
        return false;
    memcpy(copy, start, (size_t)(end - start));
    copy[end - start] = '\0';
    end += brackets; /* now at the colon before the port */
    if (*end != ':' || !hb_address_parse(copy, &parsed) || !parse_port(end + 1, &number))
        return false;
    if (brackets != (parsed.family == HB_FAMILY_IPV6))
        return false;
    *address = parsed;
    *port = number;
    return true;
}
