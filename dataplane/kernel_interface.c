/* SPDX-License-Identifier: BSD-3-Clause */
/* See kernel_interface.h. */
#include "kernel_interface.h"

#include <errno.h>
#include <net/if.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>

/* Queues as `ethtool -l` shows them. Drivers with separate RX and TX queues (veth) and those
 * without channels count as one combined queue, which is how net_af_xdp sees them. */
static void read_queues(int socket_fd, struct ifreq *request, struct hb_kernel_interface *interface)
{
    struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};

    interface->queues = interface->queues_max = 1;
    request->ifr_data = (void *)&channels;
    if (ioctl(socket_fd, SIOCETHTOOL, request) != 0 || channels.max_combined == 0)
        return;
    interface->queues = channels.combined_count;
    interface->queues_max = channels.max_combined;
}

int hb_kernel_interface_read(const char *name, struct hb_kernel_interface *interface)
{
    struct ifreq request = {0};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int error = 0;

    memset(interface, 0, sizeof(*interface));
    if (fd < 0)
        return -errno;
    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
    snprintf(interface->name, sizeof(interface->name), "%s", name);
    if (ioctl(fd, SIOCGIFINDEX, &request) != 0)
        goto fail;
    interface->index = (uint32_t)request.ifr_ifindex;
    if (ioctl(fd, SIOCGIFMTU, &request) != 0)
        goto fail;
    interface->mtu = (uint32_t)request.ifr_mtu;
    if (ioctl(fd, SIOCGIFFLAGS, &request) != 0)
        goto fail;
    interface->up = (request.ifr_flags & IFF_UP) != 0 && (request.ifr_flags & IFF_RUNNING) != 0;
    read_queues(fd, &request, interface);
    close(fd);
    return 0;

fail:
    error = -errno;
    close(fd);
    return error;
}

int hb_kernel_interface_set_carrier(uint32_t index, bool up)
{
    struct {
        struct nlmsghdr header;
        struct ifinfomsg link;
        struct rtattr attribute;
        uint8_t carrier;
        uint8_t padding[3];
    } request = {
        .header = {.nlmsg_len = sizeof(request),
                   .nlmsg_type = RTM_NEWLINK,
                   .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
        .link = {.ifi_family = AF_UNSPEC, .ifi_index = (int)index},
        .attribute = {.rta_len = RTA_LENGTH(1), .rta_type = IFLA_CARRIER},
        .carrier = up,
    };
    struct {
        struct nlmsghdr header;
        struct nlmsgerr error;
        uint8_t rest[256];
    } reply;
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), error = 0;
    ssize_t size;

    if (fd < 0)
        return -errno;
    if (send(fd, &request, sizeof(request), 0) < 0)
        error = -errno;
    size = error == 0 ? recv(fd, &reply, sizeof(reply), 0) : -1;
    if (error == 0 && size < 0)
        error = -errno;
    if (error == 0)
        error = size >= (ssize_t)(sizeof(reply.header) + sizeof(reply.error)) &&
                        reply.header.nlmsg_type == NLMSG_ERROR
                    ? reply.error.error
                    : -EPROTO;
    close(fd);
    return error;
}

int hb_kernel_interface_claim(const char *name, int *owner)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    /* The leading zero byte makes it abstract: such names belong to the network namespace. */
    int length =
        snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "halbach-dataplane/%s", name);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct ucred peer = {0};
    socklen_t peer_size = sizeof(peer);
    int error;

    *owner = 0;
    if (fd < 0)
        return -errno;
    if (bind(fd, (struct sockaddr *)&address, size) == 0 && listen(fd, 1) == 0)
        return fd;
    error = -errno;
    if (error == -EADDRINUSE && connect(fd, (struct sockaddr *)&address, size) == 0 &&
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_size) == 0)
        *owner = peer.pid;
    close(fd);
    return error;
}
