/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_control.c: a control for a halbach-dataplane that is being measured.
 *
 *     bench_control SOCKET
 *
 * Reads commands from its input, one a line, and answers each with one line of JSON:
 *
 *     publish VIPS POOLS BACKENDS SLOTS PORT    the first generation (bench_plan.h says what is in
 * it) swap COUNT PER_SECOND                     so many generations, each with one pool's table
 * changed counters                                  sums over the workers
 *
 * Ends at the end of its input. Exit status 1, with the reason on stderr, when the dataplane
 * refuses something or goes away.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "bench_plan.h"
#include "halbach/counters.h"
#include "halbach/generation.h"
#include "halbach/protocol.h"

static int connection;
static const struct hb_counters_header *region;
static struct bench_plan *plan;

static void give_up(const char *what)
{
    fprintf(stderr, "bench_control: %s\n", what);
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Sends a request, with a file descriptor unless it is -1. */
static void send_request(void *request, uint16_t type, size_t size, int fd)
{
    static uint32_t sequence;
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } extra = {0};
    struct iovec part = {request, size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    *(struct hb_message_header *)request = (struct hb_message_header){
        HB_PROTOCOL_MAGIC, HB_PROTOCOL_VERSION, type, (uint32_t)size, ++sequence};
    if (fd >= 0) {
        message.msg_control = &extra;
        message.msg_controllen = sizeof(extra.bytes);
        *CMSG_FIRSTHDR(&message) = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &fd, sizeof(fd));
    }
    if (sendmsg(connection, &message, MSG_NOSIGNAL) < 0)
        give_up("the dataplane closed the connection");
}

/* Takes the reply, of exactly `size` bytes; returns the first file descriptor that came, or -1. */
static int take_reply(void *reply, size_t size)
{
    union {
        char bytes[CMSG_SPACE(4 * sizeof(int))];
        struct cmsghdr align;
    } extra;
    uint8_t buffer[HB_MESSAGE_MAX];
    const struct hb_message_header *header = (void *)buffer;
    struct iovec part = {buffer, sizeof(buffer)};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &extra,
                             .msg_controllen = sizeof(extra.bytes)};
    ssize_t got = recvmsg(connection, &message, MSG_CMSG_CLOEXEC);
    struct cmsghdr *first;
    int fd = -1;

    if (got >= (ssize_t)sizeof(struct hb_refused) && header->type == HB_MSG_REFUSED)
        give_up(((struct hb_refused *)buffer)->text);
    if (got != (ssize_t)size)
        give_up("no reply, or one of another version; is the dataplane of the same build?");
    memcpy(reply, buffer, size);
    first = CMSG_FIRSTHDR(&message);
    if (first != NULL && first->cmsg_type == SCM_RIGHTS)
        memcpy(&fd, CMSG_DATA(first), sizeof(fd));
    return fd;
}

static void say_hello(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct hb_hello hello = {.pid = (uint32_t)getpid(), .name = "bench_control"};
    struct hb_hello_reply reply;
    struct stat status;
    int fd;

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connect(connection, (struct sockaddr *)&address, sizeof(address)) != 0)
        give_up("no dataplane listens at this path");
    send_request(&hello, HB_MSG_HELLO, sizeof(hello), -1);
    fd = take_reply(&reply, sizeof(reply));
    if (fd < 0 || fstat(fd, &status) != 0)
        give_up("the dataplane passed no counters");
    region = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (region == MAP_FAILED)
        give_up("the counters cannot be mapped");
    printf("{\"version\": \"%s\", \"workers\": %u, \"flows_max\": %" PRIu64 ", \"ports\": [",
           reply.version, reply.workers, reply.flows_max);
    for (uint32_t i = 0; i < reply.ports; i++)
        printf("%s{\"id\": %u, \"driver\": \"%s\"}", i > 0 ? ", " : "", reply.port[i].id,
               reply.port[i].driver);
    printf("]}\n");
}

