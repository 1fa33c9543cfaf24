/* SPDX-License-Identifier: BSD-3-Clause */
/* See full_nat.h. */
#include "full_nat.h"

#include <string.h>

#include "encap_nat.h"
#include "nat_client.h"
#include "nat_frame.h"
#include "nat_handover.h"
#include "nat_icmp.h"
#include "nat_session.h"
#include "proxy_v2.h"
#include "service_map.h"
#include "stages.h"
#include "worker_state.h"

#define TCP_AND_IPV4 40u
#define TCP_AND_IPV6 60u

static bool refuse(struct hb_batch *batch, struct hb_packet *packet, enum hb_drop_reason reason)
{
    hb_drop(batch, packet, reason);
    return false;
}

static enum hb_nat_event event_of(const struct hb_packet *packet)
{
    switch (packet->event) {
    case HB_EVENT_SYN:
        return HB_NAT_SAW_SYN;
    case HB_EVENT_FIN:
        return HB_NAT_SAW_FIN;
    case HB_EVENT_RST:
        return HB_NAT_SAW_RST;
    default:
        return HB_NAT_SAW_DATA;
    }
}

/* The flow as it was parsed: a later fragment has its ports from the first one. */
static struct hb_flow_key key_of(const struct hb_packet *packet)
{
    struct hb_flow_key key = {.protocol = (uint8_t)packet->flow.kind,
                              .family = (uint8_t)(packet->flow.kind >> 8)};

    key.source_port = (hb_be16)packet->flow.ports;
    key.destination_port = (hb_be16)(packet->flow.ports >> 16);
    if (key.family == HB_FAMILY_IPV6) {
        memcpy(key.source, packet->flow.addresses, HB_ADDRESS_SIZE);
        memcpy(key.destination, packet->flow.addresses + HB_ADDRESS_SIZE, HB_ADDRESS_SIZE);
    } else {
        memcpy(key.source, &packet->flow.source, 4);
        memcpy(key.destination, &packet->flow.destination, 4);
    }
    return key;
}

static void use_backend(const struct hb_batch *batch, struct hb_packet *packet, uint16_t id)
{
    packet->backend_id = id;
    packet->backend = &batch->generation->backends[id];
}

/* The session's source address is one still: answers to any other are nobody's. Looked up once for
 * each generation. */
static bool has_source(const struct hb_generation *generation, struct hb_nat_session *session)
{
    struct hb_nat_key key = {.family = session->answer.family};
    const struct hb_nat_slot *slot;

    if (likely(session->generation == (uint32_t)generation->number))
        return true;
    memcpy(key.address, session->answer.destination, sizeof(key.address));
    slot = generation->nat != NULL ? hb_nat_find(generation->nat, &key) : NULL;
    if (slot == NULL || slot->kind != HB_NAT_SOURCE)
        return false;
    session->generation = (uint32_t)generation->number;
    return true;
}

/* The session's backend serves still, in the pool that the service has now. */
static bool serves(const struct hb_batch *batch, const struct hb_packet *packet,
                   struct hb_nat_session *session)
{
    const struct hb_generation *generation = batch->generation;
    const struct hb_backend *backend;

    if (!hb_backend_serves(generation, session->backend, session->incarnation) ||
        !has_source(generation, session))
        return false;
    backend = &generation->backends[session->backend];
    return backend->forwarding == HB_FORWARDING_FULL_NAT &&
           backend->pool == generation->services[packet->service].pool;
}

static struct hb_nat_session *open_session(struct hb_batch *batch, struct hb_packet *packet,
                                           const struct hb_flow_key *request,
                                           const struct hb_nat_header *header)
{
    const struct hb_nat *nat = batch->generation->nat;
    struct hb_worker *worker = batch->worker;
    const struct hb_backend *backend = packet->backend;
    const struct hb_nat_pool *pool = &nat->pools[backend->pool];
    const struct hb_nat_wish wish = {
        .request = request,
        .backend_address = hb_nat_backend_address(backend),
        .backend_port = backend->nat_port != 0 ? backend->nat_port : request->destination_port,
        .backend = packet->backend_id,
        .incarnation = backend->incarnation,
        .pool = backend->pool,
        .sources = &nat->sources[pool->first],
        .sources_count = pool->count,
        .workers = nat->workers,
        .worker = worker->config.index,
    };
    struct hb_nat_session *session = NULL;
    enum hb_nat_result result = HB_NAT_FULL;

    if (worker->sessions != NULL)
        session = hb_nat_sessions_add(worker->sessions, &wish, worker->now_ms, &result);
    if (session == NULL) {
        refuse(batch, packet, result == HB_NAT_NO_PORT ? HB_DROP_NAT_PORTS : HB_DROP_NAT_SESSIONS);
        return NULL;
    }
    session->generation = (uint32_t)batch->generation->number;
    worker->counters->nat_sessions = hb_nat_sessions_used(worker->sessions);
    if (request->protocol == HB_PROTOCOL_TCP)
        session->first_byte = ((uint32_t)header->l4[4] << 24 | (uint32_t)header->l4[5] << 16 |
                               (uint32_t)header->l4[6] << 8 | header->l4[7]) +
                              1;
    return session;
}

