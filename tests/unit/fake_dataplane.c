/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake_dataplane.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define DEADLINE_MS 10000

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

int fake_memfd(const void *data, size_t size, int seals)
{
    int fd = memfd_create("fake", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, size), size);
    if (seals)
        assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

static void make_counters(struct fake_dataplane *fake)
{
    struct hb_counters_header header = {
        .magic = HB_COUNTERS_MAGIC,
        .version = HB_COUNTERS_VERSION,
        .header_size = sizeof(header),
        .instance = FAKE_INSTANCE,
        .workers = 2,
        .services_max = 4,
        .backends_max = 8,
        .drop_reasons = HB_DROP_COUNT,
        .worker_offset = sizeof(header),
        .worker_stride = hb_counters_block_bytes(4, 8, 0, 0),
    };

    header.total_size = header.worker_offset + header.workers * header.worker_stride;
    fake->counters_size = header.total_size;
    fake->counters_fd = fake_memfd(&header, sizeof(header), 0);
    assert_int_equal(ftruncate(fake->counters_fd, (off_t)header.total_size), 0);
    fake->counters =
        mmap(NULL, fake->counters_size, PROT_READ | PROT_WRITE, MAP_SHARED, fake->counters_fd, 0);
    assert_ptr_not_equal(fake->counters, MAP_FAILED);
    assert_int_equal(
        fcntl(fake->counters_fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE),
        0);
}

void fake_open(struct fake_dataplane *fake, struct event_base *base)
{
    memset(fake, 0, sizeof(*fake));
    fake->base = base;
    fake->listener = fake->connection = fake->received_fd = -1;
    strcpy(fake->directory, "/tmp/hb-cli-XXXXXX");
    assert_non_null(mkdtemp(fake->directory));
    snprintf(fake->path, sizeof(fake->path), "%s/dataplane.sock", fake->directory);
    make_counters(fake);
    fake_listen(fake);
}

void fake_listen(struct fake_dataplane *fake)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    strcpy(address.sun_path, fake->path);
    fake->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(fake->listener >= 0);
    assert_int_equal(bind(fake->listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fake->listener, 4), 0);
}

void fake_stop_listening(struct fake_dataplane *fake)
{
    if (fake->listener < 0)
        return;
    close(fake->listener);
    unlink(fake->path);
    fake->listener = -1;
}

static void drop_received_fd(struct fake_dataplane *fake)
{
    if (fake->received_fd >= 0)
        close(fake->received_fd);
    fake->received_fd = -1;
}

void fake_hang_up(struct fake_dataplane *fake)
{
    drop_received_fd(fake);
    if (fake->connection >= 0)
        close(fake->connection);
    fake->connection = -1;
}

void fake_close(struct fake_dataplane *fake)
{
    fake_hang_up(fake);
    fake_stop_listening(fake);
    munmap(fake->counters, fake->counters_size);
    close(fake->counters_fd);
    rmdir(fake->directory);
}

void fake_turn(struct fake_dataplane *fake)
{
    struct pollfd ends[2] = {
        {.fd = fake->listener, .events = POLLIN},
        {.fd = fake->connection, .events = POLLIN},
    };

    event_base_loop(fake->base, EVLOOP_NONBLOCK);
    poll(ends, 2, 1);
}

void fake_wait(struct fake_dataplane *fake, const unsigned *flag, unsigned wanted)
{
    uint64_t deadline = now_ms() + DEADLINE_MS;

    while (*flag < wanted) {
        fake_turn(fake);
        if (now_ms() > deadline)
            fail_msg("control did not do what was waited for");
    }
}

