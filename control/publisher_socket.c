/* SPDX-License-Identifier: BSD-3-Clause */
#include "publisher_socket.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int hb_dataplane_connect(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd, error;

    if (strlen(path) >= sizeof(address.sun_path))
        return -ENAMETOOLONG;
    memcpy(address.sun_path, path, strlen(path) + 1);

    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    error = errno;
    close(fd);
    return -error;
}

int hb_message_send(int fd, const void *message, size_t size, int passed_fd)
{
    struct iovec part = {.iov_base = (void *)(uintptr_t)message, .iov_len = size};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr envelope = {.msg_iov = &part, .msg_iovlen = 1};

    if (passed_fd >= 0) {
        struct cmsghdr *rights;

        envelope.msg_control = control.bytes;
        envelope.msg_controllen = sizeof(control.bytes);
        rights = CMSG_FIRSTHDR(&envelope);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(rights), &passed_fd, sizeof(int));
    }
    for (;;) {
        if (sendmsg(fd, &envelope, MSG_NOSIGNAL) >= 0)
            return 0; /* a packet goes whole or not at all */
        if (errno != EINTR)
            return -errno;
    }
}

static void take_fds(struct msghdr *envelope, struct hb_received *received)
{
    struct cmsghdr *part;

    for (part = CMSG_FIRSTHDR(envelope); part; part = CMSG_NXTHDR(envelope, part)) {
        size_t count, i;

        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
            continue;
        count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (i = 0; i < count; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
            if (received->fds_count < HB_RECEIVED_FDS)
                received->fds[received->fds_count++] = fd;
            else
                close(fd);
        }
    }
}

int hb_message_receive(int fd, struct hb_received *received)
{
    struct iovec part = {.iov_base = received->message.bytes, .iov_len = HB_MESSAGE_MAX};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(HB_RECEIVED_FDS * sizeof(int))];
    } control = {0};
    struct msghdr envelope = {
        .msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof(control.bytes),
    };
    ssize_t size;

    received->size = 0;
    received->truncated = 0;
    received->fds_count = 0;
    do {
        size = recvmsg(fd, &envelope, MSG_CMSG_CLOEXEC);
    } while (size < 0 && errno == EINTR);
    if (size < 0)
        return -errno;

    /* Before anything else, also for an empty packet: what arrived here has to be closed here. */
    take_fds(&envelope, received);
    received->size = (size_t)size;
    received->truncated = envelope.msg_flags & (MSG_TRUNC | MSG_CTRUNC);
    return size > 0;
}

void hb_received_close(struct hb_received *received)
{
    unsigned i;

    for (i = 0; i < received->fds_count; i++) {
        if (received->fds[i] >= 0)
            close(received->fds[i]);
    }
    received->fds_count = 0;
}

/* Texts of the peer end up in logs and on terminals: no control characters, always an end. */
static void clean_text(char *text, size_t size)
{
    size_t i;

    text[size - 1] = '\0';
    for (i = 0; text[i]; i++) {
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            text[i] = '?';
    }
}

static void clean_message(struct hb_received *received)
{
    struct hb_hello_reply *hello = &received->message.hello;
    unsigned i;

    switch (received->message.header.type) {
    case HB_MSG_REFUSED:
        clean_text(received->message.refused.text, HB_TEXT_SIZE);
        break;
    case HB_MSG_PUBLISH_REPLY:
        clean_text(received->message.publish.text, HB_TEXT_SIZE);
        break;
    case HB_MSG_HELLO_REPLY:
        clean_text(hello->version, sizeof(hello->version));
        for (i = 0; i < HB_PORTS_MAX; i++) {
            clean_text(hello->port[i].ifname, sizeof(hello->port[i].ifname));
            clean_text(hello->port[i].driver, sizeof(hello->port[i].driver));
        }
        break;
    }
}

/* A REFUSED may come from another version: that is what it is there to say. Only its size, the same
 * in all versions, shows that its text is one. */
static int is_refused(const struct hb_received *received)
{
    const struct hb_message_header *header = &received->message.header;

    return header->type == HB_MSG_REFUSED && received->size == sizeof(struct hb_refused) &&
           header->length == received->size && received->fds_count == 0;
}

static int find_fault(const struct hb_received *received, const struct hb_expected *expected,
                      char *why, size_t why_size)
{
    const struct hb_message_header *header = &received->message.header;

    if (received->truncated)
        return snprintf(why, why_size,
                        "a message is longer, or carries more descriptors, than any");
    if (received->size < sizeof(*header))
        return snprintf(why, why_size, "a message of %zu bytes is too short", received->size);
    if (header->magic != HB_PROTOCOL_MAGIC)
        return snprintf(why, why_size, "a message does not begin with the protocol's magic number");
    if (is_refused(received))
        return 0;
    if (header->version != HB_PROTOCOL_VERSION)
        return snprintf(why, why_size,
                        "it speaks version %u of the protocol, this control version %u; "
                        "install the same release of both",
                        header->version, HB_PROTOCOL_VERSION);
    if (header->length != received->size)
        return snprintf(why, why_size, "a message of %zu bytes says that it has %u", received->size,
                        header->length);
    if (!expected)
        return snprintf(why, why_size, "a message of type %u that nobody asked for", header->type);
    if (header->type != expected->type)
        return snprintf(why, why_size, "a message of type %u where type %u was due", header->type,
                        expected->type);
    if (header->sequence != expected->sequence)
        return snprintf(why, why_size, "an answer to request %u where %u was due", header->sequence,
                        expected->sequence);
    if (received->size != expected->size)
        return snprintf(why, why_size, "an answer of type %u with %zu bytes instead of %u",
                        header->type, received->size, expected->size);
    return 0;
}

int hb_received_check(struct hb_received *received, const struct hb_expected *expected, char *why,
                      size_t why_size)
{
    if (find_fault(received, expected, why, why_size) != 0)
        return -EPROTO;
    clean_message(received);
    return is_refused(received);
}
