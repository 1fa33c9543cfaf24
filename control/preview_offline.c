/* SPDX-License-Identifier: BSD-3-Clause */
#include "preview_offline.h"

#include <errno.h>
#include <stdio.h>

#include "preview_json.h"
#include "reconcile.h"

/* A network in which every next hop is known and leads to the one port there is. */
static const struct hb_port_info any_port = {.ifindex = 1, .mtu = 1500, .link_up = 1};
static const struct hb_port_list ports = {&any_port, 1};

static void make_reachable(struct hb_model_backend *backend)
{
    const char *source = backend->address.family == HB_FAMILY_IPV4 ? "192.0.2.1" : "2001:db8::1";

    backend->hop = (struct hb_next_hop){
        .resolved = true,
        .ifindex = 1,
        .mtu = 1500,
        .source_mac = {2, 0, 0, 0, 0, 1},
        .gateway_mac = {2, 0, 0, 0, 0, 2},
    };
    hb_address_parse(source, &backend->hop.source);
    backend->hop.gateway = backend->address;
    hb_backend_state_apply(&backend->state, HB_EVENT_TAKE_OVER_UP, 1, 1, 0, 0);
}

/* The model as it is when the file has been in use for a while; NULL without memory. */
static struct hb_model *settle(const struct hb_config *config)
{
    struct hb_model *model = hb_model_new();
    struct hb_plan plan = {0};
    struct hb_model_diff diff;
    char problem[HB_TABLE_EXPLANATION + HB_NAME_SIZE + 32];
    int error = -ENOMEM;

    if (model != NULL)
        error = hb_model_apply(model, config, 0, &diff);
    for (uint32_t p = 0; error == 0 && p < model->pools_count; p++) {
        for (uint32_t b = 0; b < model->pools[p].backends_count; b++)
            make_reachable(model->pools[p].backends[b]);
    }
    if (error == 0)
        error = hb_reconcile(model, ports, &plan, problem, sizeof(problem));
    hb_plan_clear(&plan);
    if (error == 0)
        return model;
    hb_model_free(model);
    return NULL;
}

int hb_preview_files(const struct hb_config *old, const struct hb_config *new, json_t **plan,
                     char *complaint, size_t size)
{
    struct hb_model *model = settle(old);
    struct hb_preview preview;
    struct hb_model_diff diff;
    int error = -ENOMEM;

    *plan = NULL;
    complaint[0] = '\0';
    if (model == NULL)
        return -ENOMEM;
    error = hb_model_check(model, new, &diff);
    if (error != 0) {
        snprintf(complaint, size, "%s", diff.error);
        goto free_model;
    }
    error = hb_preview_make(model, new, NULL, NULL, &preview);
    if (error != 0)
        goto free_model;
    *plan = hb_preview_json(&preview);
    hb_preview_clear(&preview);
    error = *plan ? 0 : -ENOMEM;
free_model:
    hb_model_free(model);
    return error;
}
