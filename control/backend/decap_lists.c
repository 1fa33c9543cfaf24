/* SPDX-License-Identifier: BSD-3-Clause */
#include "decap_lists.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

/* Rows of a map as they stand in a list: a key, then perhaps a value. */
struct kind {
    size_t row_size, key_size;
    size_t value_offset; /* 0: the value says nothing */
    uint32_t max;
    int (*compare)(const void *a, const void *b); /* by key; for qsort() */
};

/* By family, address and length. */
static int compare_prefixes(const void *a, const void *b)
{
    const struct hb_decap_prefix *left = a, *right = b;
    int order = left->family - right->family;

    if (order == 0)
        order = memcmp(left->bytes, right->bytes, sizeof(left->bytes));
    return order != 0 ? order : (int)left->bits - (int)right->bits;
}

static int compare_marks(const void *a, const void *b)
{
    const struct hb_decap_mark *left = a, *right = b;
    int order = left->host.family - right->host.family;

    if (order == 0)
        order = memcmp(left->host.bytes, right->host.bytes, sizeof(left->host.bytes));
    return order != 0 ? order : (int)left->dscp - (int)right->dscp;
}

static const struct kind vip_rows = {sizeof(struct hb_decap_prefix), sizeof(struct hb_decap_prefix),
                                     0, HB_DECAP_VIPS_MAX, compare_prefixes};
static const struct kind source_rows = {sizeof(struct hb_decap_prefix),
                                        sizeof(struct hb_decap_prefix), 0, HB_DECAP_SOURCES_MAX,
                                        compare_prefixes};
static const struct kind mark_rows = {
    sizeof(struct hb_decap_mark_row), sizeof(struct hb_decap_mark),
    offsetof(struct hb_decap_mark_row, vip), HB_DECAP_MARKS_MAX, compare_marks};

static int add_rows(int fd, const struct kind *kind, const void *rows, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *row = (const uint8_t *)rows + i * kind->row_size;
        const uint8_t something = 1, *value = &something;
        int err;

        if (kind->value_offset != 0)
            value = row + kind->value_offset;
        err = bpf_map_update_elem(fd, row, value, BPF_ANY);
        if (err)
            return err == -ENOSPC ? -E2BIG : err;
    }
    return 0;
}

/* Fills a list with what the map holds, sorted; the caller frees it. */
static int list_rows(int fd, const struct kind *kind, void **list, uint32_t *count)
{
    uint8_t *rows = calloc(kind->max, kind->row_size);
    const uint8_t *previous = NULL;

    *list = rows;
    *count = 0;
    if (!rows)
        return -ENOMEM;
    while (*count < kind->max) {
        uint8_t *row = rows + *count * kind->row_size;

        if (bpf_map_get_next_key(fd, previous, row) != 0)
            break;
        if (kind->value_offset != 0)
            bpf_map_lookup_elem(fd, row, row + kind->value_offset);
        previous = row;
        ++*count;
    }
    qsort(rows, *count, kind->row_size, kind->compare);
    return 0;
}

/* A list as it was wanted, sorted; the caller frees it. */
static void *sort_rows(const struct kind *kind, const void *rows, uint32_t count)
{
    void *sorted = calloc((size_t)count + 1, kind->row_size);

    if (sorted != NULL && count > 0) {
        memcpy(sorted, rows, count * kind->row_size);
        qsort(sorted, count, kind->row_size, kind->compare);
    }
    return sorted;
}

static int remove_others(int fd, const struct kind *kind, const void *wanted, uint32_t wanted_count)
{
    void *sorted = sort_rows(kind, wanted, wanted_count), *present = NULL;
    uint32_t count = 0;
    int err = sorted != NULL ? list_rows(fd, kind, &present, &count) : -ENOMEM;

    for (uint32_t i = 0; !err && i < count; i++) {
        const uint8_t *row = (const uint8_t *)present + i * kind->row_size;

        if (!bsearch(row, sorted, wanted_count, kind->row_size, kind->compare))
            err = bpf_map_delete_elem(fd, row);
    }
    free(present);
    free(sorted);
    return err;
}

int hb_decap_maps_set(const struct hb_decap_maps *maps, const struct hb_decap_wanted *wanted,
                      char *problem)
{
    const uint32_t first = 0;
    int err = add_rows(maps->vips, &vip_rows, wanted->vips.list, wanted->vips.count);

    if (!err)
        err = add_rows(maps->sources, &source_rows, wanted->sources.list, wanted->sources.count);
    if (!err)
        err = add_rows(maps->marks, &mark_rows, wanted->marks.list, wanted->marks.count);
    if (!err)
        err = bpf_map_update_elem(maps->settings, &first, &wanted->settings, BPF_ANY);
    if (!err)
        err = remove_others(maps->vips, &vip_rows, wanted->vips.list, wanted->vips.count);
    if (!err)
        err =
            remove_others(maps->sources, &source_rows, wanted->sources.list, wanted->sources.count);
    if (!err)
        err = remove_others(maps->marks, &mark_rows, wanted->marks.list, wanted->marks.count);
    if (err == -E2BIG)
        snprintf(problem, HB_XDP_TEXT_SIZE,
                 "too many addresses: there is room for %u VIPs, %u tunnel sources and %u marks, "
                 "old and new ones together; change them in smaller steps",
                 HB_DECAP_VIPS_MAX, HB_DECAP_SOURCES_MAX, HB_DECAP_MARKS_MAX);
    else if (err)
        snprintf(problem, HB_XDP_TEXT_SIZE, "cannot set the VIPs and tunnel sources: %s",
                 strerror(-err));
    return err;
}

int hb_decap_maps_read(const struct hb_decap_maps *maps, struct hb_decap_wanted *now, char *problem)
{
    const uint32_t first = 0;
    void *list;
    int err = list_rows(maps->vips, &vip_rows, &list, &now->vips.count);

    now->vips.list = list;
    if (!err) {
        err = list_rows(maps->sources, &source_rows, &list, &now->sources.count);
        now->sources.list = list;
    }
    if (!err) {
        err = list_rows(maps->marks, &mark_rows, &list, &now->marks.count);
        now->marks.list = list;
    }
    if (!err)
        err = bpf_map_lookup_elem(maps->settings, &first, &now->settings);
    if (err)
        snprintf(problem, HB_XDP_TEXT_SIZE, "cannot read the program's addresses: %s",
                 strerror(-err));
    return err;
}

int hb_decap_maps_open(const struct hb_xdp_program *attached, struct hb_decap_maps *maps,
                       char *problem)
{
    const struct {
        const char *name;
        int *fd;
    } rows[] = {
        {HB_DECAP_VIP_MAP, &maps->vips},
        {HB_DECAP_SOURCE_MAP, &maps->sources},
        {HB_DECAP_MARK_MAP, &maps->marks},
        {HB_DECAP_SETTINGS_MAP, &maps->settings},
    };

    *maps = (struct hb_decap_maps){-1, -1, -1, -1};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int fd = hb_xdp_open_map(attached, rows[i].name, problem);

        if (fd < 0) {
            hb_decap_maps_close(maps);
            return fd;
        }
        *rows[i].fd = fd;
    }
    return 0;
}

void hb_decap_maps_close(struct hb_decap_maps *maps)
{
    int fds[] = {maps->vips, maps->sources, maps->marks, maps->settings};

    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        if (fds[i] >= 0)
            close(fds[i]);
}
