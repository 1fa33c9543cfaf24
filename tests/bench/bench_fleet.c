/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_fleet.c: how long halbach-control takes with a large fleet, from a cause to the answer that
 * the dataplane serves it, and what it costs.
 *
 *     bench_fleet SERVICES POOLS BACKENDS [ROUNDS]
 *
 * The whole daemon runs on its event loop in this process, with its files in a temporary folder. A
 * child plays the dataplane: it takes every generation at once, so the times are control's own.
 * Next hops and checks' verdicts are set by hand. Prints one line of JSON; times in milliseconds.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "control.h"
#include "halbach/counters.h"
#include "halbach/protocol.h"
#include "log.h"

#define ROUNDS     50
#define FLOCK      1000 /* backends that fail at once */
#define FLOCK_MS   3000
#define SERVE_WAIT 60000

struct sizes {
    uint32_t services, pools, backends, rounds;
};

static char folder[] = "/tmp/hb-fleet-XXXXXX";
static char config_path[64], state_path[64], api_path[64], dataplane_path[64];

static void give_up(const char *what)
{
    fprintf(stderr, "bench_fleet: %s\n", what);
    exit(1);
}

/* --- the dataplane --- */

static int make_counters(void)
{
    struct hb_counters_header header = {
        .magic = HB_COUNTERS_MAGIC,
        .version = HB_COUNTERS_VERSION,
        .header_size = sizeof(header),
        .instance = 1,
        .workers = 1,
        .services_max = HB_SERVICES_MAX,
        .backends_max = HB_BACKENDS_MAX + 1,
        .drop_reasons = HB_DROP_COUNT,
        .worker_offset = sizeof(header),
        .worker_stride = sizeof(struct hb_worker_counters) +
                         HB_SERVICES_MAX * sizeof(struct hb_service_counters) +
                         (HB_BACKENDS_MAX + 1) * sizeof(struct hb_backend_counters),
    };
    int fd = memfd_create("counters", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    header.total_size = header.worker_offset + header.worker_stride;
    if (fd < 0 || write(fd, &header, sizeof(header)) != sizeof(header) ||
        ftruncate(fd, (off_t)header.total_size) != 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE) != 0)
        give_up("cannot make the counters");
    return fd;
}

static void send_reply(int connection, void *reply, size_t size, uint16_t type,
                       const struct hb_message_header *request, int fd)
{
    struct iovec part = {reply, size};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } extra = {0};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    *(struct hb_message_header *)reply = (struct hb_message_header){
        HB_PROTOCOL_MAGIC, HB_PROTOCOL_VERSION, type, (uint32_t)size, request->sequence};
    if (fd >= 0) {
        message.msg_control = &extra;
        message.msg_controllen = sizeof(extra.bytes);
        *CMSG_FIRSTHDR(&message) = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &fd, sizeof(fd));
    }
    sendmsg(connection, &message, MSG_NOSIGNAL);
}

static void answer(int connection, const void *message, int counters)
{
    const struct hb_message_header *header = message;

    if (header->type == HB_MSG_HELLO) {
        struct hb_hello_reply reply = {
            .instance = 1,
            .flows_max = 1024,
            .workers = 1,
            .ports = 1,
            .tcp_idle_ms = 3600000,
            .version = "0.1.0",
            .port = {{.mtu = 1500, .ifname = "eth0", .driver = "net_bench"}}};

        send_reply(connection, &reply, sizeof(reply), HB_MSG_HELLO_REPLY, header, counters);
    } else if (header->type == HB_MSG_PUBLISH) {
        struct hb_publish_reply reply = {.number = ((const struct hb_publish *)message)->number};

        send_reply(connection, &reply, sizeof(reply), HB_MSG_PUBLISH_REPLY, header, -1);
    } else if (header->type == HB_MSG_SETTLE) {
        struct hb_settle_reply reply = {0};

        send_reply(connection, &reply, sizeof(reply), HB_MSG_SETTLE_REPLY, header, -1);
    }
}

/* Serves one control until it goes away. */
static void play_dataplane(int listener)
{
    int connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC), counters = make_counters();
    uint8_t buffer[HB_MESSAGE_MAX];

    for (;;) {
        union {
            char bytes[CMSG_SPACE(sizeof(int))];
            struct cmsghdr align;
        } extra;
        struct iovec part = {buffer, sizeof(buffer)};
        struct msghdr message = {.msg_iov = &part,
                                 .msg_iovlen = 1,
                                 .msg_control = &extra,
                                 .msg_controllen = sizeof(extra.bytes)};
        struct cmsghdr *rights;

        if (recvmsg(connection, &message, MSG_CMSG_CLOEXEC) <= 0)
            _exit(0);
        rights = CMSG_FIRSTHDR(&message);
        if (rights != NULL) {
            int fd;

            memcpy(&fd, CMSG_DATA(rights), sizeof(fd));
            close(fd);
        }
        answer(connection, buffer, counters);
    }
}

