/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control_nat.c: what NAT needs to know of this machine: the way to clients, and which addresses
 * are its own.
 *
 * The way to clients is the default route. The kernel is asked for the route to an address that no
 * more specific route should have: for IPv4 the first of the reserved block 240.0.0.0/4 (RFC 1112),
 * for IPv6 one of a block that is not assigned (2d00::/8, IANA). Nothing is ever sent there. Like
 * those of backends it is watched, so a change is followed at once.
 *
 * Own addresses are read from the kernel with each configuration and every second.
 */
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "log.h"
#include "plan_nat.h"
#include "rewrite_nat.h"

static const char *const beyond[2] = {"240.0.0.1", "2d00::1"};

static bool take_address(const struct sockaddr *from, struct hb_address *address)
{
    memset(address, 0, sizeof(*address));
    if (from == NULL)
        return false;
    if (from->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)from;

        address->family = HB_FAMILY_IPV4;
        memcpy(address->bytes, &in->sin_addr, 4);
        return address->bytes[0] != 127;
    }
    if (from->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const void *)from;

        address->family = HB_FAMILY_IPV6;
        memcpy(address->bytes, &in6->sin6_addr, HB_ADDRESS_SIZE);
        return !IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr) && !IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr);
    }
    return false;
}

static int compare(const void *a, const void *b)
{
    return hb_address_compare(a, b);
}

static bool is_vip(const struct hb_model *model, const struct hb_address *address)
{
    for (uint32_t s = 0; s < model->services_count; s++)
        if (hb_address_compare(&model->services[s].vip, address) == 0)
            return true;
    return false;
}

/* Sorted, so that their order changes nothing. A VIP on `lo` is not one of them. */
static uint32_t read_own(const struct hb_model *model, struct hb_address *own)
{
    struct ifaddrs *list, *one;
    uint32_t count = 0;

    if (getifaddrs(&list) < 0)
        return 0;
    for (one = list; one != NULL && count < HB_NAT_OWN_MAX; one = one->ifa_next)
        if (take_address(one->ifa_addr, &own[count]) && !is_vip(model, &own[count]))
            count++;
    freeifaddrs(list);
    qsort(own, count, sizeof(*own), compare);
    return count;
}

static bool update_own(struct hb_model *model)
{
    struct hb_address own[HB_NAT_OWN_MAX];
    uint32_t count = read_own(model, own);
    bool same = count == model->own_count;

    for (uint32_t i = 0; same && i < count; i++)
        same = hb_address_compare(&own[i], &model->own[i]) == 0;
    if (same)
        return false;
    memcpy(model->own, own, count * sizeof(*own));
    model->own_count = count;
    return true;
}

/* Says once that answers of NAT pools of a family have no way, and once that they have. */
static void tell_way(struct hb_control *control, uint32_t i)
{
    struct hb_port_list ports = {control->dataplane.hello.port, control->dataplane.hello.ports};
    struct hb_client_hop way;
    char problem[192];
    bool found = hb_client_hop_make(&control->model->client[i], &control->model->to_clients[i],
                                    ports, &way, problem, sizeof(problem));

    if (!control->dataplane.ever_connected || found == control->client_way[i])
        return;
    control->client_way[i] = found;
    if (found)
        hb_log(HB_LOG_INFO, "the way to IPv%d clients leads by port %u", i == 0 ? 4 : 6, way.port);
    else
        hb_log(HB_LOG_WARNING,
               "no way to IPv%d clients any more (%s); answers of NAT backends are dropped "
               "(nat_no_way) until there is a default route",
               i == 0 ? 4 : 6, problem);
}

void hb_control_sync_nat(struct hb_control *control)
{
    struct hb_model *model = control->model;

    if (!hb_model_has_nat(model))
        return;
    update_own(model);
    for (uint32_t i = 0; i < 2; i++) {
        if (model->client[i].family == 0) {
            hb_address_parse(beyond[i], &model->client[i]);
            hb_next_hops_watch(control->hops, &model->client[i]);
        }
        hb_next_hops_get(control->hops, &model->client[i], &model->to_clients[i]);
        tell_way(control, i);
    }
}

bool hb_control_client_hop_changed(struct hb_control *control, const struct hb_address *address,
                                   const struct hb_next_hop *hop)
{
    for (uint32_t i = 0; i < 2; i++) {
        if (control->model->client[i].family == 0 ||
            hb_address_compare(&control->model->client[i], address) != 0)
            continue;
        control->model->to_clients[i] = *hop;
        tell_way(control, i);
        return true;
    }
    return false;
}

void hb_control_tick_nat(struct hb_control *control)
{
    if (hb_model_has_nat(control->model) && update_own(control->model))
        hb_control_changed(control);
}
