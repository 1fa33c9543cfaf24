/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_netlink.c: rtnetlink messages as the kernel sends them, and as it does not.
 */
#include "net_test.h"

#include <errno.h>
#include <linux/if.h>
#include <linux/if_arp.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>

#include <libmnl/libmnl.h>

#include "netlink.h"

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};

struct message {
    char bytes[512] __attribute__((aligned(NLMSG_ALIGNTO)));
    struct nlmsghdr *header;
};

/* Starts a message; the struct of its type is returned to be filled in. */
static void *start(struct message *message, uint16_t type, size_t size)
{
    memset(message, 0, sizeof(*message));
    message->header = mnl_nlmsg_put_header(message->bytes);
    message->header->nlmsg_type = type;
    return mnl_nlmsg_put_extra_header(message->header, size);
}

static void put_address(struct message *message, uint16_t type, const char *text)
{
    struct hb_address address = address_of(text);

    mnl_attr_put(message->header, type, address.family == HB_FAMILY_IPV4 ? 4 : 16, address.bytes);
}

static struct ifinfomsg *make_link(struct message *message, uint16_t type)
{
    struct ifinfomsg *info = start(message, type, sizeof(*info));

    info->ifi_type = ARPHRD_ETHER;
    info->ifi_index = 7;
    info->ifi_flags = IFF_UP;
    mnl_attr_put_strz(message->header, IFLA_IFNAME, "eth0");
    mnl_attr_put_u32(message->header, IFLA_MTU, 1500);
    mnl_attr_put(message->header, IFLA_ADDRESS, 6, mac);
    return info;
}

static void test_link(void **state)
{
    struct message message;
    struct hb_netlink_link link;

    (void)state;
    make_link(&message, RTM_NEWLINK);
    assert_int_equal(hb_netlink_parse_link(message.header, &link), 0);
    assert_int_equal(link.ifindex, 7);
    assert_true(link.up && link.ethernet && !link.gone);
    assert_string_equal(link.name, "eth0");
    assert_int_equal(link.mtu, 1500);
    assert_memory_equal(link.mac, mac, 6);

    make_link(&message, RTM_NEWLINK)->ifi_flags = IFF_RUNNING;
    assert_int_equal(hb_netlink_parse_link(message.header, &link), 0);
    assert_false(link.up);

    make_link(&message, RTM_NEWLINK)->ifi_type = ARPHRD_TUNNEL;
    assert_int_equal(hb_netlink_parse_link(message.header, &link), 0);
    assert_false(link.ethernet);

    make_link(&message, RTM_DELLINK);
    assert_int_equal(hb_netlink_parse_link(message.header, &link), 0);
    assert_true(link.gone);
}

static void put_vlan(struct message *message, const char *kind, uint16_t id, uint16_t type)
{
    struct nlattr *info = mnl_attr_nest_start(message->header, IFLA_LINKINFO), *data;
    uint16_t protocol = htons(type);

    mnl_attr_put_strz(message->header, IFLA_INFO_KIND, kind);
    data = mnl_attr_nest_start(message->header, IFLA_INFO_DATA);
    mnl_attr_put_u16(message->header, IFLA_VLAN_ID, id);
    if (type != 0)
        mnl_attr_put(message->header, IFLA_VLAN_PROTOCOL, sizeof(protocol), &protocol);
    mnl_attr_nest_end(message->header, data);
    mnl_attr_nest_end(message->header, info);
}

static void test_vlan(void **state)
{
    struct message message;
    struct hb_netlink_link link;

    (void)state;
    make_link(&message, RTM_NEWLINK);
    mnl_attr_put_u32(message.header, IFLA_LINK, 3);
    put_vlan(&message, "vlan", 1170, 0x88a8);
    assert_int_equal(hb_netlink_parse_link(message.header, &link), 0);
    assert_int_equal(link.lower, 3);
    assert_int_equal(link.vlan_id, 1170);
    assert_int_equal(link.vlan_type, 0x88a8);

    make_link(&message, RTM_NEWLINK);
    mnl_attr_put_u32(message.header, IFLA_LINK, 3);
    put_vlan(&message, "vlan", 5, 0); /* old kernels do not say */
    assert_int_equal(hb_netlink_parse_link(message.header, &link), 0);
    assert_int_equal(link.vlan_type, 0x8100);

    make_link(&message, RTM_NEWLINK); /* a veth has a peer by the same attribute */
    mnl_attr_put_u32(message.header, IFLA_LINK, 3);
    put_vlan(&message, "veth", 5, 0x8100);
    assert_int_equal(hb_netlink_parse_link(message.header, &link), 0);
    assert_int_equal(link.lower, 0);
    assert_int_equal(link.vlan_type, 0);

    make_link(&message, RTM_NEWLINK); /* the lower interface is in another namespace */
    mnl_attr_put_u32(message.header, IFLA_LINK, 3);
    mnl_attr_put_u32(message.header, IFLA_LINK_NETNSID, 1);
    put_vlan(&message, "vlan", 5, 0x8100);
    assert_int_equal(hb_netlink_parse_link(message.header, &link), 0);
    assert_int_equal(link.lower, 0);
}

