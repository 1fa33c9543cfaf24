/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program itself against a small API server in a thread: exit statuses, what goes to which
 * stream, answers that are wrong, and waiting for a drain. The first argument is the program.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const char *program;

struct route {
    const char *request; /* "GET /v1/status" */
    const char *head;    /* "200 OK"; NULL: close without a word */
    const char *body;
    const char *then; /* not NULL: the body from the second time on */
    unsigned asked;
};

struct server {
    char directory[32], path[64];
    int listener, stop[2];
    pthread_t thread;
    struct route *routes;
    unsigned routes_count, asked; /* written by the thread; read when it has ended, or atomically */
    char last[512];               /* the last request line */
};

static void answer_request(struct server *server, int connection)
{
    char request[4096], reply[8192];
    size_t size = 0;
    unsigned i;

    while (size < sizeof(request) - 1) {
        ssize_t got = recv(connection, request + size, sizeof(request) - 1 - size, 0);

        if (got <= 0)
            return;
        size += (size_t)got;
        request[size] = '\0';
        if (strstr(request, "\r\n\r\n"))
            break;
    }
    *strstr(request, " HTTP/1.1\r\n") = '\0';
    snprintf(server->last, sizeof(server->last), "%.500s", request);
    __atomic_add_fetch(&server->asked, 1, __ATOMIC_RELEASE);
    for (i = 0; i < server->routes_count; i++) {
        struct route *route = &server->routes[i];
        const char *body = route->asked > 0 && route->then ? route->then : route->body;

        if (strcmp(route->request, request) != 0)
            continue;
        __atomic_add_fetch(&route->asked, 1, __ATOMIC_RELEASE);
        if (!route->head)
            return;
        snprintf(reply, sizeof(reply),
                 "HTTP/1.1 %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s", route->head,
                 strlen(body), body);
        send(connection, reply, strlen(reply), MSG_NOSIGNAL);
        return;
    }
    strcpy(reply, "HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n{\"error\": {\"message\": "
                  "\"no route\"}}");
    send(connection, reply, strlen(reply), MSG_NOSIGNAL);
}

static void *serve(void *argument)
{
    struct server *server = argument;
    struct pollfd ends[2] = {{.fd = server->listener, .events = POLLIN},
                             {.fd = server->stop[0], .events = POLLIN}};

    for (;;) {
        int connection;

        poll(ends, 2, -1);
        if (ends[1].revents)
            return NULL;
        connection = accept(server->listener, NULL, NULL);
        if (connection >= 0) {
            answer_request(server, connection);
            close(connection);
        }
    }
}

static void start_server(struct server *server, struct route *routes, unsigned count)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    memset(server, 0, sizeof(*server));
    strcpy(server->directory, "/tmp/hb-cli-XXXXXX");
    assert_non_null(mkdtemp(server->directory));
    snprintf(server->path, sizeof(server->path), "%s/control.sock", server->directory);
    server->routes = routes;
    server->routes_count = count;
    strcpy(address.sun_path, server->path);
    server->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server->listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(server->listener, 8), 0);
    assert_int_equal(pipe(server->stop), 0);
    assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

static void stop_server(struct server *server)
{
    assert_int_equal(write(server->stop[1], "x", 1), 1);
    pthread_join(server->thread, NULL);
    close(server->listener);
    close(server->stop[0]);
    close(server->stop[1]);
    unlink(server->path);
    rmdir(server->directory);
}

struct run {
    pid_t pid;
    int out_fd, err_fd;
    int status; /* the exit status, or -1 for a signal */
    char out[8192], err[4096];
};

/* Starts the program with these words after --socket PATH. */
static struct run start(const char *socket_path, const char *line)
{
    char *words = strdup(line), *word, *argv[16] = {(char *)(uintptr_t)program};
    struct run run = {0};
    int out[2], err[2], argc = 1;

