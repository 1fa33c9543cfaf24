/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * netlink.c: see netlink.h.
 */
#include "netlink.h"

#include <endian.h>
#include <errno.h>
#include <linux/if.h>
#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include <libmnl/libmnl.h>

/* States in which the MAC address of an entry may be used (the kernel's own definition of the
 * name). */
#define NUD_VALID (NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_STALE | NUD_DELAY)

/* Attributes beyond this number are newer than this code and of no interest. */
#define ATTRIBUTES_MAX 64

struct attributes {
    const struct nlattr *of[ATTRIBUTES_MAX];
};

/* Notes where each attribute behind a fixed header of `header_size` bytes stands.
 * mnl_attr_for_each() would round an odd length of the message up, and look beyond its end. */
static int collect_attributes(const struct nlmsghdr *message, size_t header_size,
                              struct attributes *attributes)
{
    const char *end = (const char *)message + message->nlmsg_len;
    const struct nlattr *attribute;

    memset(attributes, 0, sizeof(*attributes));
    if (mnl_nlmsg_get_payload_len(message) < header_size)
        return -EBADMSG;
    attribute = mnl_nlmsg_get_payload_offset(message, header_size);
    while (mnl_attr_ok(attribute, (int)(end - (const char *)attribute))) {
        if (mnl_attr_get_type(attribute) < ATTRIBUTES_MAX)
            attributes->of[mnl_attr_get_type(attribute)] = attribute;
        attribute = mnl_attr_next(attribute);
    }
    return 0;
}

static bool read_u32(const struct nlattr *attribute, uint32_t *value)
{
    if (!attribute || mnl_attr_get_payload_len(attribute) != sizeof(*value))
        return false;
    *value = mnl_attr_get_u32(attribute);
    return true;
}

static bool read_mac(const struct nlattr *attribute, uint8_t *mac)
{
    if (!attribute || mnl_attr_get_payload_len(attribute) != 6)
        return false;
    memcpy(mac, mnl_attr_get_payload(attribute), 6);
    return true;
}

/* Turns the kernel's family and `size` bytes into an address; false when they do not fit each
 * other. */
static bool make_address(int family, const void *bytes, size_t size, struct hb_address *address)
{
    memset(address, 0, sizeof(*address));
    if (family == AF_INET && size == 4)
        address->family = HB_FAMILY_IPV4;
    else if (family == AF_INET6 && size == 16)
        address->family = HB_FAMILY_IPV6;
    else
        return false;
    memcpy(address->bytes, bytes, size);
    return true;
}

static bool read_address(const struct nlattr *attribute, int family, struct hb_address *address)
{
    return attribute && make_address(family, mnl_attr_get_payload(attribute),
                                     mnl_attr_get_payload_len(attribute), address);
}

static bool read_name(const struct nlattr *attribute, char *name, size_t size)
{
    size_t length;

    if (!attribute)
        return false;
    length = strnlen(mnl_attr_get_payload(attribute), mnl_attr_get_payload_len(attribute));
    if (length == 0 || length >= size)
        return false;
    memcpy(name, mnl_attr_get_payload(attribute), length);
    name[length] = '\0';
    return true;
}

/* The kind-specific attributes of a VLAN interface. */
static void read_vlan(const struct nlattr *info, const struct nlattr *lower,
                      struct hb_netlink_link *link)
{
    const struct nlattr *attribute, *data = NULL;
    bool vlan = false;

    if (!info || !lower || mnl_attr_get_payload_len(lower) != sizeof(uint32_t))
        return;
    mnl_attr_for_each_nested(attribute, info)
    {
        if (mnl_attr_get_type(attribute) == IFLA_INFO_KIND)
            vlan = mnl_attr_get_payload_len(attribute) >= 4 &&
                   memcmp(mnl_attr_get_payload(attribute), "vlan", 4) == 0;
        if (mnl_attr_get_type(attribute) == IFLA_INFO_DATA)
            data = attribute;
    }
    if (!vlan || !data)
        return;
    link->vlan_type = ETH_P_8021Q;
    mnl_attr_for_each_nested(attribute, data)
    {
        uint16_t value;

        if (mnl_attr_get_payload_len(attribute) != sizeof(value))
            continue;
        memcpy(&value, mnl_attr_get_payload(attribute), sizeof(value));
        if (mnl_attr_get_type(attribute) == IFLA_VLAN_ID)
            link->vlan_id = value;
        if (mnl_attr_get_type(attribute) == IFLA_VLAN_PROTOCOL)
            link->vlan_type = be16toh(value);
    }
    link->lower = mnl_attr_get_u32(lower);
}