static pid_t start_dataplane(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    pid_t pid;

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", dataplane_path);
    if (bind(listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(listener, 1) != 0)
        give_up("cannot listen");
    pid = fork();
    if (pid == 0)
        play_dataplane(listener);
    close(listener);
    return pid;
}

/* --- the fleet --- */

/* `without`: so many of the first pool's backends are left out. */
static void write_config(const struct sizes *sizes, uint32_t without)
{
    FILE *file = fopen(config_path, "w");
    uint32_t each = sizes->backends / sizes->pools;

    if (file == NULL)
        give_up("cannot write the configuration");
    fprintf(file, "seed: seed-of-the-fleet-bench\npools:\n");
    for (uint32_t p = 0; p < sizes->pools; p++) {
        fprintf(file,
                "  - name: p%u\n    health: { type: tcp, port: 80, interval: 60m, timeout: 1s }\n"
                "    backends:\n",
                p);
        for (uint32_t b = p == 0 ? without : 0; b < each; b++) {
            uint32_t n = p * each + b + 1;

            fprintf(file, "      - { name: b%u, address: 198.%u.%u.%u }\n", n, 18 + (n >> 16),
                    n >> 8 & 255, n & 255);
        }
    }
    fprintf(file, "services:\n");
    for (uint32_t s = 0; s < sizes->services; s++)
        fprintf(file, "  - { name: s%u, vip: 192.0.2.%u, protocol: tcp, port: %u, pool: p%u }\n", s,
                1 + s / 1000, 1000 + s, s % sizes->pools);
    if (fclose(file) != 0)
        give_up("cannot write the configuration");
}

static void turn_until_served(struct hb_control *control)
{
    uint64_t end = hb_now_ms() + SERVE_WAIT;

    while (evtimer_pending(control->publish_timer, NULL) || control->change_waits ||
           !hb_publication_in_sync(&control->publication)) {
        if (hb_now_ms() > end)
            give_up("control does not get its generation served");
        event_base_loop(control->base, EVLOOP_ONCE);
    }
}

/* What the kernel would say of every next hop, and checks of every backend. */
static void bring_up(struct hb_control *control)
{
    struct hb_next_hop hop = {
        .resolved = true, .ifname = "eth0", .mtu = 1500, .gateway_mac = {2, 0, 0, 0, 0, 1}};

    hb_address_parse("203.0.113.1", &hop.gateway);
    hb_address_parse("203.0.113.10", &hop.source);
    for (uint32_t p = 0; p < control->model->pools_count; p++) {
        const struct hb_model_pool *pool = &control->model->pools[p];

        for (uint32_t b = 0; b < pool->backends_count; b++) {
            pool->backends[b]->hop = hop;
            hb_backend_state_apply(&pool->backends[b]->state, HB_EVENT_TAKE_OVER_UP, 1, 1,
                                   hb_now_ms(), hb_now_ms());
        }
    }
    hb_control_publish(control);
}

/* A verdict that turns a backend's health round. */
static void turn_round(struct hb_control *control, struct hb_model_backend *backend)
{
    bool up = backend->state.health != HB_BACKEND_UP;

    hb_backend_state_apply(&backend->state, up ? HB_EVENT_PROBE_SUCCEEDED : HB_EVENT_PROBE_FAILED,
                           1, 1, hb_now_ms(), hb_now_ms());
    control->state_dirty = true;
    hb_pool_touch(&control->model->pools[backend->pool]);
    hb_control_changed(control);
}

/* --- what is measured --- */

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

static void print_samples(const char *name, double *samples, uint32_t count)
{
    printf("\"%s\": [", name);
    qsort(samples, count, sizeof(*samples), compare);
    for (uint32_t i = 0; i < count; i++)
        printf("%s%.3f", i > 0 ? ", " : "", samples[i]);
    printf("], ");
}

/* What this process has used of a CPU, ms. */
static double cpu_ms(void)
{
    struct rusage use;

    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000 +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1000;
}

static double measure_reload(struct hb_control *control)
{
    uint64_t begin = hb_now_us();
    struct hb_model_diff diff;

    if (hb_control_reload(control, &diff, NULL, NULL) != 0)
        give_up("the reload was refused");
    turn_until_served(control);
    return (double)(hb_now_us() - begin) / 1000;
}

static double measure_failure(struct hb_control *control, struct hb_model_backend *backend,
                              double *cpu)
{
    uint64_t begin;

    /* Not in the shadow of the one before. */
    while (hb_now_us() < control->rest_until_us)
        event_base_loop(control->base, EVLOOP_NONBLOCK);
    begin = hb_now_us();
    *cpu = cpu_ms();
    turn_round(control, backend);
    turn_until_served(control);
    *cpu = cpu_ms() - *cpu;
    return (double)(hb_now_us() - begin) / 1000;
}

/* Pool by pool, so that they are alike. */
static void measure_flock(struct hb_control *control, uint32_t flock)
{
    uint64_t first = control->publication.wanted, begin = hb_now_ms(), verdicts = 0;
    while (hb_now_ms() - begin < FLOCK_MS) {
        uint32_t left = flock;

        for (uint32_t p = 0; p < control->model->pools_count && left > 0; p++) {
            const struct hb_model_pool *pool = &control->model->pools[p];

            for (uint32_t b = 1; b < pool->backends_count && left > 0; b++, left--) {
                turn_round(control, pool->backends[b]);
                verdicts++;
                event_base_loop(control->base, EVLOOP_NONBLOCK);
            }
        }
    }
    turn_until_served(control);
    printf("\"flock_verdicts\": %llu, \"flock_generations_per_s\": %.1f, ",
           (unsigned long long)verdicts,
           (double)(control->publication.wanted - first) * 1000 / (double)(hb_now_ms() - begin));
}

static long rss_kb(void)
{
    char line[128];
    FILE *file = fopen("/proc/self/status", "r");
    long kb = 0;

    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        sscanf(line, "VmRSS: %ld", &kb);
    if (file != NULL)
        fclose(file);
    return kb;
}

static void measure(struct hb_control *control, const struct sizes *sizes, double start_ms)
{
    double *samples = calloc(sizes->rounds, sizeof(*samples));
    double *cpu = calloc(sizes->rounds, sizeof(*cpu));
    uint32_t few = sizes->rounds < 10 ? sizes->rounds : 10;

    printf("{\"start\": %.3f, ", start_ms);
    for (uint32_t i = 0; i < few; i++)
        samples[i] = measure_reload(control);
    print_samples("reload_same", samples, few);
    for (uint32_t i = 0; i < few; i++) {
        write_config(sizes, 1 - i % 2);
        samples[i] = measure_reload(control);
    }
    print_samples("reload_one_backend", samples, few);
    for (uint32_t i = 0; i < sizes->rounds; i++)
        samples[i] = measure_failure(
            control, control->model->pools[i / 2 % control->model->pools_count].backends[1],
            &cpu[i]);
    print_samples("verdict_to_served", samples, sizes->rounds);
    print_samples("verdict_cpu", cpu, sizes->rounds);
    for (uint32_t i = 0; i < few; i++) {
        uint64_t begin = hb_now_us();

        if (hb_control_save(control) != 0)
            give_up("the state cannot be saved");
        samples[i] = (double)(hb_now_us() - begin) / 1000;
    }
    print_samples("save", samples, few);
    measure_flock(control, sizes->backends < FLOCK ? sizes->backends : FLOCK);
    printf("\"rss_mb\": %.1f}\n", (double)rss_kb() / 1024);
    free(cpu);
    free(samples);
}

static void remove_files(void)
{
    char command[64];

    snprintf(command, sizeof(command), "rm -rf %s", folder);
    if (system(command) != 0)
        fprintf(stderr, "bench_fleet: %s is left behind\n", folder);
}

int main(int argc, char **argv)
{
    struct sizes sizes = {.rounds = ROUNDS};
    const struct hb_control_options options = {config_path, dataplane_path, api_path, state_path};
    struct hb_control *control;
    uint64_t begin;
    pid_t child;

    if (argc < 4 || (sizes.services = (uint32_t)atoi(argv[1])) == 0 ||
        (sizes.pools = (uint32_t)atoi(argv[2])) == 0 ||
        (sizes.backends = (uint32_t)atoi(argv[3])) < 2 * sizes.pools ||
        (argc > 4 && (sizes.rounds = (uint32_t)atoi(argv[4])) == 0))
        give_up("usage: bench_fleet SERVICES POOLS BACKENDS [ROUNDS]");
    /* Routes of this machine must not play a part; without the right to, they hardly do. */
    if (unshare(CLONE_NEWNET) != 0 && errno != EPERM)
        give_up("cannot leave the network");
    if (mkdtemp(folder) == NULL)
        give_up("cannot make a temporary folder");
    snprintf(config_path, sizeof(config_path), "%s/config", folder);
    snprintf(state_path, sizeof(state_path), "%s/state", folder);
    snprintf(api_path, sizeof(api_path), "%s/api", folder);
    snprintf(dataplane_path, sizeof(dataplane_path), "%s/dataplane", folder);
    write_config(&sizes, 0);
    child = start_dataplane();
    hb_log_set_level(HB_LOG_ERROR);
    begin = hb_now_us();
    control = hb_control_open(&options);
    if (control == NULL)
        give_up("control does not start");
    while (!control->started)
        event_base_loop(control->base, EVLOOP_ONCE);
    turn_until_served(control);
    bring_up(control);
    turn_until_served(control);
    measure(control, &sizes, (double)(hb_now_us() - begin) / 1000);
    hb_control_close(control);
    waitpid(child, NULL, 0);
    remove_files();
    return 0;
}
