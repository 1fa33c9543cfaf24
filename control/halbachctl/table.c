/* SPDX-License-Identifier: BSD-3-Clause */
#include "table.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define GAP         2 /* blanks between columns */
#define COLUMNS_MAX 16

struct cell {
    enum hb_colour colour;
    unsigned width;
    char *text;
};

struct hb_table {
    const struct hb_column *columns;
    unsigned columns_count;
    struct cell *cells;
    size_t cells_count, cells_room;
};

static const char *const colours[] = {
    [HB_PLAIN] = "",          [HB_BOLD] = "\033[1m", [HB_GREEN] = "\033[32m",
    [HB_YELLOW] = "\033[33m", [HB_RED] = "\033[31m",
};

enum hb_colour hb_colour_of_state(const char *state)
{
    if (strcmp(state, "up") == 0)
        return HB_GREEN;
    return strcmp(state, "down") == 0 ? HB_RED : HB_YELLOW;
}

/* One character: its bytes, and the columns it takes, or -1 when it must not be printed. */
static size_t next_character(const char *text, int *width)
{
    mbstate_t state = {0};
    wchar_t character;
    size_t size = mbrtowc(&character, text, strlen(text), &state);

    if (size == (size_t)-1 || size == (size_t)-2 || size == 0) {
        *width = -1;
        return 1;
    }
    *width = wcwidth(character);
    return size;
}

void hb_text_clean(char *text)
{
    char *to = text;

    while (*text) {
        int width;
        size_t size = next_character(text, &width);

        if (width < 0) {
            *to++ = '?';
        } else {
            memmove(to, text, size);
            to += size;
        }
        text += size;
    }
    *to = '\0';
}

unsigned hb_text_width(const char *text)
{
    unsigned total = 0;

    while (*text) {
        int width;

        text += next_character(text, &width);
        total += width > 0 ? (unsigned)width : 0;
    }
    return total;
}

static char *format_clean(const char *format, va_list arguments)
{
    char *text;

    if (vasprintf(&text, format, arguments) < 0)
        return NULL;
    hb_text_clean(text);
    return text;
}

static void print_coloured(const struct hb_screen *screen, enum hb_colour colour, const char *text)
{
    bool coloured = screen->colour && colour != HB_PLAIN && *text != '\0';

    fprintf(screen->out, "%s%s%s", coloured ? colours[colour] : "", text,
            coloured ? "\033[0m" : "");
}

void hb_print(const struct hb_screen *screen, enum hb_colour colour, const char *format, ...)
{
    va_list arguments;
    char *text;

    va_start(arguments, format);
    text = format_clean(format, arguments);
    va_end(arguments);
    if (text)
        print_coloured(screen, colour, text);
    free(text);
}

struct hb_table *hb_table_new(const struct hb_column *columns, unsigned count)
{
    struct hb_table *table = calloc(1, sizeof(*table));

    if (table) {
        table->columns = columns;
        table->columns_count = count;
    }
    return table;
}

void hb_table_add(struct hb_table *table, enum hb_colour colour, const char *format, ...)
{
    va_list arguments;
    struct cell *cell;

    if (!table)
        return;
    if (table->cells_count == table->cells_room) {
        size_t room = table->cells_room ? table->cells_room * 2 : 64;
        struct cell *cells = reallocarray(table->cells, room, sizeof(*cells));

        if (!cells)
            return;
        table->cells = cells;
        table->cells_room = room;
    }
    cell = &table->cells[table->cells_count++];
    va_start(arguments, format);
    cell->text = format_clean(format, arguments);
    va_end(arguments);
    cell->colour = colour;
    cell->width = cell->text ? hb_text_width(cell->text) : 0;
}

/* Shortens a text to `width` columns, the last of them an ellipsis. */
static void cut_cell(struct cell *cell, unsigned width)
{
    size_t end = 0;
    unsigned used = 0;
    char *shorter;

    while (cell->text[end]) {
        int step;
        size_t size = next_character(cell->text + end, &step);

        if (used + (unsigned)step > width - 1)
            break;
        used += (unsigned)step;
        end += size;
    }
    if (asprintf(&shorter, "%.*s…", (int)end, cell->text) < 0)
        return;
    free(cell->text);
    cell->text = shorter;
    cell->width = used + 1;
}

static unsigned least_width(const struct hb_column *column)
{
    return column->least & ~(HB_SPARE | HB_FOLD);
}

/* What the columns that are not left out (width 0) take on the screen. */
static unsigned total_width(const struct hb_table *table, const unsigned *widths, const bool *out)
{
    unsigned total = 0;

    for (unsigned i = 0; i < table->columns_count; i++)
        total += out[i] ? 0 : widths[i] + GAP;
    return total > GAP ? total - GAP : 0;
}