int hb_netlink_parse_link(const struct nlmsghdr *message, struct hb_netlink_link *link)
{
    const struct ifinfomsg *info = mnl_nlmsg_get_payload(message);
    struct attributes attributes;

    memset(link, 0, sizeof(*link));
    if (collect_attributes(message, sizeof(*info), &attributes) < 0)
        return -EBADMSG;
    /* A port that leaves its bridge is announced by RTM_DELLINK too, with the family AF_BRIDGE; the
     * link itself stays. */
    if (info->ifi_family != AF_UNSPEC || info->ifi_index <= 0)
        return -ENOMSG;
    link->ifindex = (uint32_t)info->ifi_index;
    link->gone = message->nlmsg_type == RTM_DELLINK;
    if (link->gone)
        return 0;
    /* Wireless events are links without most of the attributes. */
    if (!read_name(attributes.of[IFLA_IFNAME], link->name, sizeof(link->name)) ||
        !read_u32(attributes.of[IFLA_MTU], &link->mtu))
        return -ENOMSG;
    link->up = info->ifi_flags & IFF_UP;
    link->ethernet =
        info->ifi_type == ARPHRD_ETHER && read_mac(attributes.of[IFLA_ADDRESS], link->mac);
    if (!attributes.of[IFLA_LINK_NETNSID])
        read_vlan(attributes.of[IFLA_LINKINFO], attributes.of[IFLA_LINK], link);
    return 0;
}

int hb_netlink_parse_neighbour(const struct nlmsghdr *message,
                               struct hb_netlink_neighbour *neighbour)
{
    const struct ndmsg *info = mnl_nlmsg_get_payload(message);
    struct attributes attributes;

    memset(neighbour, 0, sizeof(*neighbour));
    if (collect_attributes(message, sizeof(*info), &attributes) < 0)
        return -EBADMSG;
    if ((info->ndm_family != AF_INET && info->ndm_family != AF_INET6) ||
        (info->ndm_flags & NTF_PROXY) || info->ndm_ifindex <= 0)
        return -ENOMSG;
    if (!read_address(attributes.of[NDA_DST], info->ndm_family, &neighbour->address))
        return -EBADMSG;
    neighbour->ifindex = (uint32_t)info->ndm_ifindex;
    neighbour->gone = message->nlmsg_type == RTM_DELNEIGH;
    if (neighbour->gone)
        return 0;
    neighbour->state = info->ndm_state;
    /* An entry that is being resolved, or failed, may carry its former MAC address: not news. */
    if (info->ndm_state & NUD_VALID)
        neighbour->has_mac = read_mac(attributes.of[NDA_LLADDR], neighbour->mac);
    return 0;
}

/* The gateway of an IPv4 route can be an IPv6 address (RFC 5549): RTA_VIA has its own family. */
static bool read_via(const struct nlattr *attribute, struct hb_address *gateway)
{
    const struct rtvia *via;
    size_t size = mnl_attr_get_payload_len(attribute);

    if (size < sizeof(*via))
        return false;
    via = mnl_attr_get_payload(attribute);
    return make_address(via->rtvia_family, via->rtvia_addr, size - sizeof(*via), gateway);
}

static void read_metrics(const struct nlattr *metrics, struct hb_netlink_route *route)
{
    const struct nlattr *metric;

    mnl_attr_for_each_nested(metric, metrics)
    {
        if (mnl_attr_get_type(metric) == RTAX_MTU)
            read_u32(metric, &route->mtu);
    }
}