/* The session of a request, or NULL: what has none, and what begins anew on the ports of an old
 * one. A session that its backend serves no more is NULL for datagrams; a TCP connection ends by
 * it. */
static struct hb_nat_session *find_session(struct hb_batch *batch, struct hb_packet *packet,
                                           const struct hb_flow_key *request)
{
    struct hb_nat_sessions *sessions = batch->worker->sessions;
    struct hb_nat_session *session = NULL;

    if (sessions != NULL)
        session = hb_nat_sessions_by_request(sessions, request, batch->worker->now_ms);
    if (session == NULL)
        return NULL;
    if (packet->event != HB_EVENT_UDP && packet->event != HB_EVENT_SYN)
        return session;
    if (!serves(batch, packet, session)) {
        if (packet->event == HB_EVENT_UDP) {
            hb_nat_sessions_end(sessions, session);
            return NULL;
        }
        hb_nat_sessions_touch(sessions, session, true, HB_NAT_SAW_RST, batch->worker->now_ms);
    }
    if (session->state != HB_NAT_CLOSING && session->state != HB_NAT_RESET)
        return session;
    hb_nat_sessions_detach(sessions, session); /* a new connection on old ports */
    return NULL;
}

/* The backend is there to be told, whether it serves or not. */
static bool can_be_told(const struct hb_batch *batch, const struct hb_nat_session *session)
{
    const struct hb_generation *generation = batch->generation;
    const struct hb_backend *backend;

    if (session->backend >= generation->backends_count)
        return false;
    backend = &generation->backends[session->backend];
    return backend->use != 0 && backend->incarnation == session->incarnation &&
           backend->forwarding == HB_FORWARDING_FULL_NAT && backend->size != 0;
}

/* The packet in the frame that it came in: its bytes stand in front of it still. */
static void put_back(struct hb_packet *packet, const struct hb_nat_header *header)
{
    uint32_t l3 = packet->l4_offset - (uint32_t)(header->l4 - header->l3);

    rte_pktmbuf_prepend(packet->mbuf, (uint16_t)l3);
    packet->l3_offset = (uint8_t)l3;
}

/* A TCP packet of a session that its backend serves no more. No other server knows the connection,
 * so it ends here: the client gets a RST, and the backend where it can be told. The session stays
 * for its time, should the RST be lost. True: the packet is a RST now, and goes to the backend. */
static bool end_by_reset(struct hb_batch *batch, struct hb_packet *packet,
                         struct hb_nat_header *header, struct hb_nat_session *session)
{
    struct hb_worker *worker = batch->worker;
    bool tell = can_be_told(batch, session);

    if (!hb_nat_has_ports(header)) /* a later fragment: no header to answer */
        return refuse(batch, packet, HB_DROP_FRAGMENT);
    hb_nat_sessions_touch(worker->sessions, session, true, HB_NAT_SAW_RST, worker->now_ms);
    use_backend(batch, packet, tell ? session->backend : packet->backend_id);
    if (packet->event == HB_EVENT_RST)
        return tell || refuse(batch, packet, HB_DROP_NAT_NO_SESSION);
    if (tell && hb_backend_resets(packet->backend, session->incarnation, UINT32_MAX))
        worker->counters->drain_resets++;
    else
        worker->counters->nat_resets++;
    put_back(packet, header);
    hb_reset_ends(batch, packet, tell);
    return packet->mbuf != NULL &&
           hb_nat_begin(batch, packet, header, packet->backend->size + HB_NAT_ROOM);
}

bool hb_full_nat_forward(struct hb_batch *batch, struct hb_packet *packet,
                         struct hb_nat_header *header)
{
    struct hb_flow_key request = key_of(packet);
    struct hb_nat_session *session = find_session(batch, packet, &request);

