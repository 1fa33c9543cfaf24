/* SPDX-License-Identifier: BSD-3-Clause */
#include "metrics.h"

#include <inttypes.h>

/* Backslash, line feed and (in label values) the quote are escaped. */
static void print_escaped(FILE *to, const char *text, char quote)
{
    for (; *text != '\0'; text++) {
        if (*text == '\n')
            fputs("\\n", to);
        else if (*text == '\\' || *text == quote)
            fprintf(to, "\\%c", *text);
        else
            fputc(*text, to);
    }
}

void hb_metric_begin(FILE *to, const char *name, enum hb_metric_type type, const char *help)
{
    fprintf(to, "# HELP %s ", name);
    print_escaped(to, help, '\0');
    fprintf(to, "\n# TYPE %s %s\n", name, type == HB_METRIC_COUNTER ? "counter" : "gauge");
}

void hb_metric_add(FILE *to, const char *name, const struct hb_label *labels, uint64_t value)
{
    const char *before = "{";

    fputs(name, to);
    for (; labels != NULL && labels->name != NULL; labels++) {
        fprintf(to, "%s%s=\"", before, labels->name);
        print_escaped(to, labels->value, '"');
        fputc('"', to);
        before = ",";
    }
    fprintf(to, "%s %" PRIu64 "\n", *before == ',' ? "}" : "", value);
}

void hb_metric_single(FILE *to, const char *name, enum hb_metric_type type, const char *help,
                      uint64_t value)
{
    hb_metric_begin(to, name, type, help);
    hb_metric_add(to, name, NULL, value);
}
