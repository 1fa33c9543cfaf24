/* SPDX-License-Identifier: BSD-3-Clause */
/* See generation_adopt.h. */
#include "generation_adopt.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_rcu_qsbr.h>

#include "generation_answers.h"
#include "halbach/counters.h"
#include "log.h"

#define ADOPTION_LOG_NS UINT64_C(1000000000)
#define GRACE_LOG_NS    UINT64_C(1000000000)  /* then say who keeps us waiting */
#define GRACE_LIMIT_NS  UINT64_C(10000000000) /* then go on; the old one is kept for later */

struct hb_adopted {
    struct hb_generation_head *head;
    const struct hb_node_memory *memory;
    struct hb_ports *ports;
    struct hb_table_store *store;
    struct hb_built_generation *current;
    struct hb_built_generation **retired; /* not freed yet: a worker may still read them */
    uint32_t retired_count;
    uint16_t **flow_tags;               /* by worker; NULL until a service limits its flows; then
                                         * as long as there are workers */
    int fd;                             /* memfd of the current generation */
    struct hb_generation_header header; /* of the current generation; zeros: none */
    uint64_t adopt_ns, grace_ns;        /* what its adoption took */
    struct hb_generation_fault last_fault;
    uint64_t logged_ns; /* when an adoption was logged last */
    uint32_t unlogged;  /* adoptions since then */
};

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

struct hb_adopted *hb_adopted_create(struct hb_generation_head *head,
                                     const struct hb_node_memory *memory, struct hb_ports *ports)
{
    struct hb_adopted *adopted = calloc(1, sizeof(*adopted));

    if (adopted == NULL)
        return NULL;
    *adopted = (struct hb_adopted){.head = head, .memory = memory, .ports = ports, .fd = -1};
    adopted->store = hb_table_store_create(memory);
    if (adopted->store == NULL) {
        free(adopted);
        return NULL;
    }
    return adopted;
}

static void free_retired(struct hb_adopted *adopted)
{
    while (adopted->retired_count > 0)
        hb_generation_free(adopted->retired[--adopted->retired_count], adopted->store,
                           adopted->memory);
}

static void free_tags(struct hb_adopted *adopted)
{
    const struct hb_node_memory *memory = adopted->memory;

    for (uint32_t i = 0; adopted->flow_tags != NULL && i < memory->workers; i++)
        memory->release(memory->context, adopted->flow_tags[i]);
    free(adopted->flow_tags);
    adopted->flow_tags = NULL;
}

/* Made with the first generation that needs them. Entries keep tags of later ones too, so they
 * stay.
 */
static bool make_tags(struct hb_adopted *adopted)
{
    const struct hb_node_memory *memory = adopted->memory;

    if (adopted->flow_tags != NULL)
        return true;
    adopted->flow_tags = calloc(memory->workers + 1, sizeof(*adopted->flow_tags));
    for (uint32_t i = 0; adopted->flow_tags != NULL && i < memory->workers; i++) {
        adopted->flow_tags[i] =
            memory->allocate(memory->context, memory->flow_tags_bytes, memory->worker_node[i]);
        if (adopted->flow_tags[i] == NULL)
            free_tags(adopted);
    }
    return adopted->flow_tags != NULL;
}

void hb_adopted_destroy(struct hb_adopted *adopted)
{
    if (adopted == NULL)
        return;
    atomic_store_explicit(&adopted->head->current, NULL, memory_order_release);
    free_retired(adopted);
    free(adopted->retired);
    hb_generation_free(adopted->current, adopted->store, adopted->memory);
    hb_table_store_destroy(adopted->store);
    free_tags(adopted);
    if (adopted->fd >= 0)
        close(adopted->fd);
    free(adopted);
}

static enum hb_reject refuse_memory(struct hb_generation_fault *fault, const char *what)
{
    *fault = (struct hb_generation_fault){.reason = HB_REJECT_NO_MEMORY};
    snprintf(fault->text, sizeof(fault->text), "%s", what);
    return fault->reason;
}

static int compare_vips(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct hb_vip));
}

/* The distinct VIPs of a checked blob, and the source addresses of full NAT, to which answers come.
 * The caller frees them; NULL when memory is short. */
static struct hb_vip *list_vips(const struct hb_generation_header *header, uint32_t *count)
{
    const struct hb_service_record *services =
        (const void *)((const uint8_t *)header + header->services.offset);
    const struct hb_source_record *sources =
        (const void *)((const uint8_t *)header + header->sources.offset);
    uint32_t total = header->services.count;
    struct hb_vip *vips =
        calloc((size_t)header->services.count + header->sources.count + 1, sizeof(*vips));