    if (session == NULL && packet->event != HB_EVENT_SYN && packet->event != HB_EVENT_UDP)
        return refuse(batch, packet, HB_DROP_NAT_NO_SESSION);
    if (session == NULL && !hb_nat_has_ports(header)) /* a later fragment opens nothing */
        return refuse(batch, packet, HB_DROP_FRAGMENT);
    if (session == NULL) {
        session = open_session(batch, packet, &request, header);
        if (session == NULL)
            return false;
    } else if (serves(batch, packet, session)) {
        hb_nat_sessions_touch(batch->worker->sessions, session, true, event_of(packet),
                              batch->worker->now_ms);
    } else if (!end_by_reset(batch, packet, header, session)) {
        return false;
    }
    use_backend(batch, packet, session->backend);
    if (!hb_nat_tell_client(batch, packet, header, session))
        return false;
    hb_nat_set_end(header, HB_NAT_SOURCE_END, session->answer.destination,
                   session->answer.destination_port);
    hb_nat_set_end(header, HB_NAT_DESTINATION_END, session->answer.source,
                   session->answer.source_port);
    return true;
}

/* --- answers --- */

/* What a segment of the client may hold, so that it fits the link with what is put in front. */
static uint16_t mss_max_of(const struct hb_backend *backend, uint8_t family)
{
    uint32_t headers = family == HB_FAMILY_IPV4 ? TCP_AND_IPV4 : TCP_AND_IPV6;

    return (uint16_t)(backend->inner_max - headers - hb_proxy_v2_size(family));
}

/* The service by which the client reaches the session's VIP; none when it is gone. */
static void use_service(const struct hb_batch *batch, struct hb_packet *packet,
                        const struct hb_flow_key *request)
{
    int32_t index = hb_service_map_find(batch->generation->map, request);

    packet->service = index >= 0 ? (uint16_t)index : HB_NO_SERVICE;
}

/* An error about a request, addressed to the source address: quoted is what left for the backend.
 */
static bool return_error(struct hb_batch *batch, struct hb_packet *packet,
                         struct hb_nat_header *outer, struct hb_nat_header *quote)
{
    struct hb_flow_key answer = hb_nat_flow_key(quote, true);
    struct hb_nat_session *session =
        hb_nat_sessions_by_answer(batch->worker->sessions, &answer, batch->worker->now_ms);
    struct hb_nat_exchange own[2], quoted[2];

    if (session == NULL)
        return refuse(batch, packet, HB_DROP_NAT_NO_SESSION);
    packet->backend_id = session->backend;
    hb_nat_note_unreachable(batch->worker, outer, session->backend);
    own[0] = (struct hb_nat_exchange){HB_NAT_SOURCE_END, session->request.destination, 0};
    own[1] = (struct hb_nat_exchange){HB_NAT_DESTINATION_END, session->request.source, 0};
    quoted[0] = (struct hb_nat_exchange){HB_NAT_SOURCE_END, session->request.source,
                                         session->request.source_port};
    quoted[1] = (struct hb_nat_exchange){HB_NAT_DESTINATION_END, session->request.destination,
                                         session->request.destination_port};
    hb_nat_translate_error(outer, own, 2, quote, quoted, 2);
    return true;
}

static bool return_answer(struct hb_batch *batch, struct hb_packet *packet,
                          struct hb_nat_header *header)
{
    struct hb_nat_sessions *sessions = batch->worker->sessions;
    struct hb_flow_key answer = key_of(packet);
    struct hb_nat_session *session =
        hb_nat_sessions_by_answer(sessions, &answer, batch->worker->now_ms);

    if (session == NULL || !can_be_told(batch, session))
        return refuse(batch, packet, HB_DROP_NAT_NO_SESSION);
    packet->backend_id = session->backend;
    use_service(batch, packet, &session->request);
    /* What a backend says that serves no more is said, as in any mode, but keeps nothing alive. */
    if (hb_backend_serves(batch->generation, session->backend, session->incarnation))
        hb_nat_sessions_touch(sessions, session, false, event_of(packet), batch->worker->now_ms);
    if (packet->event == HB_EVENT_FIN || packet->event == HB_EVENT_RST)
        hb_flow_note_answer(batch, &session->request, packet->event);
    if (header->protocol == HB_PROTOCOL_TCP && hb_nat_has_ports(header))
        hb_nat_hide_shift(
            header, session,
            mss_max_of(&batch->generation->backends[session->backend], header->family));
    hb_nat_set_end(header, HB_NAT_SOURCE_END, session->request.destination,
                   session->request.destination_port);
    hb_nat_set_end(header, HB_NAT_DESTINATION_END, session->request.source,
                   session->request.source_port);
    return true;
}

