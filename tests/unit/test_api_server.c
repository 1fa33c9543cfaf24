/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control socket with real sockets, in one process: the server is stepped by hand, the peers
 * are ours.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "api_messages.h"
#include "api_server.h"

#define DEADLINE_MS 10000

static struct fixture {
    char folder[64], path[96];
    char problem[HB_TEXT_SIZE];
    struct hb_api_listener listener;
    struct hb_api_handlers handlers;
    struct hb_api_server *server;
    int published_fd; /* the last that came, -1: none */
    uint32_t publishes, lookups, log_lines;
    char last_log[512];
} f;

static void on_hello(void *context, struct hb_hello_reply *reply, int fds[2])
{
    (void)context;
    reply->workers = 3;
    fds[0] = 0; /* any that is open */
    fds[1] = 1;
}

static void on_publish(void *context, const struct hb_publish *request, int fd,
                       struct hb_publish_reply *reply)
{
    (void)context;
    f.publishes++;
    f.published_fd = fd;
    reply->number = request->number;
    if (fd >= 0)
        close(fd);
}

static void on_settle(void *context, const struct hb_settle *request, struct hb_settle_reply *reply)
{
    (void)context;
    reply->known = 1;
    reply->first = request->first;
    reply->idle[HB_SETTLE_WORDS - 1] = request->idle_ms;
}

static void on_flush(void *context, struct hb_flush_reply *reply)
{
    (void)context;
    reply->flows = 4711;
}

static void on_lookup(void *context, const struct hb_lookup *request, struct hb_lookup_reply *reply)
{
    (void)context;
    f.lookups++;
    reply->hash = request->flow.source_port;
}

static void on_log(void *context, const char *line)
{
    (void)context;
    f.log_lines++;
    snprintf(f.last_log, sizeof(f.last_log), "%s", line);
}

static int set_up(void **state)
{
    (void)state;
    memset(&f, 0, sizeof(f));
    snprintf(f.folder, sizeof(f.folder), "/tmp/hb-test-api-XXXXXX");
    if (mkdtemp(f.folder) == NULL)
        return -1;
    snprintf(f.path, sizeof(f.path), "%s/socket", f.folder);
    f.handlers = (struct hb_api_handlers){NULL,      on_hello, on_publish, on_lookup,
                                          on_settle, on_flush, on_log};
    if (hb_api_listener_open(&f.listener, f.path, f.problem) != 0)
        return -1;
    f.server = hb_api_server_create(&f.listener, &f.handlers);
    return f.server == NULL ? -1 : 0;
}

static int tear_down(void **state)
{
    (void)state;
    hb_api_server_destroy(f.server);
    hb_api_listener_close(&f.listener);
    unlink(f.path);
    return rmdir(f.folder);
}

