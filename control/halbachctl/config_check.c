/* SPDX-License-Identifier: BSD-3-Clause */
/* halbachctl config check: the same rules as halbach-control's, without it. */
#include <inttypes.h>
#include <stdlib.h>

#include "config.h"
#include "ctl.h"

struct complaints {
    const struct hb_ctl *ctl;
    const struct hb_screen *screen;
    json_t *errors, *warnings;
    unsigned count;
};

static void on_report(void *context, bool warning, const char *message)
{
    struct complaints *complaints = context;

    complaints->count += !warning;
    json_array_append_new(warning ? complaints->warnings : complaints->errors,
                          json_string(message));
    if (complaints->ctl->json)
        return;
    hb_print(complaints->screen, HB_PLAIN, "%s%s", warning ? "warning: " : "", message);
    fputc('\n', complaints->screen->out);
}

static void show_summary(const struct hb_screen *screen, const char *file,
                         const struct hb_config *config)
{
    static const struct hb_column columns[] = {
        {"POOL", false, 12},   {"ALGORITHM", false, 0}, {"SLOTS", true, 0},
        {"BACKENDS", true, 0}, {"WEIGHT 0", true, 0},   {"SERVICES", true, 0},
    };
    struct hb_table *table = hb_table_new(columns, 6);
    uint32_t i, j, backends = 0;

    for (i = 0; i < config->pools_count; i++)
        backends += config->pools[i].backends_count;
    hb_print(screen, HB_PLAIN, "%s: ", file);
    hb_print(screen, HB_GREEN, "good");
    fprintf(screen->out, "; %u service%s, %u pool%s, %u backend%s\n\n", config->services_count,
            config->services_count == 1 ? "" : "s", config->pools_count,
            config->pools_count == 1 ? "" : "s", backends, backends == 1 ? "" : "s");
    for (i = 0; i < config->pools_count; i++) {
        const struct hb_pool_config *pool = &config->pools[i];
        unsigned resting = 0, services = 0;

        for (j = 0; j < pool->backends_count; j++)
            resting += pool->backends[j].weight == 0;
        for (j = 0; j < config->services_count; j++)
            services += config->services[j].pool == i;
        hb_table_add(table, HB_PLAIN, "%s", pool->name);
        hb_table_add(table, HB_PLAIN, "%s", hb_table_builder_of(pool->algorithm)->name);
        hb_table_add(table, HB_PLAIN, "%u", pool->table_size);
        hb_table_add(table, HB_PLAIN, "%u", pool->backends_count);
        hb_table_add(table, HB_PLAIN, "%u", resting);
        hb_table_add(table, HB_PLAIN, "%u", services);
    }
    hb_table_finish(table, screen);
}

static json_t *pools_json(const struct hb_config *config)
{
    json_t *pools = json_array();
    uint32_t i;

    for (i = 0; config && i < config->pools_count; i++)
        json_array_append_new(pools,
                              json_pack("{s:s, s:I, s:I}", "name", config->pools[i].name,
                                        "table_size", (json_int_t)config->pools[i].table_size,
                                        "backends", (json_int_t)config->pools[i].backends_count));
    return pools;
}

/* Takes the arrays of `complaints` over. */
static void print_json(const struct hb_ctl *ctl, const char *file, const struct hb_config *config,
                       const struct complaints *complaints)
{
    json_t *document = json_pack(
        "{s:s, s:b, s:I, s:o, s:o, s:o}", "file", file, "good", config != NULL, "services",
        (json_int_t)(config ? config->services_count : 0), "pools", pools_json(config),
        "complaints", complaints->errors, "warnings", complaints->warnings);

    json_dumpf(document, ctl->screen.out, JSON_INDENT(2));
    fputc('\n', ctl->screen.out);
    json_decref(document);
}

int hb_ctl_config_check(const struct hb_ctl *ctl)
{
    const char *file = ctl->arguments[0];
    const struct hb_screen errors = {.out = ctl->err};
    struct complaints complaints = {
        .ctl = ctl,
        .screen = &errors,
        .errors = json_array(),
        .warnings = json_array(),
    };
    struct hb_config *config = hb_config_load(file, on_report, &complaints);
    int result = config ? HB_EXIT_OK : HB_EXIT_FAILED;

    if (ctl->json) {
        print_json(ctl, file, config, &complaints);
    } else {
        if (config)
            show_summary(&ctl->screen, file, config);
        else
            fprintf(ctl->err, "halbachctl: %s is refused: %u complaint%s\n", file, complaints.count,
                    complaints.count == 1 ? "" : "s");
        json_decref(complaints.errors);
        json_decref(complaints.warnings);
    }
    hb_config_free(config);
    return result;
}