/* Publishes the plan as it is now and appends what it took to the line. */
static void publish_next(void)
{
    struct hb_publish request = {0};
    struct hb_publish_reply reply;
    uint64_t start = now_ns(), built, size;
    int fd = bench_plan_memfd(plan, &request.number, &size);

    built = now_ns();
    send_request(&request, HB_MSG_PUBLISH, sizeof(request), fd);
    take_reply(&reply, sizeof(reply));
    close(fd);
    if (reply.reason != HB_REJECT_NONE)
        give_up(reply.text[0] != '\0' ? reply.text : hb_reject_text(reply.reason));
    printf("{\"bytes\": %" PRIu64 ", \"build_ns\": %" PRIu64 ", \"reply_ns\": %" PRIu64
           ", \"adopt_ns\": %" PRIu64 ", \"grace_ns\": %" PRIu64 "}",
           size, built - start, now_ns() - built, reply.adopt_ns, reply.grace_ns);
}

static void publish_first(const char *line)
{
    struct bench_plan_size size;
    unsigned port;

    if (sscanf(line, "publish %u %u %u %u %u", &size.vips, &size.pools, &size.backends, &size.slots,
               &port) != 5)
        give_up("usage: publish VIPS POOLS BACKENDS SLOTS PORT");
    size.port = (uint16_t)port;
    bench_plan_free(plan);
    plan = bench_plan_make(&size);
    if (plan == NULL)
        exit(1);
    publish_next();
    printf("\n");
}

static void swap(const char *line)
{
    unsigned count, per_second;
    uint64_t next = now_ns();

    if (sscanf(line, "swap %u %u", &count, &per_second) != 2 || per_second == 0 || plan == NULL)
        give_up("usage: swap COUNT PER_SECOND, after publish");
    printf("[");
    for (unsigned i = 0; i < count; i++) {
        struct timespec until;

        next += 1000000000 / per_second;
        until = (struct timespec){(time_t)(next / 1000000000), (long)(next % 1000000000)};
        bench_plan_change(plan, 0);
        printf("%s", i > 0 ? ", " : "");
        publish_next();
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0)
            ;
    }
    printf("]\n");
}

static void print_counters(void)
{
    struct hb_worker_counters sum = {0};
    uint64_t *to = (uint64_t *)&sum;

    for (uint32_t worker = 0; worker < region->workers; worker++) {
        const uint64_t *from = (const uint64_t *)hb_counters_worker(region, worker);

        for (uint32_t i = 0; i < sizeof(sum) / sizeof(*to); i++)
            to[i] += from[i];
    }
    printf("{\"at_ns\": %" PRIu64, now_ns());
#define PRINT(field) printf(", \"" #field "\": %" PRIu64, sum.field)
    PRINT(loops);
    PRINT(busy_loops);
    PRINT(rx_packets);
    PRINT(rx_bytes);
    PRINT(tx_packets);
    PRINT(tx_bytes);
    PRINT(punted_packets);
    PRINT(flow_hits);
    PRINT(flow_misses);
    PRINT(flow_inserts);
    PRINT(flow_insert_failures);
    PRINT(flow_expiries);
    PRINT(flow_evictions);
    PRINT(flows);
    PRINT(flows_max);
    printf(", \"drops\": {");
    for (uint32_t i = 0, printed = 0; i < HB_DROP_COUNT; i++)
        if (sum.drops[i] != 0)
            printf("%s\"%s\": %" PRIu64, printed++ > 0 ? ", " : "", hb_drop_name(i), sum.drops[i]);
    printf("}}\n");
}

int main(int argc, char **argv)
{
    char line[256];

    if (argc != 2)
        give_up("usage: bench_control SOCKET");
    say_hello(argv[1]);
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        if (strncmp(line, "publish ", 8) == 0)
            publish_first(line);
        else if (strncmp(line, "swap ", 5) == 0)
            swap(line);
        else if (strncmp(line, "counters", 8) == 0)
            print_counters();
        else
            give_up("unknown command; there are publish, swap and counters");
        fflush(stdout);
    }
    bench_plan_free(plan);
    return 0;
}