int hb_netlink_parse_route(const struct nlmsghdr *message, struct hb_netlink_route *route)
{
    const struct rtmsg *info = mnl_nlmsg_get_payload(message);
    struct attributes attributes;

    memset(route, 0, sizeof(*route));
    if (collect_attributes(message, sizeof(*info), &attributes) < 0)
        return -EBADMSG;
    if (info->rtm_family != AF_INET && info->rtm_family != AF_INET6)
        return -ENOMSG;
    if (!read_address(attributes.of[RTA_DST], info->rtm_family, &route->destination))
        return -EBADMSG;
    route->type = info->rtm_type;
    read_u32(attributes.of[RTA_OIF], &route->ifindex);
    read_address(attributes.of[RTA_PREFSRC], info->rtm_family, &route->source);
    if (attributes.of[RTA_METRICS])
        read_metrics(attributes.of[RTA_METRICS], route);
    if (attributes.of[RTA_VIA])
        return read_via(attributes.of[RTA_VIA], &route->gateway) ? 0 : -EBADMSG;
    if (attributes.of[RTA_GATEWAY] &&
        !read_address(attributes.of[RTA_GATEWAY], info->rtm_family, &route->gateway))
        return -EBADMSG;
    return 0;
}

int hb_netlink_parse_error(const struct nlmsghdr *message, const struct nlmsghdr **request)
{
    const struct nlmsgerr *error = mnl_nlmsg_get_payload(message);
    size_t size = mnl_nlmsg_get_payload_len(message);

    *request = NULL;
    if (size < sizeof(*error))
        return EBADMSG;
    if (mnl_nlmsg_ok(&error->msg, (int)(size - offsetof(struct nlmsgerr, msg))))
        *request = &error->msg;
    return -error->error;
}

static struct nlmsghdr *start_request(void *buffer, uint16_t type, uint16_t flags, uint32_t seq)
{
    struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);

    message->nlmsg_type = type;
    message->nlmsg_flags = NLM_F_REQUEST | flags;
    message->nlmsg_seq = seq;
    return message;
}

static uint8_t kernel_family(const struct hb_address *address)
{
    return address->family == HB_FAMILY_IPV4 ? AF_INET : AF_INET6;
}

static size_t address_size(const struct hb_address *address)
{
    return address->family == HB_FAMILY_IPV4 ? 4 : 16;
}

struct nlmsghdr *hb_netlink_build_dump(void *buffer, uint16_t type, uint32_t seq)
{
    struct nlmsghdr *message = start_request(buffer, type, NLM_F_DUMP, seq);

    if (type == RTM_GETLINK) {
        mnl_nlmsg_put_extra_header(message, sizeof(struct ifinfomsg));
        /* Without their statistics links are a third of the size. */
        mnl_attr_put_u32(message, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
    } else {
        mnl_nlmsg_put_extra_header(message, sizeof(struct ndmsg));
    }
    return message;
}

struct nlmsghdr *hb_netlink_build_get_route(void *buffer, const struct hb_address *destination,
                                            uint32_t seq)
{
    struct nlmsghdr *message = start_request(buffer, RTM_GETROUTE, 0, seq);
    struct rtmsg *info = mnl_nlmsg_put_extra_header(message, sizeof(*info));

    info->rtm_family = kernel_family(destination);
    info->rtm_dst_len = (uint8_t)(8 * address_size(destination));
    mnl_attr_put(message, RTA_DST, address_size(destination), destination->bytes);
    return message;
}

struct nlmsghdr *hb_netlink_build_use_neighbour(void *buffer, uint32_t ifindex,
                                                const struct hb_address *address, uint32_t seq)
{
    struct nlmsghdr *message = start_request(buffer, RTM_NEWNEIGH, NLM_F_CREATE, seq);
    struct ndmsg *info = mnl_nlmsg_put_extra_header(message, sizeof(*info));

    info->ndm_family = kernel_family(address);
    info->ndm_ifindex = (int)ifindex;
    /* "ip neigh ... use" sends NUD_PERMANENT here, which would keep the entry from being collected
     * when nobody needs it any more. */
    info->ndm_state = NUD_NONE;
    info->ndm_flags = NTF_USE;
    mnl_attr_put(message, NDA_DST, address_size(address), address->bytes);
    return message;
}