static int dial(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", f.path);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Steps the server until `peer` has something to read (or its end), and reads it. */
static ssize_t receive(int peer, void *buffer, size_t size)
{
    int64_t end = now_ms() + DEADLINE_MS;

    while (now_ms() < end) {
        struct pollfd both[] = {{.fd = peer, .events = POLLIN},
                                {.fd = hb_api_server_fd(f.server), .events = POLLIN}};
        int timeout = hb_api_server_timeout_ms(f.server);

        assert_true(timeout <= HB_HELLO_TIMEOUT_MS);
        poll(both, 2, timeout < 0 ? 100 : timeout);
        if (both[0].revents != 0)
            return recv(peer, buffer, size, MSG_DONTWAIT);
        hb_api_server_step(f.server);
    }
    fail_msg("the server does not answer");
    return -1;
}

static void send_hello(int peer)
{
    struct hb_hello hello = {.name = "test"};

    hb_message_begin(&hello.header, HB_MSG_HELLO, sizeof(hello), 42);
    assert_int_equal(send(peer, &hello, sizeof(hello), 0), sizeof(hello));
}

static void greet(int peer)
{
    struct hb_hello_reply reply;

    send_hello(peer);
    assert_int_equal(receive(peer, &reply, sizeof(reply)), sizeof(reply));
    assert_int_equal(reply.header.type, HB_MSG_HELLO_REPLY);
    assert_int_equal(reply.header.sequence, 42);
    assert_int_equal(reply.workers, 3);
}

/* The peer must get REFUSED with these words and this error, then the end. */
static void expect_refusal(int peer, int error, const char *words)
{
    struct hb_refused refused;
    char byte;

    assert_int_equal(receive(peer, &refused, sizeof(refused)), sizeof(refused));
    assert_int_equal(refused.header.type, HB_MSG_REFUSED);
    assert_int_equal(refused.error, error);
    if (strstr(refused.text, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", refused.text, words);
    assert_int_equal(receive(peer, &byte, 1), 0);
    close(peer);
}

static void send_with_fds(int peer, const void *message, size_t size, const int *fds, size_t count)
{
    union {
        char bytes[CMSG_SPACE(32 * sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct iovec part = {(void *)(uintptr_t)message, size};
    struct msghdr header = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = CMSG_SPACE(count * sizeof(int))};

    *CMSG_FIRSTHDR(&header) = (struct cmsghdr){.cmsg_len = CMSG_LEN(count * sizeof(int)),
                                               .cmsg_level = SOL_SOCKET,
                                               .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(CMSG_FIRSTHDR(&header)), fds, count * sizeof(int));
    assert_true(sendmsg(peer, &header, 0) >= 0);
}

static uint32_t count_open_fds(void)
{
    DIR *folder = opendir("/proc/self/fd");
    uint32_t count = 0;

    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

static void a_session_works(void **state)
{
    struct hb_publish publish = {.number = 9};
    struct hb_publish_reply published;
    struct hb_lookup lookup = {.flow.source_port = 40000};
    struct hb_lookup_reply looked_up;
    struct hb_settle settle = {.first = 64000, .idle_ms = 5};
    struct hb_settle_reply settled;
    struct hb_flush flush;
    struct hb_flush_reply flushed;
    int peer = dial();

    (void)state;
    greet(peer);
    hb_message_begin(&settle.header, HB_MSG_SETTLE, sizeof(settle), 41);
    hb_message_begin(&flush.header, HB_MSG_FLUSH, sizeof(flush), 42);
    send(peer, &settle, sizeof(settle), 0);
    send(peer, &flush, sizeof(flush), 0);
    assert_int_equal(receive(peer, &settled, sizeof(settled)), sizeof(settled));
    assert_int_equal(settled.header.type, HB_MSG_SETTLE_REPLY);
    assert_int_equal(settled.header.sequence, 41);
    assert_int_equal(settled.first, 64000);
    assert_int_equal(settled.idle[HB_SETTLE_WORDS - 1], 5);
    assert_int_equal(receive(peer, &flushed, sizeof(flushed)), sizeof(flushed));
    assert_int_equal(flushed.header.type, HB_MSG_FLUSH_REPLY);
    assert_int_equal(flushed.flows, 4711);
    assert_non_null(strstr(f.last_log, "control connected: test"));
    hb_message_begin(&publish.header, HB_MSG_PUBLISH, sizeof(publish), 43);
    hb_message_begin(&lookup.header, HB_MSG_LOOKUP, sizeof(lookup), 44);
    send(peer, &publish, sizeof(publish), 0); /* two requests at once */
    send(peer, &lookup, sizeof(lookup), 0);
    assert_int_equal(receive(peer, &published, sizeof(published)), sizeof(published));
    assert_int_equal(published.header.sequence, 43);
    assert_int_equal(published.number, 9);
    assert_int_equal(f.published_fd, -1);
    assert_int_equal(receive(peer, &looked_up, sizeof(looked_up)), sizeof(looked_up));
    assert_int_equal(looked_up.header.sequence, 44);
    assert_int_equal(looked_up.hash, 40000);
    close(peer);
}

static void the_hello_passes_two_descriptors(void **state)
{
    union {
        char bytes[CMSG_SPACE(4 * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct hb_hello_reply reply;
    struct iovec part = {&reply, sizeof(reply)};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control.bytes)};
    struct pollfd wait;
    int peer = dial(), fds[2];

    (void)state;
    send_hello(peer);
    wait = (struct pollfd){.fd = peer, .events = POLLIN};
    for (int i = 0; i < 1000 && poll(&wait, 1, 1) == 0; i++)
        hb_api_server_step(f.server);
    assert_int_equal(recvmsg(peer, &message, MSG_CMSG_CLOEXEC), sizeof(reply));
    assert_int_equal(CMSG_FIRSTHDR(&message)->cmsg_len, CMSG_LEN(2 * sizeof(int)));
    memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fds));
    close(fds[0]);
    close(fds[1]);
    close(peer);
}

static void a_second_control_is_refused_until_the_first_ends(void **state)
{
    int first = dial(), second;
    char pid[32];

    (void)state;
    greet(first);
    snprintf(pid, sizeof(pid), "(pid %d)", (int)getpid());
    for (int i = 0; i < 3; i++) {
        second = dial();
        send_hello(second);
        expect_refusal(second, EBUSY, pid);
    }
    assert_int_equal(f.log_lines, 2); /* the same complaint is logged once */
    close(first);
    /* Its end has not been looked at yet when the next hello comes. */
    second = dial();
    greet(second);
    close(second);
}

static void garbage_is_refused(void **state)
{
    static const uint8_t big[HB_MESSAGE_MAX + 1] = {0};
    struct hb_hello hello = {.name = "test"};
    int peer;

    (void)state;
    peer = dial(), send(peer, "GET / HTTP/1.0\r\n\r\n", 18, 0);
    expect_refusal(peer, EBADMSG, "not a message");
    peer = dial(), send(peer, big, sizeof(big), 0);
    expect_refusal(peer, EMSGSIZE, "8193 bytes");
    peer = dial(), send(peer, "x", 1, 0);
    expect_refusal(peer, EBADMSG, "1 bytes");
    hb_message_begin(&hello.header, HB_MSG_HELLO, sizeof(hello), 1);
    hello.header.version = HB_PROTOCOL_VERSION + 1;
    peer = dial(), send(peer, &hello, sizeof(hello), 0);
    expect_refusal(peer, EPROTONOSUPPORT, "version 3");
    hello.header.version = HB_PROTOCOL_VERSION;
    peer = dial(), send(peer, &hello, sizeof(hello) - 1, 0);
    expect_refusal(peer, EMSGSIZE, "HELLO");
    /* A peer that goes wrong later is cut too, and the place is free again. */
    peer = dial(), greet(peer), send_hello(peer);
    expect_refusal(peer, EPROTO, "second HELLO");
    peer = dial(), greet(peer), close(peer);
}

static void a_silent_peer_is_cut(void **state)
{
    int64_t start = now_ms();
    int peer = dial();

    (void)state;
    expect_refusal(peer, ETIMEDOUT, "no HELLO");
    assert_true(now_ms() - start >= HB_HELLO_TIMEOUT_MS - 50);
    assert_int_equal(hb_api_server_timeout_ms(f.server), -1);
}

static void many_silent_peers_do_not_keep_control_out(void **state)
{
    int peers[24], control;
    char byte;

    (void)state;
    control = dial();
    greet(control);
    for (int i = 0; i < 24; i++) {
        peers[i] = dial();
        hb_api_server_step(f.server);
    }
    for (int i = 0; i < 24; i++)
        while (receive(peers[i], &byte, 1) > 0) /* refused at once or after two seconds */
            ;
    for (int i = 0; i < 24; i++)
        close(peers[i]);
    close(control);
    control = dial();
    greet(control);
    close(control);
}

static void no_descriptor_leaks(void **state)
{
    struct hb_publish publish = {.number = 1};
    struct hb_publish_reply reply;
    struct hb_lookup lookup = {0};
    struct hb_lookup_reply looked_up;
    int peer = dial(), fds[20];
    uint32_t before;
    char byte;

    (void)state;
    greet(peer);
    before = count_open_fds();
    for (int i = 0; i < 20; i++)
        fds[i] = 0;
    hb_message_begin(&publish.header, HB_MSG_PUBLISH, sizeof(publish), 1);
    hb_message_begin(&lookup.header, HB_MSG_LOOKUP, sizeof(lookup), 1);
    for (size_t count = 1; count <= 20; count++) {
        send_with_fds(peer, &publish, sizeof(publish), fds, count);
        assert_int_equal(receive(peer, &reply, sizeof(reply)), sizeof(reply));
        assert_true(f.published_fd >= 0);
        send_with_fds(peer, &lookup, sizeof(lookup), fds, count);
        assert_int_equal(receive(peer, &looked_up, sizeof(looked_up)), sizeof(looked_up));
    }
    assert_int_equal(count_open_fds(), before);
    send_with_fds(peer, "", 0, fds, 3); /* an empty message ends the connection */
    while (receive(peer, &byte, 1) > 0)
        ;
    assert_int_equal(count_open_fds(), before - 1); /* the server's end of it */
    close(peer);
}

static void a_peer_that_does_not_read_is_cut(void **state)
{
    struct hb_lookup lookup = {0};
    int peer = dial();
    uint32_t sent = 0;

    (void)state;
    greet(peer);
    hb_message_begin(&lookup.header, HB_MSG_LOOKUP, sizeof(lookup), 1);
    while (send(peer, &lookup, sizeof(lookup), MSG_DONTWAIT | MSG_NOSIGNAL) > 0 ||
           errno == EAGAIN) {
        hb_api_server_step(f.server);
        assert_true(++sent < 100000);
    }
    assert_non_null(strstr(f.last_log, "does not read"));
    close(peer);
}

static void the_socket_is_for_owner_and_group(void **state)
{
    struct stat about;

    (void)state;
    assert_int_equal(stat(f.path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0660);
}

static void a_path_that_is_served_is_refused(void **state)
{
    struct hb_api_listener other;
    char pid[32];

    (void)state;
    assert_int_equal(hb_api_listener_open(&other, f.path, f.problem), -EADDRINUSE);
    snprintf(pid, sizeof(pid), "another dataplane (pid %d)", (int)getpid());
    assert_non_null(strstr(f.problem, pid));
    assert_int_equal(access(f.path, F_OK), 0);
}

static void a_stale_socket_is_replaced(void **state)
{
    struct hb_api_listener other;
    pid_t child = fork();
    char path[128];
    int status;

    (void)state;
    snprintf(path, sizeof(path), "%s/stale", f.folder);
    if (child == 0) {
        hb_api_listener_open(&other, path, f.problem);
        _exit(0); /* as if killed: the file stays */
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(hb_api_listener_open(&other, path, f.problem), 0);
    hb_api_listener_close(&other);
    assert_int_equal(access(path, F_OK), -1);
}

static void other_files_are_left_alone(void **state)
{
    struct hb_api_listener other;
    char path[128];
    FILE *file;

    (void)state;
    snprintf(path, sizeof(path), "%s/file", f.folder);
    file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
    assert_int_equal(hb_api_listener_open(&other, path, f.problem), -EEXIST);
    assert_non_null(strstr(f.problem, "is not a socket"));
    assert_int_equal(unlink(path), 0);
    snprintf(path, sizeof(path), "%s/none/socket", f.folder);
    assert_int_equal(hb_api_listener_open(&other, path, f.problem), -ENOENT);
    assert_non_null(strstr(f.problem, "--socket"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_session_works),
        TEST(the_hello_passes_two_descriptors),
        TEST(a_second_control_is_refused_until_the_first_ends),
        TEST(garbage_is_refused),
        TEST(a_silent_peer_is_cut),
        TEST(many_silent_peers_do_not_keep_control_out),
        TEST(no_descriptor_leaks),
        TEST(a_peer_that_does_not_read_is_cut),
        TEST(the_socket_is_for_owner_and_group),
        TEST(a_path_that_is_served_is_refused),
        TEST(a_stale_socket_is_replaced),
        TEST(other_files_are_left_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