/* A port that leaves a bridge is not a link that is gone. */
static void test_link_of_no_interest(void **state)
{
    struct message message;
    struct hb_netlink_link link;
    struct ifinfomsg *info;

    (void)state;
    make_link(&message, RTM_DELLINK)->ifi_family = AF_BRIDGE;
    assert_int_equal(hb_netlink_parse_link(message.header, &link), -ENOMSG);

    info = start(&message, RTM_NEWLINK, sizeof(*info));
    info->ifi_index = 7;
    mnl_attr_put_strz(message.header, IFLA_IFNAME, "wlan0");
    assert_int_equal(hb_netlink_parse_link(message.header, &link), -ENOMSG);

    info = start(&message, RTM_NEWLINK, sizeof(*info));
    info->ifi_index = 7;
    mnl_attr_put_u32(message.header, IFLA_MTU, 1500);
    mnl_attr_put_strz(message.header, IFLA_IFNAME, "sixteen-letters-");
    assert_int_equal(hb_netlink_parse_link(message.header, &link), -ENOMSG);
}

static struct ndmsg *make_neighbour(struct message *message, uint16_t type, const char *address,
                                    uint16_t nud)
{
    struct ndmsg *info = start(message, type, sizeof(*info));

    info->ndm_family = strchr(address, ':') ? AF_INET6 : AF_INET;
    info->ndm_ifindex = 7;
    info->ndm_state = nud;
    put_address(message, NDA_DST, address);
    mnl_attr_put(message->header, NDA_LLADDR, 6, mac);
    return info;
}

static void test_neighbour(void **state)
{
    static const uint16_t usable[] = {NUD_REACHABLE, NUD_STALE,     NUD_DELAY,
                                      NUD_PROBE,     NUD_PERMANENT, NUD_NOARP};
    static const uint16_t not_usable[] = {NUD_NONE, NUD_INCOMPLETE, NUD_FAILED};
    struct message message;
    struct hb_netlink_neighbour neighbour;

    (void)state;
    for (size_t i = 0; i < 6; i++) {
        make_neighbour(&message, RTM_NEWNEIGH, "198.51.100.1", usable[i]);
        assert_int_equal(hb_netlink_parse_neighbour(message.header, &neighbour), 0);
        assert_true(neighbour.has_mac);
        assert_memory_equal(neighbour.mac, mac, 6);
        assert_int_equal(neighbour.state, usable[i]);
        assert_address_equal(neighbour.address, "198.51.100.1");
    }
    for (size_t i = 0; i < 3; i++) {
        make_neighbour(&message, RTM_NEWNEIGH, "2001:db8::1", not_usable[i]);
        assert_int_equal(hb_netlink_parse_neighbour(message.header, &neighbour), 0);
        assert_false(neighbour.has_mac);
        assert_address_equal(neighbour.address, "2001:db8::1");
    }
    make_neighbour(&message, RTM_DELNEIGH, "198.51.100.1", NUD_STALE);
    assert_int_equal(hb_netlink_parse_neighbour(message.header, &neighbour), 0);
    assert_true(neighbour.gone && !neighbour.has_mac);
    assert_int_equal(neighbour.state, 0);
}

static void test_neighbour_of_no_interest(void **state)
{
    struct message message;
    struct hb_netlink_neighbour neighbour;
    struct ndmsg *info;

    (void)state;
    make_neighbour(&message, RTM_NEWNEIGH, "198.51.100.1", NUD_STALE)->ndm_flags = NTF_PROXY;
    assert_int_equal(hb_netlink_parse_neighbour(message.header, &neighbour), -ENOMSG);
    make_neighbour(&message, RTM_NEWNEIGH, "198.51.100.1", NUD_STALE)->ndm_family = AF_BRIDGE;
    assert_int_equal(hb_netlink_parse_neighbour(message.header, &neighbour), -ENOMSG);
    make_neighbour(&message, RTM_NEWNEIGH, "198.51.100.1", NUD_STALE)->ndm_family = AF_INET6;
    assert_int_equal(hb_netlink_parse_neighbour(message.header, &neighbour), -EBADMSG);

    info = start(&message, RTM_NEWNEIGH, sizeof(*info));
    info->ndm_family = AF_INET;
    info->ndm_ifindex = 7;
    assert_int_equal(hb_netlink_parse_neighbour(message.header, &neighbour), -EBADMSG);
}