void fake_accept(struct fake_dataplane *fake)
{
    uint64_t deadline = now_ms() + DEADLINE_MS;

    fake_hang_up(fake);
    do {
        if (now_ms() > deadline)
            fail_msg("control does not connect");
        fake_turn(fake);
        fake->connection = accept4(fake->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    } while (fake->connection < 0);
}

static ssize_t read_message(struct fake_dataplane *fake)
{
    struct iovec part = {.iov_base = fake->message.bytes, .iov_len = HB_MESSAGE_MAX};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr envelope = {
        .msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof(control.bytes),
    };
    ssize_t size = recvmsg(fake->connection, &envelope, MSG_CMSG_CLOEXEC);
    struct cmsghdr *rights = size >= 0 ? CMSG_FIRSTHDR(&envelope) : NULL;

    drop_received_fd(fake);
    if (rights && rights->cmsg_type == SCM_RIGHTS)
        memcpy(&fake->received_fd, CMSG_DATA(rights), sizeof(int));
    return size;
}

void fake_receive(struct fake_dataplane *fake, uint16_t type)
{
    static const size_t sizes[] = {
        [HB_MSG_HELLO] = sizeof(struct hb_hello),   [HB_MSG_PUBLISH] = sizeof(struct hb_publish),
        [HB_MSG_LOOKUP] = sizeof(struct hb_lookup), [HB_MSG_SETTLE] = sizeof(struct hb_settle),
        [HB_MSG_FLUSH] = sizeof(struct hb_flush),
    };
    uint64_t deadline = now_ms() + DEADLINE_MS;
    ssize_t size;

    do {
        if (now_ms() > deadline)
            fail_msg("control sends nothing");
        fake_turn(fake);
        size = read_message(fake);
    } while (size < 0 && errno == EAGAIN);
    assert_int_equal(size, sizes[type]);
    assert_int_equal(fake->message.header.magic, HB_PROTOCOL_MAGIC);
    assert_int_equal(fake->message.header.version, HB_PROTOCOL_VERSION);
    assert_int_equal(fake->message.header.length, sizes[type]);
    assert_int_equal(fake->message.header.type, type);
}

bool fake_hears_nothing(struct fake_dataplane *fake)
{
    int i;

    for (i = 0; i < 10; i++)
        fake_turn(fake);
    return read_message(fake) < 0 && errno == EAGAIN;
}

void fake_send(struct fake_dataplane *fake, const void *message, size_t size, const int *fds,
               unsigned fds_count)
{
    struct iovec part = {.iov_base = (void *)(uintptr_t)message, .iov_len = size};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(16 * sizeof(int))];
    } control = {0};
    struct msghdr envelope = {.msg_iov = &part, .msg_iovlen = 1};

    if (fds_count > 0) {
        struct cmsghdr *rights;

        envelope.msg_control = control.bytes;
        envelope.msg_controllen = CMSG_SPACE(fds_count * sizeof(int));
        rights = CMSG_FIRSTHDR(&envelope);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(fds_count * sizeof(int));
        memcpy(CMSG_DATA(rights), fds, fds_count * sizeof(int));
    }
    assert_int_equal(sendmsg(fake->connection, &envelope, MSG_NOSIGNAL), size);
}

struct hb_message_header fake_header(const struct fake_dataplane *fake, uint16_t type, size_t size)
{
    return (struct hb_message_header){
        .magic = HB_PROTOCOL_MAGIC,
        .version = HB_PROTOCOL_VERSION,
        .type = type,
        .length = (uint32_t)size,
        .sequence = fake->message.header.sequence,
    };
}

struct hb_hello_reply fake_hello_reply(const struct fake_dataplane *fake)
{
    return (struct hb_hello_reply){
        .header = fake_header(fake, HB_MSG_HELLO_REPLY, sizeof(struct hb_hello_reply)),
        .instance = FAKE_INSTANCE,
        .flows_max = 1024,
        .pid = 4700,
        .workers = 2,
        .ports = 1,
        .version = "0.1.0",
        .port = {{.mtu = 1500, .ifname = "eth0", .driver = "net_fake"}},
    };
}

struct hb_publish_reply fake_publish_reply(const struct fake_dataplane *fake, uint32_t reason)
{
    return (struct hb_publish_reply){
        .header = fake_header(fake, HB_MSG_PUBLISH_REPLY, sizeof(struct hb_publish_reply)),
        .reason = reason,
        .number = reason == HB_REJECT_NONE ? fake->message.publish.number : 0,
    };
}

struct hb_refused fake_refused(const struct fake_dataplane *fake, const char *text)
{
    struct hb_refused refused = {
        .header = fake_header(fake, HB_MSG_REFUSED, sizeof(struct hb_refused)),
        .error = EBUSY,
    };

    snprintf(refused.text, sizeof(refused.text), "%s", text);
    return refused;
}

void fake_greet(struct fake_dataplane *fake)
{
    struct hb_hello_reply reply;

    fake_accept(fake);
    fake_receive(fake, HB_MSG_HELLO);
    reply = fake_hello_reply(fake);
    fake_send(fake, &reply, sizeof(reply), &fake->counters_fd, 1);
}

struct hb_generation_header fake_generation(uint64_t number)
{
    return (struct hb_generation_header){
        .magic = HB_GENERATION_MAGIC,
        .version = HB_GENERATION_VERSION,
        .header_size = sizeof(struct hb_generation_header),
        .total_size = sizeof(struct hb_generation_header),
        .number = number,
    };
}
