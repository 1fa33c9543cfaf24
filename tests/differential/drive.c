/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drive.c: the real way of a packet, from a configuration file to the bytes that leave, driven line
 * by line. For judges in another language (judge.py), who know nothing of this code.
 *
 * The file goes through control's reader, model, reconciliation and encoder, the blob through the
 * dataplane's checks and builder, the packets through the real pipeline on ports made of rings.
 * Only the network is made up: every backend is on the link of one port, with one MAC address.
 *
 *     drive FILE          prints what a judge can't know: the key of the flow hash, and who owns
 *                         each slot ("key ...", "pool NAME id id ...", "backend ID POOL NAME"),
 * then "ready". Then, for each line of standard input: rx HEX              a frame comes in     ->
 * "tx HEX" for each frame that leaves by the port, "kernel HEX" for each that goes to the kernel,
 *                                                  "drop REASON" for each that ended, then "done"
 *     time MS             the clock goes on    ->  the same
 *     load FILE           another generation   ->  what is printed at the start
 */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config.h"
#include "generation_build.h"
#include "generation_builder.h"
#include "generation_check.h"
#include "reconcile.h"
#include "rig.h"

#define FLOWS 65536

static const struct hb_port_info wire = {
    .id = PORT, .ifindex = 1, .mtu = 1500, .link_up = 1, .ifname = "wire"};
static const struct hb_port_list wires = {&wire, 1};
static const uint8_t gateway_mac[6] = {2, 0, 0, 0, 0, 1}, own_mac[6] = {2, 0, 0, 0, 0, 0x10};

static struct {
    struct rig *rig;
    struct hb_model *model;
    struct hb_table_store *store;
    struct hb_node_memory memory;
    struct hb_built_generation *built;
    uint64_t number;
} drive;

static void end(const char *what, const char *why)
{
    fprintf(stderr, "drive: %s: %s\n", what, why);
    exit(1);
}

static void *allocate(void *context, size_t bytes, uint32_t node)
{
    size_t size = (bytes + 63) / 64 * 64;
    void *memory = aligned_alloc(64, size);

    (void)context, (void)node;
    return memory != NULL ? memset(memory, 0, size) : NULL;
}

static void release(void *context, void *memory)
{
    (void)context;
    free(memory);
}

/* ---- from the file to the generation that serves ---- */

static void complain(void *context, bool warning, const char *message)
{
    (void)context;
    if (!warning)
        fprintf(stderr, "%s\n", message);
}

static void make_reachable(struct hb_model_backend *backend)
{
    bool ipv4 = backend->address.family == HB_FAMILY_IPV4;

    backend->hop = (struct hb_next_hop){
        .resolved = true, .ifindex = 1, .port_ifindex = 1, .ifname = "wire", .mtu = 1500};
    memcpy(backend->hop.source_mac, own_mac, sizeof(own_mac));
    memcpy(backend->hop.gateway_mac, gateway_mac, sizeof(gateway_mac));
    hb_address_parse(ipv4 ? "198.51.100.10" : "2001:db8:0:1::10", &backend->hop.source);
    backend->hop.gateway = backend->address; /* on the link, as l2 asks for */
    hb_backend_state_apply(&backend->state, HB_EVENT_TAKE_OVER_UP, 1, 1, 0, 0);
}

static void plan_file(const char *file, struct hb_plan *plan)
{
    struct hb_config *config = hb_config_load(file, complain, NULL);
    struct hb_model_diff diff;
    char problem[512] = "";

    if (config == NULL)
        end(file, "refused");
    if (hb_model_apply(drive.model, config, 0, &diff) != 0)
        end(file, diff.error);
    for (uint32_t p = 0; p < drive.model->pools_count; p++)
        for (uint32_t b = 0; b < drive.model->pools[p].backends_count; b++)
            make_reachable(drive.model->pools[p].backends[b]);
    hb_config_free(config);
    if (hb_reconcile(drive.model, wires, plan, problem, sizeof(problem)) != 0 || problem[0] != '\0')
        end(file, problem);
}

