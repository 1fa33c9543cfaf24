/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table.h: aligned columns, and colour where it is welcome.
 *
 * Text comes from files and sockets of others: control characters and bytes that are not UTF-8
 * print as
 * '?', and columns align by the width on the screen, not by bytes (the caller has set a UTF-8
 * LC_CTYPE).
 */
#ifndef HB_CTL_TABLE_H
#define HB_CTL_TABLE_H

#include <stdbool.h>
#include <stdio.h>

enum hb_colour { HB_PLAIN, HB_BOLD, HB_GREEN, HB_YELLOW, HB_RED };

struct hb_screen {
    FILE *out;
    bool colour;     /* a terminal, and NO_COLOR is not set */
    unsigned width;  /* columns of the terminal; 0: no limit */
    unsigned height; /* its lines; 0: not known */
    bool terminal;   /* may be written over (--watch) */
};

/* Colour of a backend's state: up, draining, down. */
enum hb_colour hb_colour_of_state(const char *state);

/* Prints cleaned text in a colour. */
void hb_print(const struct hb_screen *screen, enum hb_colour colour, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define HB_SPARE 0x10000u
#define HB_FOLD  0x20000u

struct hb_column {
    const char *title;
    bool right;     /* numbers */
    unsigned least; /* may be cut down to this width to fit the screen; 0: never cut. With HB_SPARE:
                       may be left out when that is not enough. With HB_FOLD (the last column
                       alone): goes on in further lines instead of being cut */
};

struct hb_table;

/* `columns` must outlive the table. NULL without memory; all functions take NULL. */
struct hb_table *hb_table_new(const struct hb_column *columns, unsigned count);

/* The next cell, row by row. */
void hb_table_add(struct hb_table *table, enum hb_colour colour, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Prints title and rows, then frees the table. */
void hb_table_finish(struct hb_table *table, const struct hb_screen *screen);

/* Columns that a clean UTF-8 text takes on the screen. */
unsigned hb_text_width(const char *text);

/* Replaces in place what must not reach a terminal. */
void hb_text_clean(char *text);

#endif
