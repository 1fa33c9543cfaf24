/* SPDX-License-Identifier: BSD-3-Clause */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_rcu_qsbr.h>

#include "rig.h"
#include "service_extras.h"

static struct {
    struct rte_mempool *pool;
    struct rte_ring *from_kernel, *received; /* what PORT receives next */
    struct rte_ring *sent[PORTS];
} wires;

int rig_open_ports(void)
{
    static const unsigned room[PORTS] = {512, 4, 4};

    wires.pool = rte_pktmbuf_pool_create("mbufs", MBUFS, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
    wires.received = rte_ring_create("received", 512, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
    wires.from_kernel =
        rte_ring_create("from_kernel", 512, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
    for (unsigned port = 0; port < PORTS; port++) {
        struct rte_ring **in = port == PUNT_PORT ? &wires.from_kernel : &wires.received;
        struct rte_eth_conf conf = {0};
        char name[16];
        int id;

        snprintf(name, sizeof(name), "sent%u", port);
        wires.sent[port] =
            rte_ring_create(name, room[port], SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
        snprintf(name, sizeof(name), "wire%u", port);
        id = rte_eth_from_rings(name, in, 1, &wires.sent[port], 1, 0);
        if (id != (int)port || rte_eth_dev_configure(port, 1, 1, &conf) != 0 ||
            rte_eth_rx_queue_setup(port, 0, 0, 0, NULL, wires.pool) != 0 ||
            rte_eth_tx_queue_setup(port, 0, 0, 0, NULL) != 0 || rte_eth_dev_start(port) != 0) {
            fprintf(stderr, "packets: no pool or no ports: %s\n", rte_strerror(rte_errno));
            return 1;
        }
    }
    return 0;
}

struct rte_mempool *rig_pool(void)
{
    return wires.pool;
}

int rig_open(void)
{
    char program[] = "packets", no_huge[] = "--no-huge", no_pci[] = "--no-pci";
    char no_shared[] = "--no-shconf", m[] = "-m", mb[] = "256", telemetry[] = "--no-telemetry";
    char iova[] = "--iova-mode=va", lcores[] = "--lcores", where[32], log[] = "--log-level=error";
    char *arguments[] = {program,   no_huge, no_pci, no_shared, m,   mb,
                         telemetry, iova,    lcores, where,     log, NULL};

    snprintf(where, sizeof(where), "0@%d", sched_getcpu());
    if (rte_eal_init(11, arguments) < 0) {
        fprintf(stderr, "packets: EAL did not start: %s\n", rte_strerror(rte_errno));
        return 1;
    }
    return rig_open_ports();
}

void rig_close(void)
{
    for (uint16_t port = 0; port < PORTS; port++) {
        rte_eth_dev_stop(port);
        rte_eth_dev_close(port);
    }
    rte_eal_cleanup();
}

/* A published generation and all it names, in one piece of memory that nobody changes any more. */
struct generation_copy {
    struct generation_copy *before;
    struct hb_generation_set set;
    struct hb_generation generation;
    struct hb_service services[RIG_SERVICES];
    struct hb_pool pools[RIG_POOLS];
    struct hb_backend backends[RIG_BACKENDS];
    struct hb_pool_past pasts[RIG_POOLS];
    uint16_t owner[RIG_POOLS][RIG_SLOTS], previous[RIG_POOLS][RIG_SLOTS];
    uint64_t unsettled[RIG_POOLS][RIG_WORDS];
    uint32_t *used[RIG_POOLS][1];
    struct hb_pool_bound bounds[RIG_POOLS];
    uint16_t member[RIG_POOLS][RIG_BACKENDS];
    uint16_t mss_max[RIG_SERVICES];
    alignas(64) uint8_t map[16384];
    alignas(64) uint8_t extras[16384];
    alignas(64) uint8_t nat[65536];
};

static struct hb_counters_header *make_region(void)
{
    uint64_t stride =
        hb_counters_block_bytes(RIG_SERVICES, RIG_BACKENDS, HB_TALKERS_MAX, RIG_BACKENDS);
    struct hb_counters_header *region = calloc(1, sizeof(*region) + stride);

    region->workers = 1;
    region->services_max = RIG_SERVICES;
    region->backends_max = RIG_BACKENDS;
    region->talkers_max = HB_TALKERS_MAX;
    region->nat_max = RIG_BACKENDS;
    region->worker_offset = sizeof(*region);
    region->worker_stride = stride;
    return region;
}

int rig_setup_with(void **state, uint64_t flows)
{
    struct rig *rig = aligned_alloc(64, (sizeof(*rig) + 63) / 64 * 64);
    struct hb_worker_config config = {
        .ports = {PORT},
        .ports_count = 1,
        .flows_max = flows,
        .sessions_max = RIG_SESSIONS,
        .timeouts = {3000, 3600000, 10000, 1000, 60000},
        .head = &rig->head,
        .siblings = rig->siblings,
        .siblings_count = 2,
    };
    size_t qsbr_size = rte_rcu_qsbr_get_memsize(1);
    char error[256];

    memset(rig, 0, sizeof(*rig));
    for (uint32_t pool = 0; pool < RIG_POOLS; pool++)
        rig->used[pool] = rig->own_used[pool];
    rig->region = make_region();
    config.region = rig->region;
    rig->head.qsbr = aligned_alloc(64, (qsbr_size + 63) / 64 * 64);
    rte_rcu_qsbr_init(rig->head.qsbr, 1);
    rig->worker = hb_worker_create(&config, error, sizeof(error));
    if (rig->worker == NULL) {
        fprintf(stderr, "%s\n", error);
        return -1;
    }
    rig->siblings[0] = rig->worker;
    rig->tags = calloc(1, hb_flow_table_tags_bytes(flows, 0));
    rig->now_ms = UINT32_MAX - 2000; /* the clock wraps in most tests */
    rig->worker->aged_ms = rig->now_ms;
    *state = rig;
    return 0;
}

void add_worker(struct rig *rig)
{
    struct hb_worker_config config = rig->worker->config;
    char error[256];

    rig->other_region = make_region();
    config.region = rig->other_region;
    rig->siblings[1] = hb_worker_create(&config, error, sizeof(error));
    assert_non_null(rig->siblings[1]);
    rig->siblings[1]->aged_ms = rig->now_ms;
}

void change_worker(struct rig *rig)
{
    struct hb_counters_header *region = rig->region;

    rig->worker = rig->siblings[rig->worker == rig->siblings[0]];
    rig->region = rig->other_region;
    rig->other_region = region;
}

int rig_setup(void **state)
{
    return rig_setup_with(state, 1024);
}

static void check_accounts_of_packets(struct rig *rig)
{
    const struct hb_worker_counters *counters = hb_counters_worker(rig->region, 0);

    assert_int_equal(counters->rx_packets + counters->made_packets,
                     counters->tx_packets + counters->punted_packets + count_drops(rig) +
                         counters->held_packets);
}

static void check_accounts(struct rig *rig)
{
    const struct hb_worker_counters *counters = hb_counters_worker(rig->region, 0);
    uint64_t flows = 0;

    check_accounts_of_packets(rig);
    for (uint16_t id = 1; id < RIG_BACKENDS; id++)
        flows += live_flows(rig, id);
    assert_int_equal(flows, counters->flows);
    assert_int_equal(flows, hb_flow_table_used(rig->worker->flows));
    assert_int_equal(counters->flows,
                     counters->flow_inserts - counters->flow_expiries - counters->flow_evictions);
}

int rig_teardown(void **state)
{
    struct rig *rig = *state;

    for (unsigned port = 0; port < PORTS; port++)
        take_all(rig, port);
    for (unsigned worker = 0; worker < 2 && rig->siblings[worker] != NULL; worker++) {
        check_accounts(rig);
        hb_worker_destroy(rig->worker); /* what it held is dropped */
        check_accounts_of_packets(rig);
        if (rig->siblings[1] != NULL)
            change_worker(rig);
    }
    assert_int_equal(rte_mempool_avail_count(wires.pool), MBUFS);
    while (rig->published != NULL) {
        struct generation_copy *before = rig->published->before;

        free(rig->published);
        rig->published = before;
    }
    free(rig->head.qsbr);
    free(rig->region);
    free(rig->other_region);
    free(rig->tags);
    free(rig);
    return 0;
}

void add_backend(struct rig *rig, uint16_t id, uint32_t pool, uint8_t outer_family)
{
    struct hb_backend *backend = &rig->backend[id];

    *backend = (struct hb_backend){
        .use = HB_BACKEND_ACTIVE,
        .l2_size = 14,
        .family = outer_family,
        .forwarding = HB_FORWARDING_IPIP,
        .port = PORT,
        .inner_max = outer_family == 6 ? 1460 : 1480,
        .incarnation = 1,
        .pool = (uint16_t)pool,
        .weight = 1,
    };
    backend->size = (uint8_t)write_rewrite(backend->bytes, outer_family, id);
}

void translate_backend(struct rig *rig, uint16_t id, uint8_t forwarding)
{
    struct hb_backend *backend = &rig->backend[id];
    bool ipv6 = backend->family == 6;
    struct hb_client_hop *hop = &rig->to_clients[ipv6];
    uint8_t address[HB_ADDRESS_SIZE];

    memcpy(address, backend->bytes + (ipv6 ? 14 + 24 : 14 + 16), ipv6 ? 16 : 4);
    backend->forwarding = forwarding;
    backend->size = 14;
    backend->inner_max = 1500;
    memset(backend->bytes + 14, 0, sizeof(backend->bytes) - 14);
    memcpy(backend->bytes + 14, address, ipv6 ? 16 : 4);
    *hop = (struct hb_client_hop){.size = 14, .port = PORT, .mtu = 1500};
    memcpy(hop->bytes, (uint8_t[]){2, 0, 0, 0, 0, 0xc, 2, 0, 0, 0, 0, 0x10}, 12);
    hop->bytes[12] = ipv6 ? 0x86 : 0x08;
    hop->bytes[13] = ipv6 ? 0xdd : 0x00;
}

void set_table(struct rig *rig, uint32_t pool, uint32_t slots, const uint16_t *owner)
{
    rig->pool[pool].slots = slots;
    memcpy(rig->pool[pool].owner, owner, slots * sizeof(*owner));
}

void share_table(struct rig *rig, uint32_t pool)
{
    uint16_t id = 0;
    bool any = false;

    for (uint16_t i = 1; i < RIG_BACKENDS; i++)
        any |= rig->backend[i].use == HB_BACKEND_ACTIVE && rig->backend[i].pool == pool;
    rig->pool[pool].slots = any ? RIG_SLOTS : 0;
    for (uint32_t slot = 0; slot < rig->pool[pool].slots; slot++) {
        do
            id = (uint16_t)((id + 1) % RIG_BACKENDS);
        while (rig->backend[id].use != HB_BACKEND_ACTIVE || rig->backend[id].pool != pool);
        rig->pool[pool].owner[slot] = id;
    }
}

void add_service(struct rig *rig, uint8_t vip_family, uint8_t protocol, uint16_t port,
                 uint32_t pool)
{
    struct hb_service_record *service = &rig->service[rig->services];

    *service = (struct hb_service_record){
        .id = rig->services,
        .family = vip_family,
        .protocol = protocol,
        .port = htons(port),
        .port_last = htons(port),
        .prefix_length = hb_address_bits(vip_family),
        .pool = pool,
    };
    inet_pton(vip_family == 6 ? AF_INET6 : AF_INET,
              vip_family == 6 ? "2001:db8:0:a::10" : "192.0.2.10", service->address);
    rig->services++;
}

void unsettle(struct rig *rig, uint32_t pool, uint32_t slot, uint16_t previous)
{
    rig->pool[pool].unsettled[slot / 64] |= UINT64_C(1) << slot % 64;
    rig->pool[pool].previous[slot] = previous;
}

/* The past of a pool; true when it has one. */
static bool copy_past(struct rig *rig, uint32_t pool, struct generation_copy *copy)
{
    bool any = false;

    for (uint32_t word = 0; word < RIG_WORDS; word++)
        any |= rig->pool[pool].unsettled[word] != 0;
    if (!any)
        return false;
    memcpy(copy->previous[pool], rig->pool[pool].previous, sizeof(copy->previous[pool]));
    memcpy(copy->unsettled[pool], rig->pool[pool].unsettled, sizeof(copy->unsettled[pool]));
    copy->used[pool][0] = rig->used[pool];
    copy->pasts[pool] =
        (struct hb_pool_past){copy->previous[pool], copy->unsettled[pool], copy->used[pool]};
    return true;
}

/* Who owns slots of a pool that bounds its load, and what they weigh. Returns whether it does. */
static bool bind_pool(const struct rig *rig, struct generation_copy *copy, uint32_t pool)
{
    struct hb_pool_bound *bound = &copy->bounds[pool];

    copy->pools[pool].bounded_load = (uint16_t)rig->pool[pool].bounded_load;
    if (rig->pool[pool].bounded_load == 0)
        return false;
    bound->member = copy->member[pool];
    for (uint16_t id = 1; id < RIG_BACKENDS; id++) {
        for (uint32_t slot = 0; slot < rig->pool[pool].slots; slot++) {
            if (rig->pool[pool].owner[slot] != id)
                continue;
            copy->member[pool][bound->members++] = id;
            bound->weights += rig->backend[id].weight;
            break;
        }
    }
    return true;
}

/* What the build makes of the draft's backends that are reached by NAT. */
static const struct hb_nat *translate_all(const struct rig *rig, struct generation_copy *copy)
{
    struct hb_backend_record backends[RIG_BACKENDS];
    struct hb_pool_record pools[RIG_POOLS] = {0};
    struct hb_nat_conflict conflict;
    struct hb_nat_input input = {
        .services = rig->service,
        .pools = pools,
        .backends = backends,
        .sources = rig->source,
        .services_count = rig->services,
        .pools_count = RIG_POOLS,
        .sources_count = rig->sources + rig->own_sources,
        .workers = rig->workers,
    };

    memset(backends, 0, sizeof(backends));
    for (uint16_t id = 1; id < RIG_BACKENDS; id++) {
        const struct hb_backend *from = &rig->backend[id];
        struct hb_backend_record *record = &backends[input.backends_count];

        if (from->use == 0 || !hb_forwarding_is_nat(from->forwarding))
            continue;
        *record = (struct hb_backend_record){.id = id, .pool = from->pool, .family = from->family};
        record->rewrite.size = from->size;
        record->rewrite.forwarding = from->forwarding;
        record->rewrite.nat_port = from->nat_port;
        memcpy(record->address, from->bytes + from->size, from->family == 6 ? 16 : 4);
        if (from->forwarding == HB_FORWARDING_FULL_NAT)
            pools[from->pool].sources_count = rig->sources;
        input.backends_count++;
    }
    if (hb_nat_bytes(&input) == 0)
        return NULL;
    assert_true(hb_nat_bytes(&input) <= sizeof(copy->nat));
    return hb_nat_build(copy->nat, &input, &conflict);
}

static int compare_prefixes(const void *left, const void *right)
{
    const struct hb_prefix_record *a = left, *b = right;

    return a->list != b->list ? (a->list > b->list) - (a->list < b->list) : hb_prefix_compare(a, b);
}

void add_source(struct rig *rig, uint32_t list, const char *prefix, bool allow)
{
    struct hb_prefix_record *record = &rig->prefix[rig->prefixes++];
    char address[INET6_ADDRSTRLEN];
    unsigned length;

    assert_true(rig->prefixes <= RIG_PREFIXES);
    assert_int_equal(sscanf(prefix, "%45[^/]/%u", address, &length), 2);
    *record = (struct hb_prefix_record){.list = list, .length = (uint8_t)length, .allow = allow};
    record->family = strchr(address, ':') != NULL ? 6 : 4;
    inet_pton(record->family == 6 ? AF_INET6 : AF_INET, address, record->address);
    qsort(rig->prefix, rig->prefixes, sizeof(*record), compare_prefixes);
}

void add_quic(struct rig *rig, const struct hb_quic_record *record)
{
    struct hb_service_record *service = &rig->service[rig->services - 1];

    if (service->quic_count++ == 0)
        service->quic_first = rig->quics;
    rig->quic[rig->quics++] = *record;
}

void name_server(struct rig *rig, uint16_t backend, const uint8_t *server_id, uint8_t length)
{
    struct hb_backend_record *server = &rig->server[rig->servers++];

    *server = (struct hb_backend_record){
        .id = backend, .pool = rig->backend[backend].pool, .server_id_length = length};
    memcpy(server->server_id, server_id, length);
}

static void add_extras(struct rig *rig, struct generation_copy *copy)
{
    struct hb_service_sections sections = {.services = rig->service,
                                           .prefixes = rig->prefix,
                                           .quic = rig->quic,
                                           .backends = rig->server,
                                           .services_count = rig->services,
                                           .prefixes_count = rig->prefixes,
                                           .quic_count = rig->quics,
                                           .backends_count = rig->servers,
                                           .workers = 1};
    struct hb_service_extras extras;

    assert_true(hb_service_extras_bytes(&sections) <= sizeof(copy->extras));
    extras = hb_service_extras_build(copy->extras, &sections);
    copy->generation.features = extras.features;
    copy->generation.extra = extras.extra;
    copy->generation.quic = extras.quic;
    copy->generation.servers = extras.servers;
    copy->generation.flow_tags = &rig->tags;
}

void publish(struct rig *rig)
{
    struct generation_copy *copy = aligned_alloc(64, (sizeof(*copy) + 63) / 64 * 64);
    bool past = false, selective = false;
    uint32_t duplicate;

    memset(copy, 0, sizeof(*copy));
    assert_true(hb_service_map_bytes(rig->service, rig->services) <= sizeof(copy->map));
    for (uint32_t i = 0; i < rig->services; i++)
        copy->services[i] = (struct hb_service){.id = (uint16_t)rig->service[i].id,
                                                .tracking = (uint8_t)rig->service[i].tracking,
                                                .features = hb_service_features(&rig->service[i]),
                                                .pool = rig->service[i].pool};
    for (uint32_t i = 0; i < rig->services; i++)
        selective |= rig->service[i].tracking != HB_TRACKING_ALL;
    memcpy(copy->backends, rig->backend, sizeof(copy->backends));
    for (uint32_t id = 0; id < RIG_BACKENDS; id++)
        hb_backend_complete(&copy->backends[id]);
    for (uint32_t i = 0; i < RIG_POOLS; i++) {
        memcpy(copy->owner[i], rig->pool[i].owner, sizeof(copy->owner[i]));
        copy->pools[i] = (struct hb_pool){
            .owner = copy->owner[i], .slots = rig->pool[i].slots, .flags = rig->pool[i].flags};
        past |= copy_past(rig, i, copy);
    }
    copy->generation = (struct hb_generation){
        .map = hb_service_map_build(copy->map, rig->service, rig->services, &duplicate),
        .services = copy->services,
        .pools = copy->pools,
        .past = past ? copy->pasts : NULL,
        .selective = selective,
        .fetch_slots = selective, /* however small the tables are */
        .backends = copy->backends,
        .services_count = rig->services,
        .pools_count = RIG_POOLS,
        .backends_count = RIG_BACKENDS,
        .hash_key = {{11, 22, 33, 44, 55, 66, 77, 88}},
        .number = ++rig->number,
        .settings = rig->settings,
        .nat = translate_all(rig, copy),
    };
    memcpy(copy->generation.settings.to_clients, rig->to_clients, sizeof(rig->to_clients));
    for (uint32_t i = 0; i < rig->services; i++) {
        copy->mss_max[i] = rig->service[i].mss_max;
        if (copy->mss_max[i] != 0)
            copy->generation.mss_max = copy->mss_max;
    }
    for (uint32_t i = 0; i < HB_HASH_KEY_WORDS; i++)
        copy->generation.hash_key.word[i] *= UINT64_C(0x9e3779b97f4a7c15);
    assert_non_null(copy->generation.map);
    add_extras(rig, copy);
    for (uint32_t i = 0; i < RIG_POOLS; i++) {
        if (bind_pool(rig, copy, i))
            copy->generation.bounds = copy->bounds;
    }
    copy->set.node[0] = &copy->generation;
    copy->before = rig->published;
    rig->published = copy;
    atomic_store_explicit(&rig->head.current, &copy->set, memory_order_release);
}

void forget_generation(struct generation_copy *old)
{
    struct generation_copy *before = old->before;

    memset(old, 0xff, sizeof(*old));
    old->before = before;
}

void publish_one_backend(struct rig *rig, uint8_t outer_family)
{
    add_backend(rig, 1, 0, outer_family);
    share_table(rig, 0);
    add_service(rig, 4, HB_PROTOCOL_TCP, 80, 0);
    add_service(rig, 4, HB_PROTOCOL_UDP, 443, 0);
    add_service(rig, 6, HB_PROTOCOL_TCP, 80, 0);
    add_service(rig, 6, HB_PROTOCOL_UDP, 443, 0);
    publish(rig);
}

void use_mode(struct rig *rig, const struct wrap *wrap)
{
    struct hb_backend *backend = &rig->backend[1];

    if (rig->services == 0)
        publish_one_backend(rig, wrap->family);
    backend->forwarding = wrap->forwarding;
    backend->family = wrap->family;
    backend->spread = wrap->spread;
    backend->dscp = wrap->dscp;
    backend->l2_size = (uint8_t)(14 + 4 * wrap->tags);
    backend->flags = wrap->fragment;
    if (wrap->checksum && wrap->family == 4)
        backend->flags |= HB_REWRITE_UDP_CHECKSUM;
    if (!wrap->checksum && wrap->family == 6)
        backend->flags |= HB_REWRITE_NO_UDP_CHECKSUM6;
    backend->inner_max = (uint16_t)(1500 - wrap_overhead(wrap));
    memset(backend->bytes, 0, sizeof(backend->bytes));
    backend->size = (uint8_t)write_wrap(backend->bytes, wrap);
    publish(rig);
}

struct frame exchange(struct rig *rig, const struct frame *in)
{
    struct frame out;

    send_frame(rig, in);
    turn(rig);
    assert_true(receive(rig, PORT, &out));
    return out;
}

struct rte_mbuf *make_mbuf(const struct frame *frame, uint32_t headroom, uint32_t split)
{
    struct rte_mbuf *mbuf = rte_pktmbuf_alloc(wires.pool);
    uint32_t first = split != 0 && split < frame->length ? split : frame->length;

    assert_non_null(mbuf);
    memset(mbuf->buf_addr, 0xff, mbuf->buf_len);
    mbuf->data_off = (uint16_t)headroom;
    memcpy(rte_pktmbuf_append(mbuf, (uint16_t)first), frame->bytes, first);
    if (first < frame->length) {
        struct rte_mbuf *rest = rte_pktmbuf_alloc(wires.pool);

        assert_non_null(rest);
        memset(rest->buf_addr, 0xff, rest->buf_len);
        memcpy(rte_pktmbuf_append(rest, (uint16_t)(frame->length - first)), frame->bytes + first,
               frame->length - first);
        assert_int_equal(rte_pktmbuf_chain(mbuf, rest), 0);
    }
    return mbuf;
}

void send_from_kernel(const struct frame *frame)
{
    assert_int_equal(rte_ring_enqueue(wires.from_kernel, make_mbuf(frame, RTE_PKTMBUF_HEADROOM, 0)),
                     0);
}

void send_mbuf(struct rig *rig, struct rte_mbuf *mbuf)
{
    (void)rig;
    assert_int_equal(rte_ring_enqueue(wires.received, mbuf), 0);
}

static void free_tight(void *buffer, void *shared)
{
    free(buffer);
    free(shared);
}

/* A frame at the very end of its buffer: a byte read behind it is one that a sanitizer sees. */
static struct rte_mbuf *make_tight_mbuf(const struct frame *frame)
{
    struct rte_mbuf *mbuf = rte_pktmbuf_alloc(wires.pool);
    struct rte_mbuf_ext_shared_info *shared = calloc(1, sizeof(*shared));
    uint16_t size = (uint16_t)(RTE_PKTMBUF_HEADROOM + frame->length);
    uint8_t *buffer = malloc(size);

    assert_non_null(mbuf);
    shared->free_cb = free_tight;
    shared->fcb_opaque = shared;
    rte_mbuf_ext_refcnt_set(shared, 1);
    memset(buffer, 0xff, size);
    memcpy(buffer + RTE_PKTMBUF_HEADROOM, frame->bytes, frame->length);
    rte_pktmbuf_attach_extbuf(mbuf, buffer, (rte_iova_t)(uintptr_t)buffer, size, shared);
    mbuf->data_off = RTE_PKTMBUF_HEADROOM;
    rte_pktmbuf_append(mbuf, (uint16_t)frame->length);
    return mbuf;
}

void send_frame(struct rig *rig, const struct frame *frame)
{
    send_mbuf(rig, rig->tight ? make_tight_mbuf(frame) : make_mbuf(frame, RTE_PKTMBUF_HEADROOM, 0));
}

void turn(struct rig *rig)
{
    hb_loop_turn(rig->worker, rig->now_ms);
}

bool receive(struct rig *rig, unsigned port, struct frame *out)
{
    uint8_t joined[FRAME_MAX];
    struct rte_mbuf *mbuf;

    (void)rig;
    if (rte_ring_dequeue(wires.sent[port], (void **)&mbuf) != 0)
        return false;
    rte_mbuf_sanity_check(mbuf, 1);
    *out = (struct frame){.length = rte_pktmbuf_pkt_len(mbuf)};
    assert_true(out->length <= FRAME_MAX);
    memcpy(out->bytes, rte_pktmbuf_read(mbuf, 0, out->length, joined), out->length);
    rte_pktmbuf_free(mbuf);
    return true;
}

struct rte_mbuf *take_mbuf(struct rig *rig, unsigned port)
{
    void *mbuf = NULL;

    (void)rig;
    rte_ring_dequeue(wires.sent[port], &mbuf);
    return mbuf;
}

void take_all(struct rig *rig, unsigned port)
{
    struct rte_mbuf *mbuf;

    (void)rig;
    while (rte_ring_dequeue(wires.sent[port], (void **)&mbuf) == 0)
        rte_pktmbuf_free(mbuf);
}

void advance(struct rig *rig, uint32_t ms)
{
    uint64_t buckets = hb_flow_table_buckets(rig->worker->flows);

    rig->now_ms += ms;
    rig->worker->age_due = buckets * HB_SWEEP_MS;
    for (uint64_t i = 0; i <= buckets / 64; i++)
        turn(rig);
}

uint16_t backend_of(struct rig *rig, const struct frame *frame)
{
    struct frame out;

    send_frame(rig, frame);
    turn(rig);
    if (!receive(rig, PORT, &out))
        return 0;
    if (out.bytes[ETHERTYPE] == 0x08)
        return (uint16_t)(out.bytes[IP4_DESTINATION + 3] - 10);
    return (uint16_t)((out.bytes[IP6_DESTINATION + 15] >> 4) * 10 +
                      (out.bytes[IP6_DESTINATION + 15] & 0xf) - 10);
}

uint64_t count_drops(const struct rig *rig)
{
    uint64_t drops = 0;

    for (unsigned reason = 0; reason < HB_DROPS_MAX; reason++)
        drops += hb_counters_worker(rig->region, 0)->drops[reason];
    return drops;
}

uint64_t live_flows(const struct rig *rig, uint16_t backend)
{
    return hb_counters_backends(rig->region, 0)[backend].flows;
}

static void dump(const char *what, const struct frame *frame)
{
    fprintf(stderr, "%s, %u bytes:", what, frame->length);
    for (uint32_t i = 0; i < frame->length && i < 128; i++)
        fprintf(stderr, "%s%02x", i % 16 == 0 ? "\n    " : " ", frame->bytes[i]);
    fprintf(stderr, "\n");
}

void assert_frame(const char *text, const struct frame *got, const struct frame *want)
{
    if (got->length == want->length && memcmp(got->bytes, want->bytes, got->length) == 0)
        return;
    dump("got", got);
    dump("want", want);
    fail_msg("%s: other bytes left than should", text);
}

static uint32_t label_of(const struct frame *frame)
{
    return (frame->bytes[L3 + 1] & 0xfu) << 16 | frame->bytes[L3 + 2] << 8 | frame->bytes[L3 + 3];
}

static void run_row(struct rig *rig, const struct row *row, uint8_t outer_family)
{
    const struct hb_worker_counters *counters = hb_counters_worker(rig->region, 0);
    struct hb_worker_counters before = *counters;
    bool can_punt = rig->worker->config.kernel[0].there;
    bool drops = row->verdict == DROPPED || (row->verdict == PUNTED && !can_punt);
    bool punts = row->verdict == PUNTED && can_punt;
    uint16_t id = rig->worker->ipv4_id;
    struct frame out, want;

    send_frame(rig, &row->in);
    turn(rig);
    if (counters->tx_packets - before.tx_packets != (row->verdict == FORWARDED) ||
        counters->punted_packets - before.punted_packets != punts)
        fail_msg("%s: sent %d, punted %d", row->text, counters->tx_packets != before.tx_packets,
                 counters->punted_packets != before.punted_packets);
    for (unsigned reason = 0; reason < HB_DROPS_MAX; reason++) {
        if (counters->drops[reason] - before.drops[reason] != (drops && reason == row->reason))
            fail_msg("%s: drops for %s moved by %d", row->text, hb_drop_name(reason),
                     (int)(counters->drops[reason] - before.drops[reason]));
    }
    if (row->verdict == FORWARDED) {
        assert_true(receive(rig, PORT, &out));
        want = tunnel(&row->in, outer_family, 1, id, label_of(&out));
        assert_frame(row->text, &out, &want);
    } else if (punts) {
        assert_true(receive(rig, PUNT_PORT, &out));
        assert_frame(row->text, &out, &row->in);
    }
    assert_false(receive(rig, PORT, &out));
    assert_false(receive(rig, PUNT_PORT, &out));
}

void run_rows(struct rig *rig, const struct row *rows, uint32_t count, uint8_t outer_family)
{
    for (uint32_t i = 0; i < count; i++)
        run_row(rig, &rows[i], outer_family);
}