/* Whether another worker has the session; then the packet is with it. */
static bool is_elsewhere(struct hb_batch *batch, struct hb_packet *packet, hb_be16 port)
{
    uint32_t length = rte_pktmbuf_pkt_len(packet->mbuf);
    uint16_t number = (uint16_t)(port >> 8 | port << 8);
    uint32_t owner = hb_nat_worker_of(batch->generation->nat, number);

    if (owner == batch->worker->config.index)
        return false;
    if (!hb_handover_give(batch->worker, owner, packet->mbuf)) {
        hb_drop(batch, packet, HB_DROP_TX_FULL);
        return true;
    }
    batch->worker->counters->nat_handovers++;
    batch->worker->counters->tx_packets++;
    batch->worker->counters->tx_bytes += length;
    packet->mbuf = NULL;
    return true;
}

/* The port by which the worker is found, when the packet has one. */
static bool read_port(const struct hb_packet *packet, hb_be16 *port, bool *error)
{
    struct hb_nat_header header, quote;

    *error = false;
    if (packet->fault == HB_NO_FAULT) {
        *port = (hb_be16)(packet->flow.ports >> 16);
        return true;
    }
    if (packet->fault != HB_DROP_ICMP_TYPE ||
        !hb_nat_read(&header, rte_pktmbuf_mtod_offset(packet->mbuf, uint8_t *, packet->l3_offset),
                     rte_pktmbuf_data_len(packet->mbuf) - packet->l3_offset) ||
        !hb_nat_is_error(&header) || !hb_nat_read_quote(&header, &quote))
        return false;
    *error = true;
    *port = hb_nat_port(&quote, HB_NAT_SOURCE_END);
    return true;
}

bool hb_full_nat_return(struct hb_batch *batch, struct hb_packet *packet, uint16_t room)
{
    struct hb_nat_header header, quote;
    hb_be16 port;
    bool error;

    if (packet->fault == HB_DROP_FRAGMENT && !hb_fragment_find_ports(batch, packet))
        return false;
    if (!read_port(packet, &port, &error))
        return refuse(batch, packet, packet->fault);
    if (is_elsewhere(batch, packet, port))
        return false;
    if (batch->worker->sessions == NULL)
        return refuse(batch, packet, HB_DROP_NAT_NO_SESSION);
    if (!hb_nat_begin(batch, packet, &header, room))
        return false;
    if (!error)
        return return_answer(batch, packet, &header);
    if (!hb_nat_read_quote(&header, &quote))
        return refuse(batch, packet, HB_DROP_ICMP_QUOTE);
    return return_error(batch, packet, &header, &quote);
}

/* --- errors about answers --- */

bool hb_full_nat_icmp_request(struct hb_batch *batch, struct hb_packet *packet,
                              struct hb_nat_header *outer, struct hb_nat_header *quote)
{
    struct hb_flow_key request = hb_nat_flow_key(quote, true);
    struct hb_nat_sessions *sessions = batch->worker->sessions;
    struct hb_nat_session *session = NULL;
    struct hb_nat_exchange own[2], quoted[2];

    if (sessions != NULL)
        session = hb_nat_sessions_by_request(sessions, &request, batch->worker->now_ms);
    if (session == NULL || !can_be_told(batch, session))
        return refuse(batch, packet, HB_DROP_NAT_NO_SESSION);
    use_backend(batch, packet, session->backend);
    own[0] = (struct hb_nat_exchange){HB_NAT_SOURCE_END, session->answer.destination, 0};
    own[1] = (struct hb_nat_exchange){HB_NAT_DESTINATION_END, session->answer.source, 0};
    quoted[0] = (struct hb_nat_exchange){HB_NAT_SOURCE_END, session->answer.source,
                                         session->answer.source_port};
    quoted[1] = (struct hb_nat_exchange){HB_NAT_DESTINATION_END, session->answer.destination,
                                         session->answer.destination_port};
    hb_nat_translate_error(outer, own, 2, quote, quoted, 2);
    return true;
}

void hb_full_nat_age(struct hb_worker *worker, uint32_t elapsed_ms)
{
    uint64_t max, due;

    if (elapsed_ms == 0)
        return;
    max = hb_nat_sessions_max(worker->sessions);
    due = max * elapsed_ms / HB_SWEEP_MS + 1; /* a shift: HB_SWEEP_MS is a power of two */
    hb_nat_sessions_age(worker->sessions, due < max ? (uint32_t)due : (uint32_t)max,
                        worker->now_ms);
    worker->counters->nat_sessions = hb_nat_sessions_used(worker->sessions);
}
