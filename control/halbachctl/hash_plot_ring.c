/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hash_plot_ring.c: the ring itself. Position 0 is at the top, and positions grow clockwise.
 *
 * Each token is a mark on the circle, and the arc before it, which it owns, has its backend's
 * colour and, where there is room, its backend's name. Marks differ by backend, too.
 */
#include <inttypes.h>
#include <math.h>

#include "hash_plot.h"
#include "hash_small_ring.h"

#define POINTS_MAX       400 /* more would be one blur */
#define POSITIONS_SHOWN  40
#define POSITION_DEGREES 11.0 /* between two of their labels */
#define NAME_DEGREES     7.0  /* the shortest arc with a name */
#define KEY_ROWS         16

static const unsigned marks[] = {7, 5, 9, 13, 11, 6, 4, 8, 12, 10};

static double degrees(const struct hb_ring_map *ring, uint64_t position)
{
    return (double)position * 360 / (double)ring->space;
}

/* Clockwise from the top. */
static void write_point(FILE *script, double angle, double radius)
{
    double radians = (90 - angle) * M_PI / 180;

    fprintf(script, "%.4f %.4f\n", radius * cos(radians), radius * sin(radians));
}

static void write_label(FILE *script, const char *text, double angle, double radius,
                        const char *look)
{
    double radians = (90 - angle) * M_PI / 180;
    const char *align = "center";

    /* Beside the circle, not on it. */
    if (cos(radians) > 0.25)
        align = radius > 1 ? "left" : "right";
    else if (cos(radians) < -0.25)
        align = radius > 1 ? "right" : "left";
    fprintf(script, "set label ");
    hb_plot_quote(script, text);
    fprintf(script, " at %.4f,%.4f %s %s\n", radius * cos(radians), radius * sin(radians), align,
            look);
}

static void write_arcs(FILE *script, const struct hb_ring_map *ring, uint32_t member)
{
    uint32_t i;

    fprintf(script, "$arcs%" PRIu32 " << EOD\n", member);
    for (i = 0; i < ring->points_count; i++) {
        double size = (double)hb_hash_point_size(ring, i) * 360 / (double)ring->space;
        double end = degrees(ring, ring->points[i].position);
        unsigned pieces = (unsigned)(size / 2) + 1, piece;

        if (ring->points[i].member != member || size == 0)
            continue;
        for (piece = 0; piece <= pieces; piece++)
            write_point(script, end - size + size * piece / pieces, 1);
        fputc('\n', script);
    }
    fprintf(script, "EOD\n$tokens%" PRIu32 " << EOD\n", member);
    for (i = 0; i < ring->points_count; i++) {
        if (ring->points[i].member == member)
            write_point(script, degrees(ring, ring->points[i].position), 1);
    }
    fprintf(script, "EOD\n");
}

static void write_labels(FILE *script, const struct hb_ring_map *ring)
{
    double last = -POSITION_DEGREES;
    uint32_t i;

    for (i = 0; i < ring->points_count; i++) {
        double size = (double)hb_hash_point_size(ring, i) * 360 / (double)ring->space;
        double end = degrees(ring, ring->points[i].position);
        char number[16];

        if (size >= NAME_DEGREES)
            write_label(script, ring->names[ring->points[i].member], end - size / 2, 1.09, "");
        /* The last must not touch the first, over the top. */
        if (ring->points_count > POSITIONS_SHOWN || end - last < POSITION_DEGREES ||
            (i > 0 && end > 360 - POSITION_DEGREES / 2))
            continue;
        last = end;
        if (ring->space > 100000)
            snprintf(number, sizeof(number), "%.1f %%", end / 3.6);
        else
            snprintf(number, sizeof(number), "%" PRIu32, ring->points[i].position);
        write_label(script, number, end, 0.92, "font ',11' textcolor rgb '#333333'");
    }
}

static void write_plot(FILE *script, const struct hb_ring_map *ring)
{
    double half = 1.25; /* and room for the longest name */
    uint32_t member;

    for (member = 0; member < ring->members_count; member++)
        half = fmax(half, 1.1 + 0.055 * hb_text_width(ring->names[member]));
    fprintf(script,
            "set size ratio -1\nunset border\nunset tics\nset xrange [%.2f:%.2f]\n"
            "set yrange [-1.25:1.25]\nset key center center Left reverse samplen 2\n"
            "set title \"A ring of %" PRIu64 " positions, %" PRIu32 " tokens of %" PRIu32
            " backends\\nA token (mark) owns the arc before it; from 0 at the top, clockwise%s\"\n",
            -half, half, ring->space, ring->points_count, ring->members_count,
            ring->space > 100000 && ring->points_count <= POSITIONS_SHOWN ? ", in %" : "");
    for (member = 0; member < ring->members_count; member++)
        write_arcs(script, ring, member);
    write_labels(script, ring);
    fprintf(script, "set arrow from 0,1.02 to 0,1.08 nohead lw 2\nplot \\\n");
    for (member = 0; member < ring->members_count; member++)
        fprintf(script, "  $arcs%" PRIu32 " with lines lw 11 lc rgb '%s' notitle, \\\n", member,
                hb_plot_colours[member % HB_PLOT_STYLES]);
    for (member = 0; member < ring->members_count; member++) {
        const char *colour = hb_plot_colours[member % HB_PLOT_STYLES];
        unsigned mark = marks[member % (sizeof(marks) / sizeof(marks[0]))];

        /* A white rim keeps marks apart from the arc of the same colour. */
        fprintf(script,
                "  $tokens%" PRIu32 " with points pt %u ps 2.0*mark lc rgb '#ffffff' notitle, \\\n"
                "  $tokens%" PRIu32 " with points pt %u ps 1.4*mark lc rgb '%s' ",
                member, mark, member, mark, colour);
        if (member < KEY_ROWS) {
            fprintf(script, "title ");
            hb_plot_quote(script, ring->names[member]);
        } else {
            fprintf(script, "notitle");
        }
        fprintf(script, "%s\n", member + 1 < ring->members_count ? ", \\" : "");
    }
}

int hb_plot_ring(struct hb_plot *plot)
{
    struct hb_hash_rings rings = {0};
    const struct hb_ring_map *ring;
    int status = hb_hash_rings_load(plot->ctl, 4, 5, &rings);
    uint32_t i;

    ring = rings.before;
    if (status == HB_EXIT_OK && ring->points_count > POINTS_MAX)
        status = hb_hash_refuse(plot->ctl, HB_EXIT_USAGE,
                                "%" PRIu32 " tokens would be one blur; draw at most %d, with a "
                                "smaller --vnodes or --backends",
                                ring->points_count, POINTS_MAX);
    if (status == HB_EXIT_OK) {
        write_plot(plot->script, ring);
        for (i = 0; i < ring->points_count; i++)
            json_array_append_new(
                plot->data, json_pack("{s:I, s:s}", "token", (json_int_t)ring->points[i].position,
                                      "backend", ring->names[ring->points[i].member]));
    }
    hb_hash_rings_free(&rings);
    return status;
}