static void adopt(const struct hb_plan *plan)
{
    const struct hb_generation_limits limits = {.services_max = RIG_SERVICES,
                                                .backends_max = RIG_BACKENDS,
                                                .ports = {PORT},
                                                .ports_count = 1,
                                                .find_table = hb_table_store_find,
                                                .context = drive.store};
    const struct hb_held_tables held = {0};
    struct hb_built_generation *before = drive.built;
    struct hb_generation_fault fault;
    void *blob;
    size_t size;

    if (hb_generation_encode(plan, ++drive.number, &held, &blob, &size) != 0)
        end("the generation", "cannot be written");
    if (hb_generation_check(blob, size, &limits, &fault) != HB_REJECT_NONE)
        end("the generation was refused", fault.text);
    drive.built = hb_generation_build(blob, before, drive.store, &drive.memory);
    if (drive.built == NULL)
        end("the generation", "cannot be built");
    hb_generation_begin(drive.built, drive.rig->now_ms);
    atomic_store_explicit(&drive.rig->head.current, &drive.built->set, memory_order_release);
    turn(drive.rig); /* nobody reads the one before any more */
    hb_generation_free(before, drive.store, &drive.memory);
    free(blob);
}

static void print_facts(const struct hb_plan *plan)
{
    printf("key");
    for (uint32_t i = 0; i < HB_HASH_KEY_WORDS; i++)
        printf(" %" PRIu64, plan->hash_key.word[i]);
    printf("\n");
    for (uint32_t b = 0; b < plan->backends_count; b++)
        printf("backend %u %s %s\n", plan->backends[b].id, plan->pools[plan->backends[b].pool].name,
               plan->backends[b].name);
    for (uint32_t p = 0; p < plan->pools_count; p++) {
        const struct hb_plan_table *table = &plan->tables[plan->pools[p].table];

        printf("pool %s", plan->pools[p].name);
        if (plan->pools[p].table != HB_POOL_NO_TABLE)
            for (uint32_t slot = 0; slot < table->slots; slot++)
                printf(" %u", table->column.owner[slot]);
        printf("\n");
    }
    printf("ready\n");
}

static void load(const char *file)
{
    struct hb_plan plan;

    plan_file(file, &plan);
    adopt(&plan);
    print_facts(&plan);
    hb_plan_clear(&plan);
}

/* ---- packets ---- */

static void print_frames(const char *what, unsigned port)
{
    struct frame out;

    while (receive(drive.rig, port, &out)) {
        printf("%s ", what);
        for (uint32_t i = 0; i < out.length; i++)
            printf("%02x", out.bytes[i]);
        printf("\n");
    }
}

/* One turn, and what came of it. */
static void run(void)
{
    const uint64_t *drops = hb_counters_worker(drive.rig->region, 0)->drops;
    uint64_t before[HB_DROP_COUNT];

    memcpy(before, drops, sizeof(before));
    turn(drive.rig);
    print_frames("tx", PORT);
    print_frames("kernel", PUNT_PORT);
    for (unsigned reason = 0; reason < HB_DROP_COUNT; reason++)
        while (before[reason]++ < drops[reason])
            printf("drop %s\n", hb_drop_name(reason));
    printf("done\n");
}

static void take_frame(const char *hex)
{
    struct frame frame = {0};
    unsigned byte;

    for (; sscanf(hex, "%2x", &byte) == 1 && frame.length < FRAME_MAX; hex += 2)
        frame.bytes[frame.length++] = (uint8_t)byte;
    send_frame(drive.rig, &frame);
    run();
}

static void read_lines(void)
{
    static char line[2 * FRAME_MAX + 16];

    while (fgets(line, sizeof(line), stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "rx ", 3) == 0) {
            take_frame(line + 3);
        } else if (strncmp(line, "time ", 5) == 0) {
            drive.rig->now_ms += (uint32_t)strtoul(line + 5, NULL, 10);
            run();
        } else if (strncmp(line, "load ", 5) == 0) {
            load(line + 5);
        } else {
            end("unknown line", line);
        }
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    void *state = NULL;

    if (argc != 2)
        end("usage", "drive FILE");
    if (rig_open() != 0 || rig_setup_with(&state, FLOWS) != 0)
        end("the ports", "cannot be opened");
    drive.rig = state;
    drive.rig->worker->config.kernel[0] = (struct hb_kernel_way){true, PUNT_PORT};
    drive.memory = (struct hb_node_memory){.nodes = 1,
                                           .allocate = allocate,
                                           .release = release,
                                           .workers = 1,
                                           .worker_node = (const uint8_t[]){0}};
    drive.model = hb_model_new();
    drive.store = hb_table_store_create(&drive.memory);
    if (drive.model == NULL || drive.store == NULL)
        end("memory", "there is none");
    load(argv[1]);
    fflush(stdout);
    read_lines();
    /* Buffers and flows are accounted for: the rig ends the process if not. */
    rig_teardown(&state);
    hb_generation_free(drive.built, drive.store, &drive.memory);
    hb_table_store_destroy(drive.store);
    hb_model_free(drive.model);
    rig_close();
    return 0;
}
