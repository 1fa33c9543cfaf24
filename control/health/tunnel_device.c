/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tunnel_device.c: see tunnel_device.h.
 *
 * A TUN device because it needs no other module, no address and no peer, and goes with the process
 * that holds it. Nothing is ever read from it: the program at its egress takes or drops everything.
 */
#include "tunnel_device.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fib_rules.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <libmnl/libmnl.h>

#include "tunnel_maps.h"

/* "HB", for the table and the place of the rule: behind the table "local" (0), before "main". */
#define TABLE      0x4842
#define PREFERENCE 0x4842

static int set_up(const char *name)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq request = {0};
    int error = 0;

    if (fd < 0)
        return -errno;
    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
    if (ioctl(fd, SIOCGIFFLAGS, &request) < 0)
        error = -errno;
    request.ifr_flags = (short)(request.ifr_flags | IFF_UP);
    if (error == 0 && ioctl(fd, SIOCSIFFLAGS, &request) < 0)
        error = -errno;
    close(fd);
    return error;
}

int hb_tunnel_device_open(uint32_t *ifindex, char *problem, size_t size)
{
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
    int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC), error = 0;

    snprintf(request.ifr_name, sizeof(request.ifr_name), "halbach%%d");
    if (fd < 0)
        error = -errno;
    else if (ioctl(fd, TUNSETIFF, &request) < 0)
        error = -errno;
    else
        error = set_up(request.ifr_name);
    if (error == 0) {
        *ifindex = if_nametoindex(request.ifr_name);
        return fd;
    }
    snprintf(problem, size,
             "cannot make the TUN device for checks through the tunnel: %s; they need /dev/net/tun "
             "and CAP_NET_ADMIN",
             strerror(-error));
    if (fd >= 0)
        close(fd);
    return error;
}

/* Sends one request and waits for the kernel's word; 0 or negative errno. */
static int ask(struct nlmsghdr *message)
{
    struct mnl_socket *socket = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
    char answer[1024]; /* room for an acknowledgement and the request that it quotes */
    ssize_t got;
    int error = 0;

    if (socket == NULL)
        return -errno;
    message->nlmsg_seq = (uint32_t)time(NULL);
    if (mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0 ||
        mnl_socket_sendto(socket, message, message->nlmsg_len) < 0 ||
        (got = mnl_socket_recvfrom(socket, answer, sizeof(answer))) < 0)
        error = -errno;
    else if (mnl_cb_run(answer, (size_t)got, message->nlmsg_seq, mnl_socket_get_portid(socket),
                        NULL, NULL) < 0)
        error = -errno;
    mnl_socket_close(socket);
    return error;
}

static int change_rule(uint8_t family, uint16_t type, uint16_t flags)
{
    char buffer[256] __attribute__((aligned(NLMSG_ALIGNTO)));
    struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);
    struct fib_rule_hdr *rule;

    message->nlmsg_type = type;
    message->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags);
    rule = mnl_nlmsg_put_extra_header(message, sizeof(*rule));
    rule->family = family;
    rule->action = FR_ACT_TO_TBL;
    mnl_attr_put_u32(message, FRA_TABLE, TABLE);
    mnl_attr_put_u32(message, FRA_PRIORITY, PREFERENCE);
    mnl_attr_put_u32(message, FRA_FWMARK, HB_TUNNEL_MARK);
    mnl_attr_put_u32(message, FRA_FWMASK, HB_TUNNEL_MARK_MASK);
    return ask(message);
}

static int add_route(uint8_t family, uint32_t ifindex)
{
    char buffer[256] __attribute__((aligned(NLMSG_ALIGNTO)));
    struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);
    struct rtmsg *route;

    message->nlmsg_type = RTM_NEWROUTE;
    message->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
    route = mnl_nlmsg_put_extra_header(message, sizeof(*route));
    route->rtm_family = family;
    route->rtm_table = RT_TABLE_UNSPEC;
    route->rtm_protocol = RTPROT_STATIC;
    route->rtm_scope = RT_SCOPE_LINK;
    route->rtm_type = RTN_UNICAST;
    mnl_attr_put_u32(message, RTA_TABLE, TABLE);
    mnl_attr_put_u32(message, RTA_OIF, ifindex);
    return ask(message);
}

int hb_tunnel_rules_add(uint32_t ifindex, char *problem, size_t size)
{
    static const uint8_t families[] = {AF_INET, AF_INET6};

    for (size_t i = 0; i < sizeof(families); i++) {
        int error = change_rule(families[i], RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL);

        if (error == -EEXIST) /* of a control that was killed */
            error = 0;
        if (error == 0)
            error = add_route(families[i], ifindex);
        if (error == 0 || (families[i] == AF_INET6 && error != -EEXIST))
            continue; /* a machine may have no IPv6; its probes say so */
        snprintf(problem, size,
                 error == -EEXIST
                     ? "routing table %u, for checks through the tunnel, is in use (%s); does "
                       "another halbach-control run here?"
                     : "cannot route checks through the tunnel by table %u: %s; they need "
                       "CAP_NET_ADMIN",
                 TABLE, strerror(-error));
        return error;
    }
    return 0;
}

void hb_tunnel_rules_remove(void)
{
    change_rule(AF_INET, RTM_DELRULE, 0);
    change_rule(AF_INET6, RTM_DELRULE, 0);
}
