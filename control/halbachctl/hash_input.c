/* SPDX-License-Identifier: BSD-3-Clause */
/* hash_input.c: numbers, lists, methods and keys from the command line. */
#include "hash_input.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int hb_hash_refuse(const struct hb_ctl *ctl, int status, const char *format, ...)
{
    va_list arguments;
    char *text;

    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    va_end(arguments);
    if (text)
        hb_text_clean(text);
    fprintf(ctl->err, "halbachctl: %s\n", text ? text : "out of memory");
    free(text);
    return status;
}

int hb_hash_no_memory(const struct hb_ctl *ctl)
{
    return hb_hash_refuse(ctl, HB_EXIT_FAILED,
                          "out of memory; ask for fewer keys, backends or virtual nodes");
}

void hb_hash_print_json(const struct hb_ctl *ctl, json_t *document)
{
    json_dumpf(document, ctl->screen.out, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
    fputc('\n', ctl->screen.out);
    json_decref(document);
}

int hb_hash_number(const struct hb_ctl *ctl, const char *option, const char *text, uint64_t least,
                   uint64_t most, uint64_t *value)
{
    unsigned long long number;
    char *end;

    if (!text)
        return HB_EXIT_OK;
    errno = 0;
    number = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || number < least ||
        number > most)
        return hb_hash_refuse(ctl, HB_EXIT_USAGE,
                              "--%s %s: expected a whole number from %" PRIu64 " to %" PRIu64,
                              option, text, least, most);
    *value = number;
    return HB_EXIT_OK;
}

bool hb_hash_next_word(const char **list, char **word)
{
    size_t size = strcspn(*list, ",");

    if (**list == '\0')
        return false;
    *word = strndup(*list, size);
    *list += size + ((*list)[size] == ',');
    return *word != NULL;
}

int hb_hash_numbers(const struct hb_ctl *ctl, const char *option, const char *text, uint64_t least,
                    uint64_t most, uint64_t **values, uint32_t *count)
{
    int status = HB_EXIT_OK;
    char *word;

    *count = 0;
    *values = calloc(strlen(text) / 2 + 1, sizeof(**values)); /* a digit and a comma each */
    if (!*values)
        return hb_hash_no_memory(ctl);
    while (status == HB_EXIT_OK && hb_hash_next_word(&text, &word)) {
        status = hb_hash_number(ctl, option, word, least, most, &(*values)[*count]);
        (*count)++;
        free(word);
    }
    return status;
}

/* ---- methods ---- */

static bool find_choice(const char *name, struct hb_hash_choice *choice)
{
    bool ketama = strcmp(name, "ketama") == 0;
    const struct hb_hash_method *method = hb_hash_method_by_name(ketama ? "ring" : name);

    if (method)
        *choice = (struct hb_hash_choice){
            .name = ketama ? "ketama" : method->name, .method = method, .ketama = ketama};
    return method != NULL;
}

static int refuse_method(const struct hb_ctl *ctl, const char *name)
{
    char names[256] = "";
    size_t used = 0, i;

    for (i = 0; hb_hash_methods[i] && used < sizeof(names); i++)
        used +=
            (size_t)snprintf(names + used, sizeof(names) - used, "%s, ", hb_hash_methods[i]->name);
    return hb_hash_refuse(ctl, HB_EXIT_USAGE,
                          "--algorithms: there is no method '%s'; there are %sand ketama", name,
                          names);
}

int hb_hash_choose(const struct hb_ctl *ctl, struct hb_hash_choices *choices)
{
    /* Those that take a hash, when hashes are all there is. */
    const char *preset = ctl->hash.hashes ? "modulo,ring,jump" : NULL;
    const char *list = ctl->hash.algorithms ? ctl->hash.algorithms : preset;
    int status = HB_EXIT_OK;
    char *word;
    size_t i;

    choices->count = 0;
    for (i = 0; !list && hb_hash_methods[i] && i < HB_HASH_CHOICES_MAX; i++)
        choices->row[choices->count++] =
            (struct hb_hash_choice){.name = hb_hash_methods[i]->name, .method = hb_hash_methods[i]};
    while (status == HB_EXIT_OK && list && hb_hash_next_word(&list, &word)) {
        if (choices->count == HB_HASH_CHOICES_MAX)
            status = hb_hash_refuse(ctl, HB_EXIT_USAGE, "--algorithms: name at most %d",
                                    HB_HASH_CHOICES_MAX);
        else if (!find_choice(word, &choices->row[choices->count++]))
            status = refuse_method(ctl, word);
        free(word);
    }
    return status;
}

