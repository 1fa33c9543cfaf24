/* SPDX-License-Identifier: BSD-3-Clause */
/* What halbachctl doctor asks the kernel about an interface by ioctl and netlink. */
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <libmnl/libmnl.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>

#include "doctor.h"

int hb_link_ring(const char *ifname, struct hb_ring_size *ring)
{
    struct ethtool_ringparam parameters = {.cmd = ETHTOOL_GRINGPARAM};
    struct ifreq request = {.ifr_data = (void *)&parameters};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), error = 0;

    if (fd < 0)
        return -errno;
    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", ifname);
    if (ioctl(fd, SIOCETHTOOL, &request) != 0)
        error = -errno;
    close(fd);
    *ring = (struct hb_ring_size){parameters.rx_pending, parameters.rx_max_pending};
    return error;
}

static int on_link(const struct nlmsghdr *message, void *context)
{
    const struct nlattr *outer, *inner;
    int *mode = context;

    mnl_attr_for_each(outer, message, sizeof(struct ifinfomsg))
    {
        if (mnl_attr_get_type(outer) != IFLA_XDP)
            continue;
        mnl_attr_for_each_nested(inner, outer)
        {
            if (mnl_attr_get_type(inner) != IFLA_XDP_ATTACHED ||
                mnl_attr_validate(inner, MNL_TYPE_U8) != 0)
                continue;
            switch (mnl_attr_get_u8(inner)) {
            case XDP_ATTACHED_NONE:
                *mode = HB_LINK_XDP_NONE;
                break;
            case XDP_ATTACHED_SKB:
                *mode = HB_LINK_XDP_GENERIC;
                break;
            default:
                *mode = HB_LINK_XDP_DRIVER;
            }
        }
    }
    return MNL_CB_OK;
}

int hb_link_xdp(const char *ifname)
{
    uint8_t buffer[16384]; /* one answer about one interface */
    struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);
    struct ifinfomsg *link;
    struct mnl_socket *socket = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
    int mode = -ENODATA;
    ssize_t size;

    if (socket == NULL)
        return -errno;
    message->nlmsg_type = RTM_GETLINK;
    message->nlmsg_flags = NLM_F_REQUEST;
    message->nlmsg_seq = 1;
    link = mnl_nlmsg_put_extra_header(message, sizeof(*link));
    link->ifi_family = AF_UNSPEC;
    link->ifi_index = (int)if_nametoindex(ifname);
    if (mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) != 0 ||
        mnl_socket_sendto(socket, message, message->nlmsg_len) < 0 ||
        (size = mnl_socket_recvfrom(socket, buffer, sizeof(buffer))) < 0 ||
        mnl_cb_run(buffer, (size_t)size, 1, mnl_socket_get_portid(socket), on_link, &mode) < 0)
        mode = -errno;
    mnl_socket_close(socket);
    return mode;
}