static struct rtmsg *make_route(struct message *message, const char *destination)
{
    struct rtmsg *info = start(message, RTM_NEWROUTE, sizeof(*info));

    info->rtm_family = strchr(destination, ':') ? AF_INET6 : AF_INET;
    info->rtm_type = RTN_UNICAST;
    put_address(message, RTA_DST, destination);
    mnl_attr_put_u32(message->header, RTA_OIF, 7);
    return info;
}

static void test_route(void **state)
{
    struct message message;
    struct hb_netlink_route route;
    struct nlattr *metrics;

    (void)state;
    make_route(&message, "203.0.113.9");
    put_address(&message, RTA_GATEWAY, "198.51.100.1");
    put_address(&message, RTA_PREFSRC, "198.51.100.10");
    metrics = mnl_attr_nest_start(message.header, RTA_METRICS);
    mnl_attr_put_u32(message.header, RTAX_HOPLIMIT, 9);
    mnl_attr_put_u32(message.header, RTAX_MTU, 1400);
    mnl_attr_nest_end(message.header, metrics);
    assert_int_equal(hb_netlink_parse_route(message.header, &route), 0);
    assert_int_equal(route.error, 0);
    assert_int_equal(route.type, RTN_UNICAST);
    assert_int_equal(route.ifindex, 7);
    assert_int_equal(route.mtu, 1400);
    assert_address_equal(route.destination, "203.0.113.9");
    assert_address_equal(route.gateway, "198.51.100.1");
    assert_address_equal(route.source, "198.51.100.10");

    make_route(&message, "2001:db8::9");
    assert_int_equal(hb_netlink_parse_route(message.header, &route), 0);
    assert_int_equal(route.gateway.family, 0);
    assert_int_equal(route.source.family, 0);
    assert_int_equal(route.mtu, 0);
}

/* RFC 5549: an IPv4 route whose gateway has an IPv6 address. */
static void test_route_via_other_family(void **state)
{
    struct message message;
    struct hb_netlink_route route;
    struct hb_address gateway = address_of("fe80::1");
    char via[sizeof(struct rtvia) + 16];

    (void)state;
    ((struct rtvia *)via)->rtvia_family = AF_INET6;
    memcpy(via + sizeof(struct rtvia), gateway.bytes, 16);
    make_route(&message, "203.0.113.9");
    mnl_attr_put(message.header, RTA_VIA, sizeof(via), via);
    assert_int_equal(hb_netlink_parse_route(message.header, &route), 0);
    assert_address_equal(route.gateway, "fe80::1");

    make_route(&message, "203.0.113.9");
    mnl_attr_put(message.header, RTA_VIA, sizeof(via) - 1, via);
    assert_int_equal(hb_netlink_parse_route(message.header, &route), -EBADMSG);
    make_route(&message, "203.0.113.9");
    mnl_attr_put(message.header, RTA_VIA, 1, via);
    assert_int_equal(hb_netlink_parse_route(message.header, &route), -EBADMSG);
}

static void test_route_malformed(void **state)
{
    struct message message;
    struct hb_netlink_route route;

    (void)state;
    make_route(&message, "203.0.113.9");
    put_address(&message, RTA_GATEWAY, "2001:db8::1");
    assert_int_equal(hb_netlink_parse_route(message.header, &route), -EBADMSG);
    make_route(&message, "203.0.113.9")->rtm_family = AF_MPLS;
    assert_int_equal(hb_netlink_parse_route(message.header, &route), -ENOMSG);
}

