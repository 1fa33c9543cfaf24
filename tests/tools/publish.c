/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * publish: the smallest control there can be, for trying a dataplane by hand and in tests.
 *
 *     publish SOCKET [COUNT [held|bad]]
 *
 * Says hello and prints the answer, publishes COUNT generations (default 1) that differ in their
 * slots, then asks for one flow. "held": from the second one on a generation names the tables of
 * the one before instead of carrying them. "bad": the last one has a wrong checksum, and is
 * published twice. Exit status 0 when every answer is the one that is due.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "blob.h"
#include "halbach/counters.h"
#include "halbach/protocol.h"

static int connection;

static void give_up(const char *what)
{
    fprintf(stderr, "publish: %s\n", what);
    exit(1);
}

static void begin(struct hb_message_header *header, uint16_t type, size_t length)
{
    static uint32_t sequence;

    *header = (struct hb_message_header){HB_PROTOCOL_MAGIC, HB_PROTOCOL_VERSION, type,
                                         (uint32_t)length, ++sequence};
}

/* One request and its reply. `fd` goes along unless it is -1. */
static void ask(const void *request, size_t size, int fd, void *reply, size_t reply_size)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    uint8_t buffer[HB_MESSAGE_MAX];
    const struct hb_message_header *header = (void *)buffer;
    struct iovec part = {(void *)(uintptr_t)request, size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t got;

    if (fd >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof(control.bytes);
        *CMSG_FIRSTHDR(&message) = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &fd, sizeof(fd));
    }
    if (sendmsg(connection, &message, MSG_NOSIGNAL) < 0)
        give_up("the connection broke");
    got = recv(connection, buffer, sizeof(buffer), 0);
    if (got >= (ssize_t)sizeof(struct hb_refused) && header->type == HB_MSG_REFUSED)
        give_up(((struct hb_refused *)buffer)->text);
    if (got != (ssize_t)reply_size)
        give_up("no answer, or one of the wrong length");
    memcpy(reply, buffer, reply_size);
}

static void say_hello(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct hb_hello hello = {.pid = (uint32_t)getpid(), .name = "publish"};
    struct hb_hello_reply reply;

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    connection = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    if (connect(connection, (struct sockaddr *)&address, sizeof(address)) != 0)
        give_up("no dataplane listens at this path");
    begin(&hello.header, HB_MSG_HELLO, sizeof(hello));
    ask(&hello, sizeof(hello), -1, &reply, sizeof(reply));
    printf("hello: %s pid %u, generation %" PRIu64 ", %u workers, %" PRIu64 " flows, %u ports\n",
           reply.version, reply.pid, reply.generation_number, reply.workers, reply.flows_max,
           reply.ports);
    for (uint32_t i = 0; i < reply.ports; i++)
        printf("  port %u %s %s index %u MTU %u link %s\n", reply.port[i].id, reply.port[i].driver,
               reply.port[i].ifname, reply.port[i].ifindex, reply.port[i].mtu,
               reply.port[i].link_up ? "up" : "down");
}

static uint32_t publish(const void *blob, size_t size, uint64_t number)
{
    struct hb_publish request = {.number = number};
    struct hb_publish_reply reply;
    int fd = blob_sealed_memfd(blob, size);

    begin(&request.header, HB_MSG_PUBLISH, sizeof(request));
    ask(&request, sizeof(request), fd, &reply, sizeof(reply));
    close(fd);
    if (reply.reason != HB_REJECT_NONE || number < 4)
        printf("publish %" PRIu64 ": %s; serving %" PRIu64 ", adopted in %" PRIu64
               " us, grace %" PRIu64 " us%s%s\n",
               number, hb_reject_text(reply.reason), reply.number, reply.adopt_ns / 1000,
               reply.grace_ns / 1000, reply.text[0] ? ": " : "", reply.text);
    return reply.reason;
}

static void look_up(void)
{
    struct hb_lookup request = {.flow = {.protocol = HB_PROTOCOL_TCP, .family = HB_FAMILY_IPV4}};
    struct hb_lookup_reply reply;

    inet_pton(AF_INET, "10.9.0.2", request.flow.source);
    inet_pton(AF_INET, "192.0.2.10", request.flow.destination);
    request.flow.source_port = htons(4711);
    request.flow.destination_port = htons(80);
    begin(&request.header, HB_MSG_LOOKUP, sizeof(request));
    ask(&request, sizeof(request), -1, &reply, sizeof(reply));
    printf(
        "lookup: source %u, service %u, slot %u of %u, table says backend %u, next packet to %u\n",
        reply.source, reply.service, reply.slot, reply.slots, reply.table_backend, reply.backend);
    if (reply.source < HB_LOOKUP_TABLE)
        give_up("the example's VIP is not served");
}

int main(int argc, char **argv)
{
    uint32_t count = argc > 2 ? (uint32_t)atoi(argv[2]) : 1;
    const char *how = argc > 3 ? argv[3] : "";
    uint16_t owner[13];

    if (argc < 2)
        give_up("usage: publish SOCKET [COUNT [held|bad]]");
    say_hello(argv[1]);
    for (uint32_t i = 1; i <= count; i++) {
        struct blob_plan plan = blob_example();
        size_t size;
        uint8_t *blob;

        plan.number = i;
        for (uint32_t slot = 0; slot < 13; slot++)
            owner[slot] = (uint16_t)(1 + (slot * (strcmp(how, "held") == 0 ? 1 : i) / 3) % 2);
        plan.pool[0].owner = owner;
        plan.pool[0].leave_out_body = plan.pool[1].leave_out_body =
            i > 1 && strcmp(how, "held") == 0;
        blob = blob_build(&plan, &size);
        if (strcmp(how, "bad") == 0 && i == count) {
            blob[size - 1] ^= 1;
            publish(blob, size, i);
            return publish(blob, size, i) == HB_REJECT_CHECKSUM ? 0 : 1;
        }
        if (publish(blob, size, i) != HB_REJECT_NONE)
            return 1;
        free(blob);
    }
    look_up();
    return 0;
}
