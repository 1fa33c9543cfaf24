/* SPDX-License-Identifier: BSD-3-Clause */
/* See nat_session.h. */
#include "nat_session.h"

#include <string.h>

enum { BY_REQUEST, BY_ANSWER, INDEXES };

/* Whose turn it is among a pool's sources and ports. */
struct turn {
    uint16_t source, port;
};

struct hb_nat_sessions {
    struct hb_nat_session *session;
    uint32_t *head[INDEXES]; /* of chains */
    uint32_t mask;
    uint32_t max, used;
    uint32_t free;           /* the first of them */
    uint32_t oldest, newest; /* on probation */
    uint32_t swept;
    uint32_t timeout_ms[HB_NAT_STATES];
    uint32_t start; /* where pools begin to take ports */
    struct hb_hash_key seed;
    struct hb_nat_counters *counters; /* by backend id; NULL: nobody asks */
    struct turn turn[HB_POOLS_MAX];
};

static const uint8_t next_state[HB_NAT_STATES][2][4] = {
    /* rows: state, then from the backend, from the client; columns: SYN, data, FIN, RST */
    [HB_NAT_OPENING] = {{HB_NAT_OPENING, HB_NAT_OPENING, HB_NAT_CLOSING, HB_NAT_RESET},
                        {HB_NAT_OPENING, HB_NAT_ESTABLISHED, HB_NAT_CLOSING, HB_NAT_RESET}},
    [HB_NAT_ESTABLISHED] = {{HB_NAT_ESTABLISHED, HB_NAT_ESTABLISHED, HB_NAT_CLOSING, HB_NAT_RESET},
                            {HB_NAT_ESTABLISHED, HB_NAT_ESTABLISHED, HB_NAT_CLOSING, HB_NAT_RESET}},
    [HB_NAT_CLOSING] = {{HB_NAT_CLOSING, HB_NAT_CLOSING, HB_NAT_CLOSING, HB_NAT_CLOSING},
                        {HB_NAT_CLOSING, HB_NAT_CLOSING, HB_NAT_CLOSING, HB_NAT_CLOSING}},
    /* Had a stranger sent the RST, its victims would go on (RFC 5961). */
    [HB_NAT_RESET] = {{HB_NAT_RESET, HB_NAT_ESTABLISHED, HB_NAT_CLOSING, HB_NAT_RESET},
                      {HB_NAT_RESET, HB_NAT_ESTABLISHED, HB_NAT_CLOSING, HB_NAT_RESET}},
    /* An answer proves nothing about who asked. */
    [HB_NAT_UDP_FIRST] = {{0, HB_NAT_UDP_FIRST, 0, 0}, {0, HB_NAT_UDP, 0, 0}},
    [HB_NAT_UDP] = {{0, HB_NAT_UDP, 0, 0}, {0, HB_NAT_UDP, 0, 0}},
};

static bool on_probation(uint8_t state)
{
    return state == HB_NAT_OPENING || state == HB_NAT_UDP_FIRST;
}

static uint32_t chains_for(uint32_t max)
{
    uint32_t chains = 8;

    while (chains < max)
        chains *= 2;
    return chains;
}

