/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control_errors.c: ICMP errors about tunnel packets on their way to the backends.
 *
 * All are counted for the backend. "Packet too big" also lowers what the backend's rewrite lets
 * through, in the next generation: from then on the dataplane tells clients what fits the whole
 * path, as it does for the link (icmp_make.c). So the packet path knows nothing of all this.
 *
 * What a forged message can do: it must name a backend that tunnel packets go to, the source that
 * they have and the mode, and inside, where that is quoted, a VIP of the pool. Then it can lower
 * the MTU for HB_PATH_KEEP_MS, and not below a floor at which everything works.
 */
#include <errno.h>
#include <string.h>

#include "clock.h"
#include "control.h"
#include "log.h"
#include "tunnel_error.h"

void hb_control_listen(struct hb_control *control)
{
    static const uint8_t families[2] = {HB_FAMILY_IPV4, HB_FAMILY_IPV6};

    for (int i = 0; i < 2; i++) {
        control->icmp[i] =
            hb_icmp_socket_open(control->base, families[i], hb_control_icmp_heard, control);
        if (control->icmp[i] == NULL)
            hb_log(HB_LOG_WARNING,
                   "cannot listen to ICMPv%d: %s; path MTUs to the backends are not learned and "
                   "errors about tunnels not counted%s",
                   i == 0 ? 4 : 6, strerror(errno),
                   errno == EPERM ? "; give control CAP_NET_RAW" : "");
    }
}

static bool is_vip_of(const struct hb_model *model, uint32_t pool, const struct hb_address *address)
{
    for (uint32_t s = 0; s < model->services_count; s++) {
        const struct hb_model_service *service = &model->services[s];
        struct hb_address_prefix prefix = {service->vip, service->prefix_length};

        if (service->pool == pool && hb_address_prefix_holds(&prefix, address))
            return true;
    }
    return false;
}

static bool serves_ipv6(const struct hb_model *model, uint32_t pool)
{
    for (uint32_t s = 0; s < model->services_count; s++)
        if (model->services[s].pool == pool && model->services[s].vip.family == HB_FAMILY_IPV6)
            return true;
    return false;
}

/* A tunnel that carries IPv6 is an IPv6 link: 1,280 bytes must fit inside (RFC 8200, section 5).
 * Nobody could be told to send less, so a smaller path would only stop what may yet pass. */
static uint32_t floor_of(const struct hb_model *model, const struct hb_model_backend *backend)
{
    bool ipv4 = backend->rewrite.family == HB_FAMILY_IPV4;
    uint32_t configured = ipv4 ? model->icmp.mtu_floor : model->icmp.mtu_floor6;
    uint32_t least = ipv4 ? HB_PATH_FLOOR4 : HB_PATH_FLOOR6;

    if (serves_ipv6(model, backend->pool))
        least = HB_PATH_FLOOR6 + (uint32_t)backend->rewrite.size - backend->rewrite.l2_size;
    return configured > least ? configured : least;
}

static void learn(struct hb_control *control, struct hb_model_pool *pool,
                  struct hb_model_backend *backend, uint32_t mtu)
{
    uint32_t in_use =
        (uint32_t)backend->rewrite.inner_max + backend->rewrite.size - backend->rewrite.l2_size;

    if (!hb_path_learn(&backend->path, mtu, in_use, floor_of(control->model, backend), hb_now_ms()))
        return;
    hb_log(HB_LOG_INFO, "pool %s: backend %s (%s): the path has an MTU of %u", pool->name,
           backend->name, backend->identity, mtu);
    hb_events_add(control->events, HB_NEWS_ROUTE, pool->name, backend->name,
                  "the path to backend %s has an MTU of %u", backend->name, mtu);
    hb_pool_touch(pool);
    hb_control_changed(control);
}

static void take(struct hb_control *control, struct hb_model_pool *pool,
                 struct hb_model_backend *backend, const struct hb_tunnel_error *error)
{
    switch (error->kind) {
    case HB_TUNNEL_UNREACHABLE:
        backend->path.unreachable++;
        break;
    case HB_TUNNEL_TIME_EXCEEDED:
        backend->path.time_exceeded++;
        break;
    case HB_TUNNEL_TOO_BIG:
        backend->path.too_big++;
        learn(control, pool, backend, error->mtu);
        break;
    }
}

/* A machine may be a member of several pools, with a path of its own in each: their tunnels may
 * differ. Returns whether the error is about one of them. */
static bool is_taken(struct hb_control *control, const struct hb_tunnel_error *error)
{
    bool taken = false;

    for (uint32_t p = 0; p < control->model->pools_count; p++) {
        struct hb_model_pool *pool = &control->model->pools[p];
        struct hb_model_backend *backend = hb_pool_backend(pool, &error->to);
        struct hb_address inner;

        if (backend == NULL || !hb_tunnel_error_is_of(error, &backend->rewrite, &inner))
            continue;
        if (inner.family != 0 && !is_vip_of(control->model, p, &inner))
            continue;
        take(control, pool, backend, error);
        taken = true;
    }
    return taken;
}

void hb_control_icmp_heard(void *context, uint8_t family, const uint8_t *message, size_t size)
{
    struct hb_control *control = context;
    struct hb_tunnel_error error;

    if (!control->started)
        return;
    if (!hb_tunnel_error_read(family, message, size, &error) || !is_taken(control, &error))
        control->icmp_ignored++;
}

void hb_control_age_paths(struct hb_control *control)
{
    uint64_t now_ms = hb_now_ms();

    for (uint32_t p = 0; p < control->model->pools_count; p++) {
        struct hb_model_pool *pool = &control->model->pools[p];

        for (uint32_t b = 0; b < pool->backends_count; b++) {
            struct hb_model_backend *backend = pool->backends[b];

            if (!hb_path_age(&backend->path, now_ms))
                continue;
            hb_events_add(control->events, HB_NEWS_ROUTE, pool->name, backend->name,
                          "the path to backend %s is taken for as large as the link again",
                          backend->name);
            hb_pool_touch(pool);
            hb_control_changed(control);
        }
    }
}