/* The widest column that may be cut gives way, one place at a time. */
static void cut_columns(const struct hb_table *table, unsigned room, unsigned *widths,
                        const bool *out)
{
    unsigned total = total_width(table, widths, out);

    while (total > room) {
        unsigned widest = table->columns_count;

        for (unsigned i = 0; i < table->columns_count; i++) {
            unsigned least = least_width(&table->columns[i]);

            if (!out[i] && least > 0 && widths[i] > least &&
                (widest == table->columns_count || widths[i] > widths[widest]))
                widest = i;
        }
        if (widest == table->columns_count)
            break;
        widths[widest]--;
        total--;
    }
}

/* What the table would take with all columns cut as far as they may be. */
static unsigned narrowest(const struct hb_table *table, const unsigned *widths, const bool *out)
{
    unsigned least[COLUMNS_MAX];

    for (unsigned i = 0; i < table->columns_count; i++) {
        unsigned to = least_width(&table->columns[i]);

        least[i] = to > 0 && to < widths[i] ? to : widths[i];
    }
    return total_width(table, least, out);
}

static void measure(const struct hb_table *table, const struct hb_screen *screen, unsigned *widths,
                    bool *out)
{
    unsigned i;

    for (i = 0; i < table->columns_count; i++)
        widths[i] = hb_text_width(table->columns[i].title);
    for (size_t cell = 0; cell < table->cells_count; cell++) {
        i = (unsigned)(cell % table->columns_count);
        if (table->cells[cell].width > widths[i])
            widths[i] = table->cells[cell].width;
    }
    if (screen->width == 0)
        return;
    /* Spare columns go first, from the right, but only where cutting is not enough. */
    for (i = table->columns_count; i-- > 0 && narrowest(table, widths, out) > screen->width;)
        out[i] = (table->columns[i].least & HB_SPARE) != 0;
    cut_columns(table, screen->width, widths, out);
}

static void print_cell(const struct hb_table *table, const struct hb_screen *screen,
                       unsigned column, const unsigned *widths, bool last, const struct cell *cell)
{
    unsigned blanks = widths[column] > cell->width ? widths[column] - cell->width : 0;

    if (table->columns[column].right)
        fprintf(screen->out, "%*s", (int)blanks, "");
    print_coloured(screen, cell->colour, cell->text ? cell->text : "");
    if (!table->columns[column].right && !last)
        fprintf(screen->out, "%*s", (int)blanks, "");
    fprintf(screen->out, "%*s", last ? 0 : GAP, "");
    if (last)
        fputc('\n', screen->out);
}

/* How much of a text fits in `width` columns, at best up to a blank. */
static size_t fitting(const char *text, unsigned width)
{
    size_t end = 0, blank = 0;
    unsigned used = 0;

    while (text[end]) {
        int step;
        size_t size = next_character(text + end, &step);

        if (used + (unsigned)step > width)
            return blank > 0 ? blank : end > 0 ? end : size;
        if (text[end] == ' ')
            blank = end;
        used += (unsigned)step;
        end += size;
    }
    return end;
}

/* The last cell of a line, and what does not fit in lines below it. */
static void print_folded(const struct hb_screen *screen, unsigned indent, unsigned width,
                         const struct cell *cell)
{
    const char *text = cell->text;

    for (;;) {
        size_t size = fitting(text, width);
        char *line = strndup(text, size);

        print_coloured(screen, cell->colour, line ? line : "");
        fputc('\n', screen->out);
        free(line);
        text += size;
        text += strspn(text, " ");
        if (*text == '\0')
            return;
        fprintf(screen->out, "%*s", (int)indent, "");
    }
}

void hb_table_finish(struct hb_table *table, const struct hb_screen *screen)
{
    unsigned widths[COLUMNS_MAX] = {0}, last, indent, i;
    bool out[COLUMNS_MAX] = {false};
    size_t cell;

    if (!table)
        return;
    measure(table, screen, widths, out);
    for (last = table->columns_count - 1; last > 0 && out[last];)
        last--;
    indent = total_width(table, widths, out) - widths[last];
    for (i = 0; i < table->columns_count; i++) {
        char *title = (char *)(uintptr_t)table->columns[i].title;
        struct cell head = {HB_BOLD, hb_text_width(title), title};

        if (!out[i])
            print_cell(table, screen, i, widths, i == last, &head);
    }
    for (cell = 0; cell < table->cells_count; cell++) {
        struct cell *one = &table->cells[cell];

        i = (unsigned)(cell % table->columns_count);
        if (i == last && one->text && one->width > widths[i] &&
            (table->columns[i].least & HB_FOLD) != 0) {
            print_folded(screen, indent, widths[i], one);
            free(one->text);
            continue;
        }
        if (one->text && one->width > widths[i])
            cut_cell(one, widths[i]);
        if (!out[i])
            print_cell(table, screen, i, widths, i == last, one);
        free(one->text);
    }
    free(table->cells);
    free(table);
}