    argv[argc++] = (char *)"--socket";
    argv[argc++] = (char *)(uintptr_t)socket_path;
    for (word = strtok(words, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    assert_int_equal(pipe(out), 0);
    assert_int_equal(pipe(err), 0);
    run.pid = fork();
    if (run.pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        dup2(err[1], STDERR_FILENO);
        close(out[0]);
        close(err[0]);
        setenv("http_proxy", "http://127.0.0.1:1", 1); /* must not matter */
        execv(program, argv);
        _exit(127);
    }
    close(out[1]);
    close(err[1]);
    run.out_fd = out[0];
    run.err_fd = err[0];
    free(words);
    return run;
}

static void read_all(int fd, char *to, size_t size)
{
    size_t used = 0;
    ssize_t got;

    while (used + 1 < size && (got = read(fd, to + used, size - 1 - used)) > 0)
        used += (size_t)got;
    to[used] = '\0';
    close(fd);
}

/* The outputs are small: they fit the pipes, so they may be read one after the other. */
static void finish(struct run *run)
{
    int status;

    read_all(run->out_fd, run->out, sizeof(run->out));
    read_all(run->err_fd, run->err, sizeof(run->err));
    assert_int_equal(waitpid(run->pid, &status, 0), run->pid);
    run->status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static struct run run_with(const char *socket_path, const char *line)
{
    struct run run = start(socket_path, line);

    finish(&run);
    return run;
}

static void expect_words(const char *text, const char *words)
{
    if (!strstr(text, words))
        fail_msg("\"%s\" does not say \"%s\"", text, words);
}

static void test_control_cannot_be_reached(void **state)
{
    char path[128], directory[] = "/tmp/hb-cli-XXXXXX", long_path[160];
    struct run run;
    FILE *file;

    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/control.sock", directory);
    run = run_with(path, "status");
    assert_int_equal(run.status, 1);
    assert_string_equal(run.out, "");
    expect_words(run.err, "halbachctl: cannot reach halbach-control at /tmp/hb-cli-");
    expect_words(run.err,
                 "No such file or directory; is halbach-control running? 'systemctl status "
                 "halbach-control' or --socket PATH\n");

    file = fopen(path, "w"); /* not a socket */
    fclose(file);
    run = run_with(path, "--json services");
    assert_int_equal(run.status, 1);
    assert_string_equal(run.out, "");
    expect_words(run.err, "Connection refused");
    unlink(path);
    rmdir(directory);

    memset(long_path, 'x', sizeof(long_path) - 1);
    long_path[sizeof(long_path) - 1] = '\0';
    run = run_with(long_path, "status");
    assert_int_equal(run.status, 1);
    expect_words(run.err, "File name too long");
}

static void test_answers_good_and_bad(void **state)
{
    struct route routes[] = {
        {.request = "GET /v1/services",
         .head = "200 OK",
         .body = "{\"services\": [{\"packets\": 18446744073709551615}],  \"new\": 1}\n"},
        {.request = "GET /v1/backends", .head = "200 OK", .body = "<html>"},
        {.request = "GET /v1/drops", .head = NULL},
        {.request = "GET /v1/stats", .head = "200 OK", .body = "[1]"},
        {.request = "POST /v1/backends/web%2F9%C2%A0%C3%BC/undrain?pool=a%26b",
         .head = "404 Not Found",
         .body = "{\"error\": {\"message\": \"no backend is named \\\"web/9\\u001b\\\"\"}}"},
        {.request = "POST /v1/reload",
         .head = "422 Unprocessable",
         .body = "{\"error\": {\"message\": \"halbach.yaml is refused; nothing changed\","
                 " \"complaints\": [\"halbach.yaml:12: a\", \"halbach.yaml:13: b\"]}}"},
        {.request =
             "GET /v1/lookup?client=203.0.113.9%3A1&vip=%5B2001%3Adb8%3A%3A1%5D%3A80&protocol=udp",
         .head = "200 OK",
         .body = "{\"source\": \"table\", \"backend\": \"web1\"}"},
    };
    struct server server;
    struct run run;

    (void)state;
    start_server(&server, routes, sizeof(routes) / sizeof(routes[0]));

    run = run_with(server.path, "services --json");
    assert_int_equal(run.status, 0);
    assert_string_equal(run.out,
                        "{\"services\": [{\"packets\": 18446744073709551615}],  \"new\": 1}\n");
    assert_string_equal(run.err, "");
    run = run_with(server.path, "services");
    expect_words(run.out, "18.4 E");

    run = run_with(server.path, "backends");
    assert_int_equal(run.status, 1);
    expect_words(run.err, "is no JSON object");
    run = run_with(server.path, "drops");
    assert_int_equal(run.status, 1);
    expect_words(run.err, "no usable answer from");
    run = run_with(server.path, "stats");
    assert_int_equal(run.status, 1);
    expect_words(run.err, "is no JSON object");

    run = run_with(server.path, "undrain web/9\xc2\xa0\xc3\xbc --pool a&b");
    assert_int_equal(run.status, 1);
    /* Escaped on the way there; nothing that could steer a terminal on the way back. */
    assert_string_equal(run.err, "halbachctl: no backend is named \"web/9?\"\n");

    run = run_with(server.path, "reload");
    assert_int_equal(run.status, 1);
    assert_string_equal(run.out, "");
    assert_string_equal(run.err, "halbachctl: halbach.yaml is refused; nothing changed\n"
                                 "  halbach.yaml:12: a\n  halbach.yaml:13: b\n");

    run = run_with(server.path, "lookup 203.0.113.9:1 [2001:db8::1]:80 udp");
    assert_int_equal(run.status, 0);
    expect_words(run.out, "goes to     web1");
    stop_server(&server);
}

static void test_wrong_usage_asks_nobody(void **state)
{
    static const char *const lines[] = {
        "lookup 203.0.113.9 192.0.2.10:80",       "lookup 203.0.113.9:1 192.0.2.10:99999",
        "lookup 203.0.113.9:1 2001:db8::1:80",    "lookup 203.0.113.9:1 192.0.2.10:80 icmp",
        "lookup web.example.org:1 192.0.2.10:80", "stauts",
        "lookup [192.0.2.1]:1 192.0.2.10:80",     "drain",
        "lookup 203.0.113.9:1x 192.0.2.10:80",
    };
    struct server server;
    size_t i;

    (void)state;
    start_server(&server, NULL, 0);
    for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct run run = run_with(server.path, lines[i]);

        assert_int_equal(run.status, 2);
        assert_string_equal(run.out, "");
        assert_true(run.err[0] != '\0');
    }
    stop_server(&server);
    assert_int_equal(server.asked, 0);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* Offline: there is no socket, and nobody asks for one. */
static void test_config_check(void **state)
{
    static const char good[] =
        "seed: 6f1c0a77b2d94e036f1c0a77b2d94e03\n"
        "pools:\n"
        "  - name: web\n"
        "    table_size: 251\n"
        "    backends:\n"
        "      - { name: web1, address: 198.51.100.11 }\n"
        "      - { name: web2, address: 198.51.100.12, weight: 0 }\n"
        "services:\n"
        "  - { name: www, vip: 192.0.2.10, protocol: tcp, port: 80, pool: web }\n";
    static const char bad[] = "seed: 6f1c0a77b2d94e036f1c0a77b2d94e03\n"
                              "pools:\n"
                              "  - name: web\n"
                              "    table_size: 252\n"
                              "    backends:\n"
                              "      - { name: web1, address: 198.51.100.300 }\n"
                              "services: []\n";
    char directory[] = "/tmp/hb-cli-XXXXXX", path[64], line[128];
    struct run run;

    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/halbach.yaml", directory);
    snprintf(line, sizeof(line), "config check %s", path);
    write_file(path, good);
    run = run_with("/nonexistent", line);
    assert_string_equal(run.err, "");
    assert_int_equal(run.status, 0);
    expect_words(run.out, "halbach.yaml: good; 1 service, 1 pool, 2 backends\n\n"
                          "POOL  ALGORITHM  SLOTS  BACKENDS  WEIGHT 0  SERVICES\n"
                          "web   maglev       251         2         1         1\n");

    write_file(path, bad);
    run = run_with("/nonexistent", line);
    assert_int_equal(run.status, 1);
    assert_string_equal(run.out, "");
    expect_words(run.err, "halbach.yaml:4: ");
    expect_words(run.err, "halbach.yaml:6: ");
    expect_words(run.err, "halbach.yaml is refused: ");

    strcat(line, " --json");
    run = run_with("/nonexistent", line);
    assert_int_equal(run.status, 1);
    assert_string_equal(run.err, "");
    expect_words(run.out, "\"good\": false");
    unlink(path);
    run = run_with("/nonexistent", line);
    assert_int_equal(run.status, 1);
    expect_words(run.out, "\"complaints\": [");
    rmdir(directory);
}

#define DRAINED(applied)                                                                           \
    "{\"applied\": " applied ", \"generation\": 8, \"backends\": [{\"pool\": \"web\","             \
    " \"name\": \"web3\", \"changed\": true, \"flows\": 12, \"moved\": 5, \"ideal\": 4}]}"
#define DRAINING(flows)                                                                            \
    "{\"backends\": [{\"pool\": \"web\", \"name\": \"web3\", \"state\": \"draining\","             \
    " \"draining\": true, \"flows\": " flows "}]}"
#define SEEN  "{\"dataplane\": {\"connected\": true}, \"generation\": {\"in_sync\": true}}"
#define BLIND "{\"dataplane\": {\"connected\": false}, \"generation\": {\"in_sync\": false}}"

/* The file goes there as it is, and complaints come back under its name. */
static void test_plan(void **state)
{
    char file[96], request[128], line[160];
    struct route routes[] = {
        {.request = request, .head = "200 OK", .body = "{\"changed\": false}"},
    };
    struct server server;
    struct run run;

    (void)state;
    start_server(&server, routes, 1);
    snprintf(request, sizeof(request), "POST /v1/plan?file=%%2Ftmp%%2F%.20s%%2Fnew.yaml",
             strrchr(server.directory, '/') + 1);
    snprintf(file, sizeof(file), "%s/new.yaml", server.directory);
    snprintf(line, sizeof(line), "plan -f %s", file);
    run = run_with(server.path, line);
    assert_int_equal(run.status, 1);
    expect_words(run.err, "new.yaml: there is no such file");
    assert_int_equal(__atomic_load_n(&server.asked, __ATOMIC_ACQUIRE), 0);
    write_file(file, "seed: x\n");
    run = run_with(server.path, line);
    assert_int_equal(run.status, 0);
    expect_words(run.out, "nothing would change");
    snprintf(line, sizeof(line), "hash plan --json --file=%s", file);
    run = run_with(server.path, line);
    assert_string_equal(run.out, "{\"changed\": false}\n");
    routes[0].head = "422 Unprocessable";
    routes[0].then = "{\"error\": {\"message\": \"no\", \"complaints\": [\"new.yaml:1: a\"]}}";
    run = run_with(server.path, line);
    assert_int_equal(run.status, 1);
    assert_string_equal(run.err, "halbachctl: no\n  new.yaml:1: a\n");
    unlink(file);
    stop_server(&server);
}

static void test_drain_says_when_it_is_not_in_effect(void **state)
{
    struct route routes[] = {
        {.request = "POST /v1/backends/web3/drain",
         .head = "200 OK",
         .body = DRAINED("true"),
         .then = DRAINED("false")},
    };
    struct server server;
    struct run run;

    (void)state;
    start_server(&server, routes, 1);
    run = run_with(server.path, "drain web3");
    assert_int_equal(run.status, 0);
    assert_string_equal(run.err, "");
    run = run_with(server.path, "drain web3");
    assert_int_equal(run.status, 1);
    expect_words(run.err, "kept, but the dataplane has not taken it yet");
    stop_server(&server);
}

static void test_drain_waits_for_the_last_flow(void **state)
{
    struct route routes[] = {
        {.request = "POST /v1/backends/web3/drain", .head = "200 OK", .body = DRAINED("true")},
        {.request = "GET /v1/backends",
         .head = "200 OK",
         .body = DRAINING("12"),
         .then = DRAINING("0")},
        /* At first the dataplane cannot be seen: its 12 flows, or none, say nothing. */
        {.request = "GET /v1/status", .head = "200 OK", .body = BLIND, .then = SEEN},
    };
    struct server server;
    struct run run;

    (void)state;
    start_server(&server, routes, 3);
    run = run_with(server.path, "drain web3 --wait");
    stop_server(&server);
    assert_int_equal(run.status, 0);
    assert_string_equal(run.err, "");
    expect_words(run.out, "waiting for the dataplane: it is not connected or not in sync\n"
                          "web3: 0 flows left\n"
                          "web3 is drained: no flow is left after ");
    assert_int_equal(routes[1].asked, 2);
}

static void test_waiting_ends_when_somebody_undrains(void **state)
{
    struct route routes[] = {
        {.request = "POST /v1/backends/web3/drain", .head = "200 OK", .body = DRAINED("true")},
        {.request = "GET /v1/backends",
         .head = "200 OK",
         .body = DRAINING("12"),
         .then = "{\"backends\": [{\"pool\": \"web\", \"name\": \"web3\", \"draining\": false}]}"},
        {.request = "GET /v1/status", .head = "200 OK", .body = SEEN},
    };
    struct server server;
    struct run run;

    (void)state;
    start_server(&server, routes, 3);
    run = run_with(server.path, "drain web3 --wait");
    stop_server(&server);
    assert_int_equal(run.status, 1);
    expect_words(run.out, "web3: 12 flows left\n");
    expect_words(run.err, "no longer draining");
}

static void test_interrupted_waiting_leaves_the_drain(void **state)
{
    struct route routes[] = {
        {.request = "POST /v1/backends/web3/drain", .head = "200 OK", .body = DRAINED("true")},
        {.request = "GET /v1/backends", .head = "200 OK", .body = DRAINING("12")},
        {.request = "GET /v1/status", .head = "200 OK", .body = SEEN},
    };
    struct server server;
    struct run run;
    int i;

    (void)state;
    start_server(&server, routes, 3);
    run = start(server.path, "drain web3 --wait --json");
    /* Two looks: by then it waits. */
    for (i = 0; i < 10000 && __atomic_load_n(&routes[2].asked, __ATOMIC_ACQUIRE) < 2; i++)
        poll(NULL, 0, 1);
    kill(run.pid, SIGINT);
    finish(&run);
    stop_server(&server);
    assert_int_equal(run.status, 1);
    assert_string_equal(run.out, DRAINED("true") "\n"); /* one document; progress goes elsewhere */
    expect_words(run.err, "web3: 12 flows left\n");
    expect_words(run.err,
                 "stopped waiting; web3 goes on draining. 'halbachctl undrain web3' takes it back");
    assert_null(strstr(server.last, "undrain"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_control_cannot_be_reached),
        cmocka_unit_test(test_answers_good_and_bad),
        cmocka_unit_test(test_wrong_usage_asks_nobody),
        cmocka_unit_test(test_config_check),
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_drain_says_when_it_is_not_in_effect),
        cmocka_unit_test(test_drain_waits_for_the_last_flow),
        cmocka_unit_test(test_waiting_ends_when_somebody_undrains),
        cmocka_unit_test(test_interrupted_waiting_leaves_the_drain),
    };

    if (argc < 2) {
        fprintf(stderr, "usage: %s PATH-OF-HALBACHCTL\n", argv[0]);
        return 2;
    }
    program = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
