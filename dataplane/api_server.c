/* SPDX-License-Identifier: BSD-3-Clause */
/* See api_server.h. */
#include "api_server.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "api_messages.h"

#define PEERS_MAX 16
#define FDS_MAX   8 /* that one message may bring; the kernel drops more */

struct peer {
    int fd; /* -1: this place is free */
    pid_t pid;
    bool greeted;        /* it is the control */
    int64_t deadline_ms; /* to say hello, by the monotonic clock */
};

struct hb_api_server {
    const struct hb_api_listener *listener;
    const struct hb_api_handlers *handlers;
    int epoll;
    struct peer peer[PEERS_MAX];
    char last_complaint[HB_TEXT_SIZE + 64];
};

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static __attribute__((format(printf, 2, 3))) void log_line(const struct hb_api_server *server,
                                                           const char *format, ...)
{
    char line[HB_TEXT_SIZE + 64];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    server->handlers->log(server->handlers->context, line);
}

/* A peer that tries again and again with the same mistake is logged once. */
static void log_complaint(struct hb_api_server *server, const struct peer *peer,
                          const char *problem)
{
    char line[sizeof(server->last_complaint)];

    snprintf(line, sizeof(line), "refused pid %d on the control socket: %s", (int)peer->pid,
             problem);
    if (strcmp(line, server->last_complaint) == 0)
        return;
    memcpy(server->last_complaint, line, sizeof(line));
    log_line(server, "%s", line);
}

static void cut_peer(struct peer *peer)
{
    close(peer->fd); /* leaves the epoll set with it */
    *peer = (struct peer){.fd = -1};
}

static void refuse_peer(struct hb_api_server *server, struct peer *peer, int error,
                        uint32_t sequence, const char *problem)
{
    struct hb_refused refused = {.error = (uint32_t)error};

    hb_message_begin(&refused.header, HB_MSG_REFUSED, sizeof(refused), sequence);
    snprintf(refused.text, sizeof(refused.text), "%s", problem);
    send(peer->fd, &refused, sizeof(refused), MSG_NOSIGNAL | MSG_DONTWAIT);
    log_complaint(server, peer, problem);
    cut_peer(peer);
}

