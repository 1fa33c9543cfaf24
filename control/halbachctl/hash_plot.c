/* SPDX-License-Identifier: BSD-3-Clause */
/* halbachctl hash plot: which picture, into which file. */
#include "hash_plot.h"

#include <stdlib.h>
#include <string.h>

/* Colours that people with any colour vision tell apart (M. Okabe, K. Ito, "Color Universal
 * Design", 2008), ordered so that neighbours differ in brightness, too. */
const char *const hb_plot_colours[HB_PLOT_STYLES] = {
    "#000000", "#e69f00", "#0072b2", "#56b4e9", "#d55e00", "#cc79a7", "#009e73", "#999999",
};

const char *const hb_plot_line_styles[HB_PLOT_STYLES] = {
    "lw 2 ps 1.1*mark dt 1 pt 7 lc rgb '#000000'",
    "lw 2 ps 1.1*mark dt 2 pt 5 lc rgb '#e69f00'",
    "lw 2 ps 1.2*mark dt 3 pt 9 lc rgb '#0072b2'",
    "lw 2 ps 1.2*mark dt 4 pt 11 lc rgb '#56b4e9'",
    "lw 2 ps 1.3*mark dt 5 pt 13 lc rgb '#d55e00'",
    "lw 2 ps 1.1*mark dt (2,6) pt 4 lc rgb '#cc79a7'",
    "lw 2 ps 1.1*mark dt (12,4) pt 6 lc rgb '#009e73'",
    "lw 2 ps 1.1*mark dt (6,3) pt 8 lc rgb '#999999'",
};

static const struct kind {
    const char *name;
    int (*draw)(struct hb_plot *plot);
    unsigned width, height;
} kinds[] = {
    {"moves", hb_plot_moves, 960, 80}, /* and more for each method */
    {"shares", hb_plot_shares, 960, 620},   {"failures", hb_plot_failures, 860, 760},
    {"balance", hb_plot_balance, 860, 520}, {"ring", hb_plot_ring, 640, 680},
};

void hb_plot_quote(FILE *script, const char *text)
{
    char *clean = strdup(text), *c;

    fputc('\'', script);
    if (clean)
        hb_text_clean(clean);
    for (c = clean; c && *c; c++) {
        if (*c == '\'')
            fputc('\'', script);
        fputc(*c, script);
    }
    fputc('\'', script);
    free(clean);
}

static const struct kind *find_kind(const char *name)
{
    size_t i;

    for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    }
    return NULL;
}

/* "svg", "png" or "gp", from the end of the name; NULL for others. */
static const char *find_format(const char *file)
{
    const char *dot = strrchr(file, '.');

    if (dot && (strcmp(dot, ".svg") == 0 || strcmp(dot, ".png") == 0 || strcmp(dot, ".gp") == 0))
        return dot + 1;
    return NULL;
}

static void write_head(FILE *script, unsigned width, unsigned height, const char *format)
{
    fprintf(script, "# A picture of halbachctl: gnuplot FILE.gp > FILE.svg\n");
    if (strcmp(format, "png") == 0)
        fprintf(script, "set terminal pngcairo size %u,%u font 'Sans,11' background '#ffffff'\n",
                width, height);
    else
        fprintf(script,
                "set terminal svg size %u,%u dynamic font 'Helvetica,Arial,sans-serif,14' "
                "background '#ffffff'\n",
                width, height);
    /* Points of one size number are about twice as large in the terminal svg. */
    fprintf(script, "mark = %s\nset termoption noenhanced\nset encoding utf8\n",
            strcmp(format, "png") == 0 ? "1.0" : "0.55");
}

/* The whole script: the head once the picture has said how high it is. NULL without memory. */
static char *compose(const struct kind *kind, const char *format, const struct hb_plot *plot,
                     const char *body, size_t *size)
{
    char *script = NULL;
    FILE *stream = open_memstream(&script, size);

    if (!stream)
        return NULL;
    write_head(stream, kind->width, plot->height, format);
    fputs(body, stream);
    if (fclose(stream) == 0)
        return script;
    free(script);
    return NULL;
}

static int write_picture(const struct hb_ctl *ctl, const struct kind *kind, const char *format,
                         const struct hb_plot *plot, const char *body)
{
    size_t size;
    char *script = compose(kind, format, plot, body, &size);
    int status;

    if (!script)
        return hb_hash_no_memory(ctl);
    if (strcmp(format, "gp") == 0)
        status = hb_plot_write(ctl, script, size, ctl->hash.out);
    else
        status = hb_gnuplot_run(ctl, script, size, ctl->hash.out);
    free(script);
    return status;
}

static int draw(const struct hb_ctl *ctl, const struct kind *kind, const char *format)
{
    struct hb_plot plot = {.ctl = ctl, .height = kind->height, .data = json_array()};
    char *body = NULL;
    size_t size = 0;
    int status;

    plot.script = open_memstream(&body, &size);
    if (!plot.script) {
        json_decref(plot.data);
        return hb_hash_no_memory(ctl);
    }
    hb_hash_progress_start(&plot.progress, ctl);
    status = kind->draw(&plot);
    hb_hash_progress_end(&plot.progress);
    if (fclose(plot.script) != 0)
        status = hb_hash_no_memory(ctl);
    if (status == HB_EXIT_OK)
        status = write_picture(ctl, kind, format, &plot, body);
    if (status == HB_EXIT_OK && ctl->json) {
        hb_hash_print_json(ctl, json_pack("{s:s, s:s, s:O}", "kind", kind->name, "file",
                                          ctl->hash.out, "data", plot.data));
    } else if (status == HB_EXIT_OK) {
        hb_print(&ctl->screen, HB_PLAIN, "%s: written", ctl->hash.out);
        fputc('\n', ctl->screen.out);
    }
    free(body);
    json_decref(plot.data);
    return status;
}

int hb_ctl_hash_plot(const struct hb_ctl *ctl)
{
    const struct kind *kind = find_kind(ctl->hash.kind ? ctl->hash.kind : "shares");
    const char *format;

    if (!kind)
        return hb_hash_refuse(ctl, HB_EXIT_USAGE,
                              "--kind %s: expected moves, shares, failures, balance or ring",
                              ctl->hash.kind);
    if (!ctl->hash.out)
        return hb_hash_refuse(ctl, HB_EXIT_USAGE,
                              "hash plot needs a file to write, such as --out %s.svg", kind->name);
    format = find_format(ctl->hash.out);
    if (!format)
        return hb_hash_refuse(ctl, HB_EXIT_USAGE,
                              "--out %s: expected a name that ends in .svg, .png or .gp",
                              ctl->hash.out);
    return draw(ctl, kind, format);
}
