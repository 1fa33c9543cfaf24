/* SPDX-License-Identifier: BSD-3-Clause */
#include "api_tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "address.h"

static socklen_t make_address(const struct hb_address *address, uint16_t port,
                              struct sockaddr_storage *to)
{
    struct sockaddr_in *four = (void *)to;
    struct sockaddr_in6 *six = (void *)to;

    memset(to, 0, sizeof(*to));
    if (address->family == HB_FAMILY_IPV4) {
        four->sin_family = AF_INET;
        four->sin_port = htons(port);
        memcpy(&four->sin_addr, address->bytes, sizeof(four->sin_addr));
        return sizeof(*four);
    }
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(port);
    memcpy(&six->sin6_addr, address->bytes, sizeof(six->sin6_addr));
    return sizeof(*six);
}

int hb_api_tcp_open(const char *listen_at, char *problem, size_t size)
{
    struct sockaddr_storage name;
    struct hb_address address;
    uint16_t port;
    socklen_t length;
    int fd, error, yes = 1;

    if (!hb_address_port_parse(listen_at, &address, &port))
        return -EINVAL;
    length = make_address(&address, port, &name);
    fd = socket(name.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
        bind(fd, (struct sockaddr *)&name, length) == 0 && listen(fd, 64) == 0)
        return fd;
    error = -errno;
    snprintf(problem, size, "api.listen: cannot listen at %s: %s; %s", listen_at, strerror(-error),
             error == -EADDRINUSE ? "end the program that uses this port, or name another port"
                                  : "name another address");
    if (fd >= 0)
        close(fd);
    return error;
}