    *count = 0;
    if (vips == NULL)
        return NULL;
    for (uint32_t i = 0; i < header->services.count; i++) {
        vips[i].family = services[i].family;
        vips[i].length = services[i].prefix_length;
        memcpy(vips[i].bytes, services[i].address, sizeof(vips[i].bytes));
    }
    for (uint32_t i = 0; i < header->sources.count; i++) {
        if (sources[i].own)
            continue;
        vips[total].family = sources[i].family;
        memcpy(vips[total++].bytes, sources[i].address, sizeof(vips[0].bytes));
    }
    qsort(vips, total, sizeof(*vips), compare_vips);
    for (uint32_t i = 0; i < total; i++)
        if (*count == 0 || compare_vips(&vips[*count - 1], &vips[i]) != 0)
            vips[(*count)++] = vips[i];
    return vips;
}

/* Names the workers that have not passed a quiescent state since `token`. */
static void log_waiting(const struct rte_rcu_qsbr *qsbr, uint64_t token)
{
    for (uint32_t worker = 0; worker < qsbr->max_threads; worker++) {
        uint64_t seen = __atomic_load_n(&qsbr->qsbr_cnt[worker].cnt, __ATOMIC_ACQUIRE);

        if (seen != 0 && seen < token)
            hb_log_error(
                "worker %u has not taken the new generation for a second; is its CPU taken by "
                "something else?",
                worker);
    }
}

/* Waits until every worker is on the new generation, without keeping the CPU from them: they may
 * share it with us. Returns false when that takes too long. */