/* An error quotes the request, and so tells which question it answers. */
static void test_error(void **state)
{
    struct message message;
    struct nlmsgerr *error;
    char request[HB_NETLINK_REQUEST_MAX] __attribute__((aligned(NLMSG_ALIGNTO)));
    struct hb_address asked = address_of("2001:db8::9");
    struct nlmsghdr *header = hb_netlink_build_get_route(request, &asked, 42);
    const struct nlmsghdr *quoted;
    struct hb_netlink_route route;

    (void)state;
    error = start(&message, NLMSG_ERROR, sizeof(error->error) + header->nlmsg_len);
    error->error = -ENETUNREACH;
    memcpy(&error->msg, header, header->nlmsg_len);
    assert_int_equal(hb_netlink_parse_error(message.header, &quoted), ENETUNREACH);
    assert_non_null(quoted);
    assert_int_equal(quoted->nlmsg_seq, 42);
    assert_int_equal(hb_netlink_parse_route(quoted, &route), 0);
    assert_address_equal(route.destination, "2001:db8::9");

    /* An acknowledgement quotes the header only, which still says the full length. */
    error = start(&message, NLMSG_ERROR, sizeof(*error));
    error->msg = *header;
    assert_int_equal(hb_netlink_parse_error(message.header, &quoted), 0);
    assert_null(quoted);

    start(&message, NLMSG_ERROR, sizeof(int));
    assert_int_equal(hb_netlink_parse_error(message.header, &quoted), EBADMSG);
}

/* Cut anywhere, a message is refused or read as far as it goes; the sanitizer sees a read beyond.
 */
static void test_truncated(void **state)
{
    struct message message;
    struct hb_netlink_link link;
    struct hb_netlink_neighbour neighbour;
    struct hb_netlink_route route;
    const struct nlmsghdr *quoted;
    struct nlattr *metrics;

    (void)state;
    make_route(&message, "203.0.113.9");
    put_address(&message, RTA_GATEWAY, "198.51.100.1");
    metrics = mnl_attr_nest_start(message.header, RTA_METRICS);
    mnl_attr_put_u32(message.header, RTAX_MTU, 1400);
    mnl_attr_nest_end(message.header, metrics);
    for (uint32_t size = NLMSG_HDRLEN; size <= message.header->nlmsg_len; size++) {
        struct nlmsghdr *cut = malloc(size);

        memcpy(cut, message.bytes, size);
        cut->nlmsg_len = size;
        if (size < NLMSG_HDRLEN + sizeof(struct rtmsg))
            assert_int_equal(hb_netlink_parse_route(cut, &route), -EBADMSG);
        hb_netlink_parse_route(cut, &route);
        hb_netlink_parse_link(cut, &link);
        hb_netlink_parse_neighbour(cut, &neighbour);
        hb_netlink_parse_error(cut, &quoted);
        free(cut);
    }
}

static void test_requests(void **state)
{
    char buffer[HB_NETLINK_REQUEST_MAX] __attribute__((aligned(NLMSG_ALIGNTO)));
    struct hb_address address = address_of("198.51.100.11"), address6 = address_of("2001:db8::1");
    struct hb_netlink_neighbour neighbour;
    struct nlmsghdr *message;

    (void)state;
    message = hb_netlink_build_get_route(buffer, &address, 5);
    assert_int_equal(message->nlmsg_type, RTM_GETROUTE);
    assert_int_equal(message->nlmsg_flags, NLM_F_REQUEST);
    assert_int_equal(message->nlmsg_seq, 5);
    assert_int_equal(((struct rtmsg *)mnl_nlmsg_get_payload(message))->rtm_dst_len, 32);

    message = hb_netlink_build_use_neighbour(buffer, 7, &address6, 6);
    assert_true(message->nlmsg_len <= sizeof(buffer));
    assert_int_equal(message->nlmsg_type, RTM_NEWNEIGH);
    assert_int_equal(message->nlmsg_flags, NLM_F_REQUEST | NLM_F_CREATE);
    assert_int_equal(((struct ndmsg *)mnl_nlmsg_get_payload(message))->ndm_flags, NTF_USE);
    assert_int_equal(((struct ndmsg *)mnl_nlmsg_get_payload(message))->ndm_state, NUD_NONE);
    assert_int_equal(hb_netlink_parse_neighbour(message, &neighbour), 0);
    assert_int_equal(neighbour.ifindex, 7);
    assert_address_equal(neighbour.address, "2001:db8::1");

    message = hb_netlink_build_dump(buffer, RTM_GETNEIGH, 7);
    assert_int_equal(message->nlmsg_flags, NLM_F_REQUEST | NLM_F_DUMP);
    assert_int_equal(message->nlmsg_len, NLMSG_HDRLEN + sizeof(struct ndmsg));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_link),
        cmocka_unit_test(test_vlan),
        cmocka_unit_test(test_link_of_no_interest),
        cmocka_unit_test(test_neighbour),
        cmocka_unit_test(test_neighbour_of_no_interest),
        cmocka_unit_test(test_route),
        cmocka_unit_test(test_route_via_other_family),
        cmocka_unit_test(test_route_malformed),
        cmocka_unit_test(test_error),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_requests),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