static size_t round_up(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

size_t hb_nat_sessions_bytes(uint32_t max)
{
    return round_up(sizeof(struct hb_nat_sessions)) + (size_t)max * sizeof(struct hb_nat_session) +
           INDEXES * (size_t)chains_for(max) * sizeof(uint32_t);
}

struct hb_nat_sessions *hb_nat_sessions_init(void *memory, uint32_t max,
                                             const struct hb_flow_timeouts *timeouts,
                                             const struct hb_hash_key *seed)
{
    struct hb_nat_sessions *sessions = memory;
    uint32_t chains = chains_for(max);
    uint8_t *end = (uint8_t *)memory + round_up(sizeof(*sessions));

    memset(memory, 0, hb_nat_sessions_bytes(max));
    sessions->session = (void *)end;
    sessions->head[BY_REQUEST] = (void *)(end + (size_t)max * sizeof(struct hb_nat_session));
    sessions->head[BY_ANSWER] = sessions->head[BY_REQUEST] + chains;
    sessions->mask = chains - 1;
    sessions->max = max;
    sessions->seed = *seed;
    sessions->start = (uint32_t)(seed->word[0] >> 16);
    sessions->oldest = sessions->newest = HB_NAT_NONE;
    memset(sessions->head[BY_REQUEST], 0xff, 2 * (size_t)chains * sizeof(uint32_t));
    for (uint32_t i = 0; i < max; i++)
        sessions->session[i].next[0] = i + 1 < max ? i + 1 : HB_NAT_NONE;
    sessions->free = max > 0 ? 0 : HB_NAT_NONE;
    sessions->timeout_ms[HB_NAT_OPENING] = timeouts->tcp_syn_ms;
    sessions->timeout_ms[HB_NAT_ESTABLISHED] = timeouts->tcp_established_ms;
    sessions->timeout_ms[HB_NAT_CLOSING] = HB_NAT_LINGER_MS;
    sessions->timeout_ms[HB_NAT_RESET] = timeouts->tcp_fin_ms;
    sessions->timeout_ms[HB_NAT_UDP_FIRST] = timeouts->udp_ms;
    sessions->timeout_ms[HB_NAT_UDP] = timeouts->udp_ms;
    return sessions;
}

void hb_nat_sessions_count_in(struct hb_nat_sessions *sessions, struct hb_nat_counters *counters)
{
    sessions->counters = counters;
}

static uint32_t index_of(const struct hb_nat_sessions *sessions,
                         const struct hb_nat_session *session)
{
    return (uint32_t)(session - sessions->session);
}

static const struct hb_flow_key *key_of(const struct hb_nat_session *session, int index)
{
    return index == BY_REQUEST ? &session->request : &session->answer;
}

static uint32_t *chain_of(struct hb_nat_sessions *sessions, int index,
                          const struct hb_flow_key *key)
{
    return &sessions->head[index][hb_flow_hash(key, &sessions->seed) & sessions->mask];
}

static void link_in(struct hb_nat_sessions *sessions, struct hb_nat_session *session, int index)
{
    uint32_t *head = chain_of(sessions, index, key_of(session, index));

    session->next[index] = *head;
    *head = index_of(sessions, session);
}

static void take_out(struct hb_nat_sessions *sessions, struct hb_nat_session *session, int index)
{
    uint32_t wanted = index_of(sessions, session);
    uint32_t *at = chain_of(sessions, index, key_of(session, index));

    while (*at != wanted)
        at = &sessions->session[*at].next[index];
    *at = session->next[index];
}

/* Probation is a list from the oldest to the newest. */
static void begin_probation(struct hb_nat_sessions *sessions, struct hb_nat_session *session)
{
    uint32_t self = index_of(sessions, session);

    session->older = sessions->newest;
    session->newer = HB_NAT_NONE;
    if (sessions->newest != HB_NAT_NONE)
        sessions->session[sessions->newest].newer = self;
    else
        sessions->oldest = self;
    sessions->newest = self;
}

static void end_probation(struct hb_nat_sessions *sessions, struct hb_nat_session *session)
{
    if (session->older != HB_NAT_NONE)
        sessions->session[session->older].newer = session->newer;
    else
        sessions->oldest = session->newer;
    if (session->newer != HB_NAT_NONE)
        sessions->session[session->newer].older = session->older;
    else
        sessions->newest = session->older;
}

void hb_nat_sessions_end(struct hb_nat_sessions *sessions, struct hb_nat_session *session)
{
    if (on_probation(session->state))
        end_probation(sessions, session);
    if (!session->detached)
        take_out(sessions, session, BY_REQUEST);
    take_out(sessions, session, BY_ANSWER);
    if (sessions->counters != NULL)
        sessions->counters[session->backend].sessions--;
    session->state = HB_NAT_FREE;
    session->next[0] = sessions->free;
    sessions->free = index_of(sessions, session);
    sessions->used--;
}

void hb_nat_sessions_detach(struct hb_nat_sessions *sessions, struct hb_nat_session *session)
{
    if (session->detached)
        return;
    take_out(sessions, session, BY_REQUEST);
    session->detached = true;
}

static bool is_over(const struct hb_nat_sessions *sessions, const struct hb_nat_session *session,
                    uint32_t now_ms)
{
    return now_ms - session->last_ms >= sessions->timeout_ms[session->state];
}

/* Whether its time is over or not. */
static struct hb_nat_session *find(struct hb_nat_sessions *sessions, int index,
                                   const struct hb_flow_key *key)
{
    uint32_t at = *chain_of(sessions, index, key);

    while (at != HB_NAT_NONE) {
        struct hb_nat_session *session = &sessions->session[at];

        if (memcmp(key_of(session, index), key, sizeof(*key)) == 0)
            return session;
        at = session->next[index];
    }
    return NULL;
}

static struct hb_nat_session *find_live(struct hb_nat_sessions *sessions, int index,
                                        const struct hb_flow_key *key, uint32_t now_ms)
{
    struct hb_nat_session *session = find(sessions, index, key);

    if (session == NULL || !is_over(sessions, session, now_ms))
        return session;
    hb_nat_sessions_end(sessions, session);
    return NULL;
}

struct hb_nat_session *hb_nat_sessions_by_request(struct hb_nat_sessions *sessions,
                                                  const struct hb_flow_key *request,
                                                  uint32_t now_ms)
{
    return find_live(sessions, BY_REQUEST, request, now_ms);
}

struct hb_nat_session *hb_nat_sessions_by_answer(struct hb_nat_sessions *sessions,
                                                 const struct hb_flow_key *answer, uint32_t now_ms)
{
    return find_live(sessions, BY_ANSWER, answer, now_ms);
}

/* The turn of a pool goes on by one: through all addresses before the next port. */
static void take_turn(struct turn *turn, const struct hb_nat_wish *wish)
{
    if (++turn->source < wish->sources_count)
        return;
    turn->source = 0;
    if (++turn->port >= wish->sources[0].each)
        turn->port = 0;
}

/* The first turn of a pool is anywhere. */
static void begin_turn(const struct hb_nat_sessions *sessions, struct turn *turn,
                       const struct hb_nat_wish *wish)
{
    uint32_t each = wish->sources[0].each;

    if (turn->source == 0 && turn->port == 0 && each > 0)
        turn->port = (uint16_t)(((uint64_t)sessions->start * each) >> 32);
    if (turn->source >= wish->sources_count)
        turn->source = 0;
    if (turn->port >= each)
        turn->port = 0;
}

/* Finds a tuple that nobody has. */
static bool take_port(struct hb_nat_sessions *sessions, const struct hb_nat_wish *wish,
                      struct hb_flow_key *answer, uint32_t now_ms)
{
    struct turn *turn = &sessions->turn[wish->pool % HB_POOLS_MAX];
    uint64_t tuples;

    if (wish->sources_count == 0)
        return false;
    tuples = (uint64_t)wish->sources_count * wish->sources[0].each;
    begin_turn(sessions, turn, wish);
    for (uint32_t try = 0; try < HB_NAT_TRIES && try < tuples; try++) {
        const struct hb_nat_source *source = &wish->sources[turn->source];
        uint32_t port = source->first + turn->port * wish->workers + wish->worker;
        bool fits = turn->port < source->each && source->family == wish->request->family;

        take_turn(turn, wish);
        if (!fits)
            continue;
        memcpy(answer->destination, source->address, sizeof(answer->destination));
        answer->destination_port = (hb_be16)(port >> 8 | (port & 0xff) << 8);
        if (find_live(sessions, BY_ANSWER, answer, now_ms) == NULL)
            return true;
    }
    return false;
}

static struct hb_nat_session *take_place(struct hb_nat_sessions *sessions)
{
    struct hb_nat_session *session;

    if (sessions->free == HB_NAT_NONE && sessions->oldest != HB_NAT_NONE)
        hb_nat_sessions_end(sessions, &sessions->session[sessions->oldest]);
    if (sessions->free == HB_NAT_NONE)
        return NULL;
    session = &sessions->session[sessions->free];
    sessions->free = session->next[0];
    sessions->used++;
    return session;
}

struct hb_nat_session *hb_nat_sessions_add(struct hb_nat_sessions *sessions,
                                           const struct hb_nat_wish *wish, uint32_t now_ms,
                                           enum hb_nat_result *result)
{
    struct hb_flow_key answer = {
        .source_port = wish->backend_port,
        .protocol = wish->request->protocol,
        .family = wish->request->family,
    };
    struct hb_nat_session *session;

    memcpy(answer.source, wish->backend_address, answer.family == HB_FAMILY_IPV4 ? 4 : 16);
    *result = HB_NAT_NO_PORT;
    if (!take_port(sessions, wish, &answer, now_ms)) {
        if (sessions->counters != NULL)
            sessions->counters[wish->backend].exhausted++;
        return NULL;
    }
    *result = HB_NAT_FULL;
    session = take_place(sessions);
    if (session == NULL)
        return NULL;
    *session = (struct hb_nat_session){
        .request = *wish->request,
        .answer = answer,
        .last_ms = now_ms,
        .incarnation = wish->incarnation,
        .backend = wish->backend,
        .state = answer.protocol == HB_PROTOCOL_UDP ? HB_NAT_UDP_FIRST : HB_NAT_OPENING,
    };
    link_in(sessions, session, BY_REQUEST);
    link_in(sessions, session, BY_ANSWER);
    begin_probation(sessions, session);
    if (sessions->counters != NULL)
        sessions->counters[wish->backend].sessions++;
    *result = HB_NAT_ADDED;
    return session;
}

void hb_nat_sessions_touch(struct hb_nat_sessions *sessions, struct hb_nat_session *session,
                           bool from_client, enum hb_nat_event event, uint32_t now_ms)
{
    uint8_t state = next_state[session->state][from_client][event];

    session->last_ms = now_ms;
    if (on_probation(session->state) && !on_probation(state))
        end_probation(sessions, session);
    session->state = state;
}

void hb_nat_sessions_age(struct hb_nat_sessions *sessions, uint32_t count, uint32_t now_ms)
{
    if (sessions->used == 0)
        return;
    for (uint32_t i = 0; i < count; i++) {
        struct hb_nat_session *session = &sessions->session[sessions->swept];

        if (++sessions->swept == sessions->max)
            sessions->swept = 0;
        if (session->state != HB_NAT_FREE && is_over(sessions, session, now_ms))
            hb_nat_sessions_end(sessions, session);
    }
}

uint32_t hb_nat_sessions_used(const struct hb_nat_sessions *sessions)
{
    return sessions->used;
}

uint32_t hb_nat_sessions_max(const struct hb_nat_sessions *sessions)
{
    return sessions->max;
}
