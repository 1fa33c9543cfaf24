/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config_vips.c: VIPs and prefixes of VIPs that have another meaning too: a backend's address, or
 * the balancer's own.
 */
#include <stdio.h>

#include "config_internal.h"

static const char *path_of(char path[HB_CONFIG_PATH], uint32_t service)
{
    snprintf(path, HB_CONFIG_PATH, "services[%u].vip", service);
    return path;
}

static bool holds(const struct hb_service_config *service, const struct hb_address *address)
{
    struct hb_address_prefix vip = {service->vip, service->prefix_length};

    return hb_address_prefix_holds(&vip, address);
}

static void check_vip_source(struct hb_config_reader *reader, uint32_t index,
                             const struct hb_address *source)
{
    const struct hb_service_config *service = &reader->config->services[index];
    char path[HB_CONFIG_PATH], text[HB_ADDRESS_TEXT], other[HB_ADDRESS_TEXT];
    int line = hb_config_line_of(reader, &service->vip, service->line);

    if (source->family == 0 || !holds(service, source))
        return;
    path_of(path, index);
    if (service->prefix_length == hb_address_bits(source->family))
        hb_config_complain(reader, line, path,
                           "%s is the tunnel source at line %d, the balancer's own address; use "
                           "another",
                           hb_address_print(source, text), hb_config_line_of(reader, source, 0));
    else
        hb_config_complain(reader, line, path,
                           "%s holds %s, the tunnel source at line %d, the balancer's own "
                           "address; use another",
                           hb_vip_print(&service->vip, service->prefix_length, text),
                           hb_address_print(source, other), hb_config_line_of(reader, source, 0));
}

const struct hb_config_entry *hb_config_first_from(const struct hb_config_entry *backends,
                                                   uint32_t count, const struct hb_address *address)
{
    uint32_t low = 0, high = count;

    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (hb_address_compare(backends[middle].address, address) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count ? &backends[low] : NULL;
}

void hb_config_check_vips(struct hb_config_reader *reader, const struct hb_config_entry *backends,
                          uint32_t count)
{
    const struct hb_config *config = reader->config;

    for (uint32_t i = 0; i < config->services_count; i++) {
        const struct hb_service_config *service = &config->services[i];
        char path[HB_CONFIG_PATH], text[HB_ADDRESS_TEXT], other[HB_ADDRESS_TEXT];
        int line = hb_config_line_of(reader, &service->vip, service->line);
        const struct hb_config_entry *within;

        if (service->vip.family == 0)
            continue;
        check_vip_source(reader, i, &config->tunnel_source);
        check_vip_source(reader, i, &config->tunnel_source6);
        within = hb_config_first_from(backends, count, &service->vip); /* if any, that one */
        if (within == NULL || !holds(service, within->address))
            continue;
        path_of(path, i);
        if (service->prefix_length == hb_address_bits(service->vip.family))
            hb_config_complain(reader, line, path,
                               "%s is the address of a backend at line %d too; its tunnel would "
                               "lead back here, so use another address for one of them",
                               hb_address_print(&service->vip, text), within->line);
        else
            hb_config_complain(reader, line, path,
                               "%s holds %s, a backend at line %d; its tunnel would lead back "
                               "here, so move the backend out of the prefix",
                               hb_vip_print(&service->vip, service->prefix_length, text),
                               hb_address_print(within->address, other), within->line);
    }
}
