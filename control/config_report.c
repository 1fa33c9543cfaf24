/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config_report.c: complaints about a configuration file.
 *
 * The schema and the rules each go through the file, so complaints are made out of order. They are
 * kept and handed on sorted by line, as a person reads the file.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_internal.h"

/* Keeps one complaint; takes over `message`. */
static void keep(struct hb_config_reader *reader, int line, bool warning, char *message)
{
    struct hb_config_complaint *grown;

    reader->errors += !warning;
    if (message == NULL || reader->complaints_count == HB_CONFIG_COMPLAINTS_MAX) {
        reader->no_memory |= message == NULL;
        free(message);
        return;
    }
    grown = realloc(reader->complaints, (reader->complaints_count + 1) * sizeof(*grown));
    if (grown == NULL) {
        reader->no_memory = true;
        free(message);
        return;
    }
    reader->complaints = grown;
    grown[reader->complaints_count] = (struct hb_config_complaint){
        .line = line,
        .sequence = reader->complaints_count,
        .warning = warning,
        .message = message,
    };
    reader->complaints_count++;
}

static char *compose(const char *file, int line, int column, const char *path, const char *format,
                     va_list arguments)
{
    char where[32] = "";
    char *text = NULL, *message = NULL;

    if (line > 0 && column > 0)
        snprintf(where, sizeof(where), "%d:%d:", line, column);
    else if (line > 0)
        snprintf(where, sizeof(where), "%d:", line);
    if (vasprintf(&text, format, arguments) < 0)
        return NULL;
    if (asprintf(&message, "%s:%s %s%s%s", file, where, path, path[0] != '\0' ? ": " : "", text) <
        0)
        message = NULL;
    free(text);
    return message;
}

void hb_config_complain(struct hb_config_reader *reader, int line, const char *path,
                        const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    keep(reader, line, false, compose(reader->file, line, 0, path, format, arguments));
    va_end(arguments);
}

void hb_config_warn(struct hb_config_reader *reader, int line, const char *path, const char *format,
                    ...)
{
    va_list arguments;

    va_start(arguments, format);
    keep(reader, line, true, compose(reader->file, line, 0, path, format, arguments));
    va_end(arguments);
}

void hb_config_complain_at(struct hb_config_reader *reader, int line, int column,
                           const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    keep(reader, line, false, compose(reader->file, line, column, "", format, arguments));
    va_end(arguments);
}

static int compare_complaints(const void *left, const void *right)
{
    const struct hb_config_complaint *a = left, *b = right;

    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    return a->sequence < b->sequence ? -1 : 1;
}

void hb_config_report_all(struct hb_config_reader *reader, hb_config_report report, void *context)
{
    char more[256];

    if (reader->complaints_count > 0)
        qsort(reader->complaints, reader->complaints_count, sizeof(*reader->complaints),
              compare_complaints);
    for (uint32_t i = 0; i < reader->complaints_count; i++) {
        if (report != NULL)
            report(context, reader->complaints[i].warning, reader->complaints[i].message);
        free(reader->complaints[i].message);
    }
    if (report != NULL && reader->complaints_count == HB_CONFIG_COMPLAINTS_MAX) {
        snprintf(more, sizeof(more), "%s: there is more; mend these first", reader->file);
        report(context, false, more);
    }
    if (report != NULL && reader->no_memory) {
        snprintf(more, sizeof(more), "%s: not enough memory to read it", reader->file);
        report(context, false, more);
    }
    free(reader->complaints);
    reader->complaints = NULL;
    reader->complaints_count = 0;
}

const char *hb_config_quote(const char *text, char quoted[HB_CONFIG_QUOTED])
{
    size_t length = 0;

    for (; length < HB_CONFIG_QUOTED - 4 && text[length] != '\0'; length++)
        quoted[length] = iscntrl((unsigned char)text[length]) ? '?' : text[length];
    /* Never half of a UTF-8 character: messages travel in JSON. */
    while (length > 0 && (text[length] & 0xc0) == 0x80)
        length--;
    strcpy(quoted + length, text[length] != '\0' ? "..." : "");
    return quoted;
}

#define CLOSE_MAX 64 /* longer words are not compared */

/* Changes of a letter, and swaps of two neighbours, that lead from one word to the other (optimal
 * string alignment: F. J. Damerau, 1964). */
static unsigned edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    unsigned rows[3][CLOSE_MAX + 1];
    unsigned *before = rows[0], *above = rows[1], *row = rows[2];

    for (size_t j = 0; j <= b_length; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= a_length; i++) {
        unsigned *oldest = before;

        before = above;
        above = row;
        row = oldest;
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_length; j++) {
            unsigned best = above[j - 1] + (a[i - 1] != b[j - 1]);

            best = above[j] + 1 < best ? above[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            row[j] = best;
        }
    }
    return row[b_length];
}

bool hb_config_is_close(const char *a, const char *b)
{
    size_t a_length = strlen(a), b_length = strlen(b);
    size_t difference = a_length < b_length ? b_length - a_length : a_length - b_length;

    if (a_length > CLOSE_MAX || b_length > CLOSE_MAX || difference > 2)
        return false;
    return edit_distance(a, a_length, b, b_length) <= (a_length < 5 ? 1 : 2);
}