/* ---- keys ---- */

static bool make_keys(struct hb_hash_keys *keys)
{
    struct hb_key_source source = {.state = keys->seed};
    size_t end = 0;
    uint32_t i;

    keys->text = malloc((size_t)keys->count * HB_KEY_TEXT);
    keys->at = malloc(((size_t)keys->count + 1) * sizeof(*keys->at));
    if (!keys->text || !keys->at)
        return false;
    for (i = 0; i < keys->count; i++) {
        char key[HB_KEY_TEXT];
        size_t size = hb_next_key(&source, key);

        keys->at[i] = end;
        memcpy(keys->text + end, key, size);
        end += size;
    }
    keys->at[keys->count] = end;
    return true;
}

static bool add_key(struct hb_hash_keys *keys, size_t *room, size_t *text_room, const char *key,
                    size_t size)
{
    size_t end = keys->at ? keys->at[keys->count] : 0;

    if (!keys->at || keys->count + 1 == *room) {
        size_t *at = reallocarray(keys->at, *room * 2, sizeof(*at));

        if (!at)
            return false;
        at[0] = keys->at ? at[0] : 0;
        keys->at = at;
        *room *= 2;
    }
    if (end + size > *text_room) {
        char *text = realloc(keys->text, (end + size) * 2);

        if (!text)
            return false;
        keys->text = text;
        *text_room = (end + size) * 2;
    }
    memcpy(keys->text + end, key, size);
    keys->at[++keys->count] = end + size;
    return true;
}

/* A key is a line without its end; empty lines are none. */
static int read_keys(const struct hb_ctl *ctl, const char *name, struct hb_hash_keys *keys)
{
    FILE *file = fopen(name, "r");
    size_t room = 512, text_room = 0, line_room = 0;
    int status = HB_EXIT_OK;
    char *line = NULL;
    ssize_t size;

    if (!file)
        return hb_hash_refuse(ctl, HB_EXIT_FAILED,
                              "--keys %s: %s; give a number of keys or a file with a key a line",
                              name, strerror(errno));
    keys->file = name;
    while (status == HB_EXIT_OK && (size = getline(&line, &line_room, file)) >= 0) {
        size -= size > 0 && line[size - 1] == '\n';
        if (size == 0)
            continue;
        if (keys->count == HB_HASH_KEYS_MAX)
            status = hb_hash_refuse(ctl, HB_EXIT_FAILED, "--keys %s: more than %d keys", name,
                                    HB_HASH_KEYS_MAX);
        else if (!add_key(keys, &room, &text_room, line, (size_t)size))
            status = hb_hash_no_memory(ctl);
    }
    if (status == HB_EXIT_OK && ferror(file))
        status = hb_hash_refuse(ctl, HB_EXIT_FAILED, "--keys %s: cannot be read", name);
    if (status == HB_EXIT_OK && keys->count == 0)
        status = hb_hash_refuse(ctl, HB_EXIT_FAILED,
                                "--keys %s: there is no key in it; write one a line", name);
    free(line);
    fclose(file);
    return status;
}

int hb_hash_keys_load(const struct hb_ctl *ctl, uint32_t preset, struct hb_hash_keys *keys)
{
    const char *text = ctl->hash.keys;
    uint64_t count = preset, seed = HB_KEY_SEED;
    int status = hb_hash_number(ctl, "seed", ctl->hash.seed, 0, UINT32_MAX, &seed);

    *keys = (struct hb_hash_keys){.seed = (uint32_t)seed};
    if (status != HB_EXIT_OK)
        return status;
    if (ctl->hash.hashes && text)
        return hb_hash_refuse(ctl, HB_EXIT_USAGE,
                              "--hashes names the keys itself; leave --keys out");
    if (ctl->hash.hashes)
        return hb_hash_numbers(ctl, "hashes", ctl->hash.hashes, 0, UINT64_MAX, &keys->numbers,
                               &keys->count);
    if (text && text[strspn(text, "0123456789")] != '\0')
        return read_keys(ctl, text, keys);
    status = hb_hash_number(ctl, "keys", text, 1, HB_HASH_KEYS_MAX, &count);
    keys->count = (uint32_t)count;
    if (status == HB_EXIT_OK && !make_keys(keys))
        status = hb_hash_no_memory(ctl);
    return status;
}

void hb_hash_keys_free(struct hb_hash_keys *keys)
{
    free(keys->text);
    free(keys->at);
    free(keys->numbers);
    *keys = (struct hb_hash_keys){0};
}
