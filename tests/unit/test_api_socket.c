/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "api_socket.h"
#include "log.h"

static char folder[64], path[80], lock[96];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/hb-socket-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof(path), "%s/s", folder);
    snprintf(lock, sizeof(lock), "%s.lock", path);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    unlink(lock);
    return rmdir(folder);
}

static int connect_to(const char *to)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0), error;

    strcpy(address.sun_path, to);
    error = connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 ? 0 : -errno;
    close(fd);
    return error;
}

static void test_open_and_close(void **state)
{
    struct hb_api_socket listener;
    struct stat status;

    (void)state;
    assert_int_equal(hb_api_socket_open(&listener, path), 0);
    assert_int_equal(connect_to(path), 0);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0660);
    hb_api_socket_close(&listener);
    assert_int_equal(connect_to(path), -ENOENT);
}

static void test_a_live_socket_is_not_taken(void **state)
{
    struct hb_api_socket first, second;

    (void)state;
    assert_int_equal(hb_api_socket_open(&first, path), 0);
    assert_int_equal(hb_api_socket_open(&second, path), -EADDRINUSE);
    assert_int_equal(connect_to(path), 0);
    hb_api_socket_close(&first);
    assert_int_equal(hb_api_socket_open(&second, path), 0);
    hb_api_socket_close(&second);
}

/* A process that was killed leaves its socket, but not its lock. */
static void test_a_stale_socket_is_replaced(void **state)
{
    struct hb_api_socket dead, next;

    (void)state;
    assert_int_equal(hb_api_socket_open(&dead, path), 0);
    close(dead.fd);
    close(dead.lock_fd);
    free(dead.path);
    assert_int_equal(connect_to(path), -ECONNREFUSED);
    assert_int_equal(hb_api_socket_open(&next, path), 0);
    assert_int_equal(connect_to(path), 0);
    hb_api_socket_close(&next);
}

/* Another kind of server, which knows nothing of our lock. */
static void test_a_live_socket_without_a_lock(void **state)
{
    struct hb_api_socket other, next;

    (void)state;
    assert_int_equal(hb_api_socket_open(&other, path), 0);
    close(other.lock_fd);
    assert_int_equal(hb_api_socket_open(&next, path), -EADDRINUSE);
    assert_int_equal(connect_to(path), 0);
    close(other.fd);
    free(other.path);
}

static void test_what_is_not_a_socket_stays(void **state)
{
    struct hb_api_socket listener;
    char long_path[200];
    FILE *file = fopen(path, "w");

    (void)state;
    fclose(file);
    assert_int_equal(hb_api_socket_open(&listener, path), -EEXIST);
    assert_int_equal(access(path, F_OK), 0);
    memset(long_path, 'x', sizeof(long_path));
    long_path[sizeof(long_path) - 1] = '\0';
    assert_int_equal(hb_api_socket_open(&listener, long_path), -ENAMETOOLONG);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_open_and_close),
        CASE(test_a_live_socket_is_not_taken),
        CASE(test_a_stale_socket_is_replaced),
        CASE(test_a_live_socket_without_a_lock),
        CASE(test_what_is_not_a_socket_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