static bool wait_for_workers(struct rte_rcu_qsbr *qsbr)
{
    const struct timespec pause = {.tv_nsec = 20000};
    uint64_t start = now_ns(), token = rte_rcu_qsbr_start(qsbr);
    bool logged = false;

    while (rte_rcu_qsbr_check(qsbr, token, false) == 0) {
        uint64_t waited = now_ns() - start;

        if (waited > GRACE_LOG_NS && !logged) {
            log_waiting(qsbr, token);
            logged = true;
        }
        if (waited > GRACE_LIMIT_NS)
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

/* Puts a generation that is built in the place of the current one. Room for the old one among the
 * retired has been made. */
static void swap_in(struct hb_adopted *adopted, struct hb_built_generation *built,
                    struct hb_publish_reply *reply, uint64_t start)
{
    uint64_t stored;

    if (adopted->current != NULL)
        adopted->retired[adopted->retired_count++] = adopted->current;
    adopted->current = built;
    hb_generation_begin(built, hb_worker_clock_ms());
    atomic_store_explicit(&adopted->head->current, &built->set, memory_order_release);
    stored = now_ns();
    reply->adopt_ns = stored - start;
    if (wait_for_workers(adopted->head->qsbr))
        free_retired(adopted);
    else
        hb_log_error("a worker is stuck; %u old generations are kept until it goes on",
                     adopted->retired_count);
    reply->grace_ns = now_ns() - stored;
}

/* Everything after the checks. `blob` is checked and mapped. */
static enum hb_reject adopt_blob(struct hb_adopted *adopted, const void *blob,
                                 struct hb_generation_fault *fault, struct hb_publish_reply *reply,
                                 uint64_t start)
{
    const struct hb_generation_header *header = blob;
    struct hb_built_generation *built = NULL, **retired;
    struct hb_steer_nat_set answers;
    struct hb_vip *vips = NULL;
    uint32_t vips_count;
    int error;

    retired = realloc(adopted->retired,
                      (adopted->retired_count + 1) * sizeof(struct hb_built_generation *));
    if (retired == NULL)
        return refuse_memory(fault, "no memory to keep the old generation for its last readers");
    adopted->retired = retired;
    vips = list_vips(header, &vips_count);
    if (vips == NULL)
        return refuse_memory(fault, "no memory for the list of VIPs");
    if (hb_generation_limits_flows(blob) && !make_tags(adopted)) {
        free(vips);
        return refuse_memory(fault, "no memory to count flows by service; reserve more hugepages, "
                                    "or configure no limit on flows");
    }
    built = hb_generation_build(blob, adopted->current, adopted->store, adopted->memory);
    if (built != NULL)
        hb_generation_set_tags(built, adopted->flow_tags);
    if (built == NULL) {
        free(vips);
        return refuse_memory(fault, "no memory for the generation and its tables; reserve more "
                                    "hugepages, or give EAL more memory (-m)");
    }
    if (!hb_answers_list(built, &answers)) {
        free(vips);
        hb_generation_free(built, adopted->store, adopted->memory);
        return refuse_memory(fault, "no memory for the list of NAT answers");
    }
    error = hb_ports_steer_add(adopted->ports, vips, vips_count);
    if (error == 0)
        error = hb_ports_steer_add_answers(adopted->ports, &answers);
    if (error != 0) {
        hb_generation_free(built, adopted->store, adopted->memory);
        refuse_memory(fault, "");
        snprintf(fault->text, sizeof(fault->text),
                 "the steering program does not take the %u VIPs or the %u answers of NAT: %s",
                 vips_count, answers.answers_count, strerror(-error));
    } else {
        swap_in(adopted, built, reply, start);
    }
    /* After a failed add some new VIPs may be in the program; their packets come to the workers,
     * who drop them by name. */
    if (error == 0 && (hb_ports_steer_keep_only(adopted->ports, vips, vips_count) != 0 ||
                       hb_ports_steer_keep_only_answers(adopted->ports, &answers) != 0))
        hb_log_error("VIPs that are gone could not be removed from the steering program");
    if (error == 0 && hb_ports_steer_limit(adopted->ports, header->settings.punt_rate) != 0)
        hb_log_error("the steering program does not take the limit of the way to the kernel");
    hb_answers_free(&answers);
    free(vips);
    return fault->reason;
}

/* At most one line a second, however often control publishes; the last adoption is always told. */
void hb_adopted_log(struct hb_adopted *adopted)
{
    const struct hb_generation_header *header = &adopted->header;
    uint64_t now = now_ns();
    char more[64] = "";

    if (adopted->unlogged == 0 ||
        (adopted->logged_ns != 0 && now - adopted->logged_ns < ADOPTION_LOG_NS))
        return;
    if (adopted->unlogged > 1)
        snprintf(more, sizeof(more), " (and %u others before it)", adopted->unlogged - 1);
    hb_log_notice("generation %" PRIu64 " serves: %u services, %u pools, %u backends, %u tables; "
                  "adopted in %" PRIu64 " us, on every worker %" PRIu64 " us later%s",
                  header->number, header->services.count, header->pools.count,
                  header->backends.count, header->tables.count, adopted->adopt_ns / 1000,
                  adopted->grace_ns / 1000, more);
    adopted->logged_ns = now;
    adopted->unlogged = 0;
}

static enum hb_reject check_and_adopt(struct hb_adopted *adopted, int fd,
                                      struct hb_generation_fault *fault,
                                      struct hb_publish_reply *reply)
{
    struct hb_generation_limits limits = {
        .services_max = HB_SERVICES_MAX,
        .backends_max = HB_BACKENDS_MAX + 1,
        .ports_count = adopted->ports->count,
        .find_table = hb_table_store_find,
        .context = adopted->store,
    };
    uint64_t size, start = now_ns();
    const struct hb_generation_header *blob;

    for (uint32_t i = 0; i < adopted->ports->count; i++)
        limits.ports[i] = adopted->ports->port[i].id;
    if (hb_generation_check_fd(fd, &size, fault) != HB_REJECT_NONE)
        return fault->reason;
    blob = mmap(NULL, size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (blob == MAP_FAILED)
        return refuse_memory(fault, "the memfd cannot be mapped");
    if (hb_generation_check(blob, size, &limits, fault) == HB_REJECT_NONE &&
        adopt_blob(adopted, blob, fault, reply, start) == HB_REJECT_NONE) {
        adopted->header = *blob;
        adopted->adopt_ns = reply->adopt_ns;
        adopted->grace_ns = reply->grace_ns;
        adopted->unlogged++;
        hb_adopted_log(adopted);
    }
    munmap((void *)(uintptr_t)blob, size);
    return fault->reason;
}

static void log_refusal(struct hb_adopted *adopted, const struct hb_generation_fault *fault)
{
    if (memcmp(fault, &adopted->last_fault, sizeof(*fault)) == 0)
        return;
    adopted->last_fault = *fault;
    hb_log_error("refused a generation: %s (record %u, offset %" PRIu64 "); generation %" PRIu64
                 " goes on serving",
                 fault->text, fault->record, fault->offset, adopted->header.number);
}

void hb_adopt(struct hb_adopted *adopted, int fd, struct hb_publish_reply *reply)
{
    struct hb_generation_fault fault;

    memset(&fault, 0, sizeof(fault)); /* compared as bytes */
    check_and_adopt(adopted, fd, &fault, reply);
    if (fault.reason == HB_REJECT_NONE) {
        if (adopted->fd >= 0)
            close(adopted->fd);
        adopted->fd = fd;
        memset(&adopted->last_fault, 0, sizeof(adopted->last_fault));
    } else {
        log_refusal(adopted, &fault);
        if (fd >= 0)
            close(fd);
    }
    reply->reason = fault.reason;
    reply->record = fault.record;
    reply->offset = fault.offset;
    reply->number = adopted->header.number;
    memcpy(reply->text, fault.text, sizeof(reply->text));
}

uint64_t hb_adopted_number(const struct hb_adopted *adopted)
{
    return adopted->header.number;
}

const uint8_t *hb_adopted_content(const struct hb_adopted *adopted)
{
    return adopted->header.content;
}

int hb_adopted_fd(const struct hb_adopted *adopted)
{
    return adopted->fd;
}

void hb_adopted_settle(const struct hb_adopted *adopted, const struct hb_settle *request,
                       struct hb_settle_reply *reply)
{
    hb_generation_settle(adopted->current, request, hb_worker_clock_ms(), reply);
}

const struct hb_generation *hb_adopted_generation(const struct hb_adopted *adopted)
{
    if (adopted->current == NULL)
        return NULL;
    for (uint32_t node = 0; node < HB_NODES_MAX; node++)
        if (adopted->current->set.node[node] != NULL)
            return adopted->current->set.node[node];
    return NULL;
}
