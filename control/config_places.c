/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config_places.c: where in the file each field was read from, for complaints of rules.
 *
 * Kept beside the configuration, not in it: nobody needs lines of fields once a file is accepted.
 */
#include <stdlib.h>

#include "config_internal.h"

void hb_config_add_place(struct hb_config_reader *reader, const void *field,
                         const yaml_node_t *node, bool good)
{
    struct hb_config_place *place;

    if (reader->places_count == reader->places_room) {
        size_t room = reader->places_room * 2 + 64;
        struct hb_config_place *grown = realloc(reader->places, room * sizeof(*grown));

        if (grown == NULL) {
            reader->no_memory = true;
            return;
        }
        reader->places = grown;
        reader->places_room = room;
    }
    place = &reader->places[reader->places_count++];
    *place = (struct hb_config_place){
        .field = field, .line = (int)node->start_mark.line + 1, .good = good};
    if (node->type == YAML_SCALAR_NODE)
        place->text = (const char *)node->data.scalar.value;
}

static int compare_places(const void *left, const void *right)
{
    uintptr_t a = (uintptr_t)((const struct hb_config_place *)left)->field;
    uintptr_t b = (uintptr_t)((const struct hb_config_place *)right)->field;

    return a < b ? -1 : a > b;
}

void hb_config_sort_places(struct hb_config_reader *reader)
{
    if (reader->places_count > 0)
        qsort(reader->places, reader->places_count, sizeof(*reader->places), compare_places);
}

const struct hb_config_place *hb_config_find_place(const struct hb_config_reader *reader,
                                                   const void *field)
{
    struct hb_config_place wanted = {.field = field};

    if (reader->places_count == 0)
        return NULL;
    return bsearch(&wanted, reader->places, reader->places_count, sizeof(wanted), compare_places);
}

int hb_config_line_of(const struct hb_config_reader *reader, const void *field, int otherwise)
{
    const struct hb_config_place *place = hb_config_find_place(reader, field);

    return place != NULL ? place->line : otherwise;
}

bool hb_config_is_good(const struct hb_config_reader *reader, const void *field)
{
    const struct hb_config_place *place = hb_config_find_place(reader, field);

    return place == NULL || place->good;
}
