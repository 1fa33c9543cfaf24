/* SPDX-License-Identifier: BSD-3-Clause */
#include "json.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INT64_DIGITS "9223372036854775807"

static bool exceeds_int64(const char *token, size_t size)
{
    size_t limit = strlen(INT64_DIGITS), i;

    for (i = 0; i < size; i++) {
        if (!isdigit((unsigned char)token[i]))
            return false;
    }
    return size > limit || (size == limit && memcmp(token, INT64_DIGITS, size) > 0);
}

static size_t string_size(const char *text, size_t left)
{
    size_t i;

    for (i = 1; i < left; i++) {
        if (text[i] == '\\')
            i++;
        else if (text[i] == '"')
            return i + 1;
    }
    return left;
}

static size_t number_size(const char *text, size_t left)
{
    size_t i = 0;

    while (i < left && (isdigit((unsigned char)text[i]) || strchr("+-.eE", text[i])))
        i++;
    return i;
}

/* Copies the text with quotes around integers that jansson would refuse. Returns NULL without
 * memory. */
static char *quote_big_integers(const char *text, size_t size, size_t *copy_size)
{
    char *copy = malloc(size + size / 8 + 4); /* two quotes for 19 digits or more */
    size_t from = 0, to = 0;

    if (!copy)
        return NULL;
    while (from < size) {
        size_t left = size - from, token = 1;
        bool quote = false;

        if (text[from] == '"') {
            token = string_size(text + from, left);
        } else if (text[from] == '-' || isdigit((unsigned char)text[from])) {
            token = number_size(text + from, left);
            quote = exceeds_int64(text + from, token);
        }
        if (quote)
            copy[to++] = '"';
        memcpy(copy + to, text + from, token);
        to += token;
        if (quote)
            copy[to++] = '"';
        from += token;
    }
    *copy_size = to;
    return copy;
}

json_t *hb_json_parse(const char *text, size_t size, char *why, size_t why_size)
{
    json_error_t error;
    size_t copy_size;
    char *copy = quote_big_integers(text, size, &copy_size);
    json_t *document;

    if (!copy) {
        snprintf(why, why_size, "out of memory");
        return NULL;
    }
    document = json_loadb(copy, copy_size, 0, &error);
    free(copy);
    if (!document)
        snprintf(why, why_size, "line %d: %s", error.line, error.text);
    return document;
}

const json_t *hb_json_at(const json_t *object, const char *path)
{
    while (object) {
        size_t size = strcspn(path, ".");
        char key[64];

        if (size >= sizeof(key))
            return NULL;
        memcpy(key, path, size);
        key[size] = '\0';
        object = json_object_get(object, key);
        if (path[size] == '\0')
            break;
        path += size + 1;
    }
    return json_is_null(object) ? NULL : object;
}

bool hb_json_has(const json_t *object, const char *path)
{
    return hb_json_at(object, path) != NULL;
}

const char *hb_json_text(const json_t *object, const char *path)
{
    const char *text = json_string_value(hb_json_at(object, path));

    return text && *text ? text : "-";
}

uint64_t hb_json_count(const json_t *object, const char *path)
{
    const json_t *value = hb_json_at(object, path);

    if (json_is_string(value)) {
        const char *digits = json_string_value(value);

        return isdigit((unsigned char)*digits) ? strtoull(digits, NULL, 10) : 0;
    }
    return json_is_integer(value) && json_integer_value(value) > 0
               ? (uint64_t)json_integer_value(value)
               : 0;
}

bool hb_json_flag(const json_t *object, const char *path)
{
    return json_is_true(hb_json_at(object, path));
}

double hb_json_real(const json_t *object, const char *path)
{
    return json_number_value(hb_json_at(object, path));
}

static int compare_names(const void *a, const void *b)
{
    json_t *const *left = a, *const *right = b;
    int order = strverscmp(hb_json_text(*left, "pool"), hb_json_text(*right, "pool"));

    return order != 0 ? order
                      : strverscmp(hb_json_text(*left, "name"), hb_json_text(*right, "name"));
}

json_t *hb_json_by_name(const json_t *list)
{
    size_t count = json_array_size(list), i;
    json_t **rows = calloc(count + 1, sizeof(json_t *));
    json_t *sorted = json_is_array(list) ? json_array() : NULL;

    for (i = 0; rows && i < count; i++)
        rows[i] = json_array_get(list, i);
    if (rows)
        qsort(rows, count, sizeof(json_t *), compare_names);
    for (i = 0; rows && sorted && i < count; i++)
        json_array_append(sorted, rows[i]);
    free(rows);
    return sorted;
}
