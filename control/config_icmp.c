/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config_icmp.c: the keys about ICMP and about what does not fit: the mapping `icmp`, and `mss` of
 * a service.
 */
#include <stdio.h>
#include <string.h>

#include "config_internal.h"

#define ROWS(rows) .keys = (rows), .keys_count = sizeof(rows) / sizeof((rows)[0])
#define FIELD(member)                                                                              \
    .offset = offsetof(struct hb_icmp_config, member),                                             \
    .size = sizeof(((struct hb_icmp_config *)0)->member)

static const struct hb_config_choice echoes[] = {
    {"answer", HB_ECHO_ANSWER},
    {"forward", HB_ECHO_FORWARD},
    {"drop", HB_ECHO_DROP},
    {NULL, 0},
};

/* 552 bytes: Linux believes no smaller path MTU by default. 1,280: IPv6 has none (RFC 8200). */
/* clang-format off */
static const struct hb_config_key keys[] = {
    {.name = "source", .type = HB_CONFIG_ADDRESS, FIELD(source),
     .expected = "the IPv4 address that ICMP errors come from",
     .check = hb_config_check_unicast_ipv4},
    {.name = "source6", .type = HB_CONFIG_ADDRESS, FIELD(source6),
     .expected = "the IPv6 address that ICMPv6 errors come from",
     .check = hb_config_check_unicast_ipv6},
    {.name = "rate", .type = HB_CONFIG_NUMBER, FIELD(rate),
     .expected = "messages a second, 0 to 1000000", .min = 0, .max = 1000000, .preset = 1000},
    {.name = "relay_rate", .type = HB_CONFIG_NUMBER, FIELD(relay_rate),
     .expected = "messages a second, 0 to 1000000", .min = 0, .max = 1000000, .preset = 10000},
    {.name = "echo", .type = HB_CONFIG_CHOICE, FIELD(echo),
     .expected = "answer, forward or drop", .choices = echoes, .preset = HB_ECHO_ANSWER},
    {.name = "mtu_floor", .type = HB_CONFIG_NUMBER, FIELD(mtu_floor),
     .expected = "bytes from 0 to 1500", .min = 0, .max = 1500, .preset = 552},
    {.name = "mtu_floor6", .type = HB_CONFIG_NUMBER, FIELD(mtu_floor6),
     .expected = "bytes from 0 to 1500", .min = 0, .max = 1500, .preset = 1280},
};
/* clang-format on */

const struct hb_config_schema hb_config_icmp_schema = {
    .what = "a mapping such as { rate: 1000, echo: answer }", ROWS(keys)};

void hb_config_check_mss(struct hb_config_reader *reader, uint32_t service_index)
{
    const struct hb_service_config *service = &reader->config->services[service_index];
    char path[HB_CONFIG_PATH];

    if (service->mss_max == 0 || service->protocol == HB_PROTOCOL_TCP ||
        !hb_config_is_good(reader, &service->protocol))
        return;
    snprintf(path, sizeof(path), "services[%u].mss", service_index);
    hb_config_complain(reader, hb_config_line_of(reader, &service->mss_max, service->line), path,
                       "only TCP has a maximum segment size; remove it");
}

bool hb_icmp_config_equal(const struct hb_icmp_config *a, const struct hb_icmp_config *b)
{
    return hb_address_compare(&a->source, &b->source) == 0 &&
           hb_address_compare(&a->source6, &b->source6) == 0 && a->rate == b->rate &&
           a->relay_rate == b->relay_rate && a->mtu_floor == b->mtu_floor &&
           a->mtu_floor6 == b->mtu_floor6 && a->echo == b->echo;
}

void hb_icmp_config_apply(const struct hb_icmp_config *icmp, struct hb_settings *settings)
{
    memcpy(settings->icmp_source4, icmp->source.bytes, sizeof(settings->icmp_source4));
    memcpy(settings->icmp_source6, icmp->source6.bytes, sizeof(settings->icmp_source6));
    settings->icmp_rate = icmp->rate;
    settings->icmp_relay_rate = icmp->relay_rate;
    settings->mtu_floor4 = icmp->mtu_floor;
    settings->mtu_floor6 = icmp->mtu_floor6;
    settings->echo = icmp->echo;
}