static void send_reply(struct hb_api_server *server, struct peer *peer, const void *reply,
                       size_t size, const int *fds, size_t fds_count)
{
    union {
        char bytes[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct iovec part = {.iov_base = (void *)(uintptr_t)reply, .iov_len = size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    if (fds_count > 0) {
        struct cmsghdr *rights;

        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(fds_count * sizeof(int));
        rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(fds_count * sizeof(int));
        memcpy(CMSG_DATA(rights), fds, fds_count * sizeof(int));
    }
    if (sendmsg(peer->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size)
        return;
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        log_complaint(server, peer, "it does not read its replies");
    else
        log_line(server, "control (pid %d) is gone: %s", (int)peer->pid, strerror(errno));
    cut_peer(peer);
}

/* The control that is connected. One whose process has ended no longer counts, even when its end of
 * the connection has not been looked at yet. */
static struct peer *find_control(struct hb_api_server *server)
{
    for (struct peer *peer = server->peer; peer < server->peer + PEERS_MAX; peer++) {
        struct pollfd end = {.fd = peer->fd, .events = POLLRDHUP};

        if (peer->fd < 0 || !peer->greeted)
            continue;
        if (poll(&end, 1, 0) <= 0 || (end.revents & (POLLRDHUP | POLLHUP | POLLERR)) == 0)
            return peer;
        log_line(server, "control (pid %d) is gone; forwarding goes on", (int)peer->pid);
        cut_peer(peer);
    }
    return NULL;
}

static void answer_hello(struct hb_api_server *server, struct peer *peer,
                         const struct hb_hello *hello)
{
    const struct peer *control = find_control(server);
    struct hb_hello_reply reply = {0};
    int fds[2] = {-1, -1};

    if (control != NULL) {
        char problem[HB_TEXT_SIZE];

        snprintf(problem, sizeof(problem),
                 "another control (pid %d) is connected to this dataplane; stop it first",
                 (int)control->pid);
        refuse_peer(server, peer, EBUSY, hello->header.sequence, problem);
        return;
    }
    peer->greeted = true;
    server->last_complaint[0] = '\0';
    log_line(server, "control connected: %.*s, pid %d", HB_NAME_SIZE, hello->name, (int)peer->pid);
    server->handlers->hello(server->handlers->context, &reply, fds);
    hb_message_begin(&reply.header, HB_MSG_HELLO_REPLY, sizeof(reply), hello->header.sequence);
    send_reply(server, peer, &reply, sizeof(reply), fds, fds[0] < 0 ? 0 : fds[1] < 0 ? 1 : 2);
}

static void answer_publish(struct hb_api_server *server, struct peer *peer,
                           const struct hb_publish *request, int fd)
{
    struct hb_publish_reply reply = {0};

    server->handlers->publish(server->handlers->context, request, fd, &reply);
    hb_message_begin(&reply.header, HB_MSG_PUBLISH_REPLY, sizeof(reply), request->header.sequence);
    send_reply(server, peer, &reply, sizeof(reply), NULL, 0);
}

static void answer_lookup(struct hb_api_server *server, struct peer *peer,
                          const struct hb_lookup *request)
{
    struct hb_lookup_reply reply = {0};

    server->handlers->lookup(server->handlers->context, request, &reply);
    hb_message_begin(&reply.header, HB_MSG_LOOKUP_REPLY, sizeof(reply), request->header.sequence);
    send_reply(server, peer, &reply, sizeof(reply), NULL, 0);
}

static void answer_settle(struct hb_api_server *server, struct peer *peer,
                          const struct hb_settle *request)
{
    struct hb_settle_reply reply = {0};

    server->handlers->settle(server->handlers->context, request, &reply);
    hb_message_begin(&reply.header, HB_MSG_SETTLE_REPLY, sizeof(reply), request->header.sequence);
    send_reply(server, peer, &reply, sizeof(reply), NULL, 0);
}

static void answer_flush(struct hb_api_server *server, struct peer *peer,
                         const struct hb_message_header *request)
{
    struct hb_flush_reply reply = {0};

    server->handlers->flush(server->handlers->context, &reply);
    hb_message_begin(&reply.header, HB_MSG_FLUSH_REPLY, sizeof(reply), request->sequence);
    send_reply(server, peer, &reply, sizeof(reply), NULL, 0);
}

/* Takes the file descriptors out of a received message: the first is returned (-1: none), the
 * others are closed. */
static int take_fd(struct msghdr *message)
{
    int first = -1;

    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part != NULL;
         part = CMSG_NXTHDR(message, part)) {
        size_t count;

        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
            continue;
        count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(fd));
            if (first < 0)
                first = fd;
            else
                close(fd);
        }
    }
    return first;
}

/* Reads and answers one message. Returns false when there was none or the peer is gone. */
static bool serve_message(struct hb_api_server *server, struct peer *peer)
{
    union {
        struct hb_message_header header;
        struct hb_hello hello;
        struct hb_publish publish;
        struct hb_lookup lookup;
        struct hb_settle settle;
        uint8_t bytes[HB_MESSAGE_MAX];
    } packet;
    union {
        char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec part = {.iov_base = &packet, .iov_len = sizeof(packet)};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    ssize_t size = recvmsg(peer->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_TRUNC);
    char problem[HB_TEXT_SIZE];
    int fd, error;

    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    fd = size < 0 ? -1 : take_fd(&message);
    if (size <= 0) {
        if (fd >= 0)
            close(fd);
        if (peer->greeted)
            log_line(server, "control (pid %d) is gone; forwarding goes on", (int)peer->pid);
        cut_peer(peer);
        return false;
    }
    if ((size_t)size > sizeof(packet)) {
        snprintf(problem, sizeof(problem), "a message of %zd bytes, the largest has %d", size,
                 HB_MESSAGE_MAX);
        error = -EMSGSIZE;
    } else {
        error = hb_message_check(&packet, (size_t)size, peer->greeted, problem);
    }
    if (fd >= 0 && (error != 0 || packet.header.type != HB_MSG_PUBLISH)) {
        close(fd);
        fd = -1;
    }
    if (error != 0)
        refuse_peer(server, peer, -error,
                    (size_t)size >= sizeof(packet.header) ? packet.header.sequence : 0, problem);
    else if (packet.header.type == HB_MSG_HELLO)
        answer_hello(server, peer, &packet.hello);
    else if (packet.header.type == HB_MSG_PUBLISH)
        answer_publish(server, peer, &packet.publish, fd);
    else if (packet.header.type == HB_MSG_LOOKUP)
        answer_lookup(server, peer, &packet.lookup);
    else if (packet.header.type == HB_MSG_SETTLE)
        answer_settle(server, peer, &packet.settle);
    else
        answer_flush(server, peer, &packet.header);
    return peer->fd >= 0;
}

static void accept_peers(struct hb_api_server *server)
{
    for (;;) {
        int fd = accept4(server->listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        struct peer *peer = server->peer, extra;
        struct epoll_event event = {.events = EPOLLIN};
        struct ucred credentials = {0};
        socklen_t size = sizeof(credentials);

        if (fd < 0)
            return;
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size);
        while (peer < server->peer + PEERS_MAX && peer->fd >= 0)
            peer++;
        if (peer == server->peer + PEERS_MAX)
            peer = &extra;
        *peer = (struct peer){
            .fd = fd, .pid = credentials.pid, .deadline_ms = now_ms() + HB_HELLO_TIMEOUT_MS};
        event.data.ptr = peer;
        if (peer == &extra || epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
            refuse_peer(server, peer, EBUSY, 0, "too many connections that have not said hello");
    }
}

struct hb_api_server *hb_api_server_create(const struct hb_api_listener *listener,
                                           const struct hb_api_handlers *handlers)
{
    struct hb_api_server *server = calloc(1, sizeof(*server));
    struct epoll_event event = {.events = EPOLLIN};

    if (server == NULL)
        return NULL;
    server->listener = listener;
    server->handlers = handlers;
    for (unsigned i = 0; i < PEERS_MAX; i++)
        server->peer[i].fd = -1;
    server->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (server->epoll < 0 || epoll_ctl(server->epoll, EPOLL_CTL_ADD, listener->fd, &event) != 0) {
        int error = errno;

        hb_api_server_destroy(server);
        errno = error;
        return NULL;
    }
    return server;
}

void hb_api_server_destroy(struct hb_api_server *server)
{
    if (server == NULL)
        return;
    for (unsigned i = 0; i < PEERS_MAX; i++)
        if (server->peer[i].fd >= 0)
            cut_peer(&server->peer[i]);
    if (server->epoll >= 0)
        close(server->epoll);
    free(server);
}

int hb_api_server_fd(const struct hb_api_server *server)
{
    return server->epoll;
}

int hb_api_server_timeout_ms(const struct hb_api_server *server)
{
    int64_t now = now_ms(), next = -1;

    for (const struct peer *peer = server->peer; peer < server->peer + PEERS_MAX; peer++) {
        int64_t left = peer->deadline_ms > now ? peer->deadline_ms - now : 0;

        if (peer->fd >= 0 && !peer->greeted && (next < 0 || left < next))
            next = left;
    }
    return (int)next;
}

void hb_api_server_step(struct hb_api_server *server)
{
    struct epoll_event events[PEERS_MAX + 1];
    int count = epoll_wait(server->epoll, events, PEERS_MAX + 1, 0);
    int64_t now;

    for (int i = 0; i < count; i++) {
        struct peer *peer = events[i].data.ptr;

        if (peer == NULL)
            accept_peers(server);
        else if (peer->fd >= 0) /* may have been cut for an earlier event */
            serve_message(server, peer);
    }
    now = now_ms();
    for (struct peer *peer = server->peer; peer < server->peer + PEERS_MAX; peer++)
        if (peer->fd >= 0 && !peer->greeted && peer->deadline_ms <= now)
            refuse_peer(server, peer, ETIMEDOUT, 0, "no HELLO within two seconds");
}
