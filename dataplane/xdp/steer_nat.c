/* SPDX-License-Identifier: BSD-3-Clause */
/* See steer_nat.h. */
#include "steer_nat.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "halbach/protocol.h"
#include "xdp_attach.h"

/* Keys of one map, side by side. */
struct keys {
    uint8_t *bytes;
    size_t size; /* of one */
    uint32_t count;
};

struct hb_steer_kept {
    struct keys answers, own;
};

int hb_steer_nat_open(struct hb_steer_nat *nat, const struct hb_xdp_program *program, char *problem)
{
    nat->answers_fd = hb_xdp_open_map(program, HB_STEER_ANSWER_MAP, problem);
    if (nat->answers_fd < 0)
        return nat->answers_fd;
    nat->own_fd = hb_xdp_open_map(program, HB_STEER_OWN_MAP, problem);
    if (nat->own_fd < 0)
        close(nat->answers_fd);
    return nat->own_fd < 0 ? nat->own_fd : 0;
}

void hb_steer_nat_close(struct hb_steer_nat *nat)
{
    close(nat->own_fd);
    close(nat->answers_fd);
}

/* All keys of a map; `bytes` is NULL when memory is short. Listed before any is removed: an
 * iteration over a hash map starts again when the key it stands on goes. */
static struct keys list_keys(int fd, size_t size, uint32_t max)
{
    struct keys keys = {.bytes = malloc(size * max), .size = size};
    const void *previous = NULL;

    while (keys.bytes != NULL && keys.count < max &&
           bpf_map_get_next_key(fd, previous, keys.bytes + keys.count * size) == 0)
        previous = keys.bytes + keys.count++ * size;
    return keys;
}

static int add_keys(int fd, const struct keys *keys)
{
    uint8_t value = 1;
    int error = 0;

    for (uint32_t i = 0; i < keys->count && error == 0; i++)
        error = bpf_map_update_elem(fd, keys->bytes + i * keys->size, &value, BPF_ANY);
    return error;
}

static int compare_answers(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct hb_steer_answer));
}

static int compare_vips(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct hb_steer_vip));
}

static int keep_keys(int fd, const struct keys *wanted, uint32_t max,
                     int (*compare)(const void *a, const void *b))
{
    struct keys present = list_keys(fd, wanted->size, max);
    uint8_t *sorted = malloc(wanted->size * wanted->count + 1);
    int error = 0;

    if (present.bytes == NULL || sorted == NULL) {
        error = -ENOMEM;
        goto free_lists;
    }
    if (wanted->count > 0)
        memcpy(sorted, wanted->bytes, wanted->size * wanted->count);
    qsort(sorted, wanted->count, wanted->size, compare);
    for (uint32_t i = 0; i < present.count && error == 0; i++) {
        const void *key = present.bytes + i * present.size;

        if (bsearch(key, sorted, wanted->count, wanted->size, compare) == NULL)
            error = bpf_map_delete_elem(fd, key);
    }
free_lists:
    free(sorted);
    free(present.bytes);
    return error;
}

static struct keys answers_of(const struct hb_steer_nat_set *set)
{
    return (struct keys){(void *)set->answers, sizeof(*set->answers), set->answers_count};
}

static struct keys own_of(const struct hb_steer_nat_set *set)
{
    return (struct keys){(void *)set->own, sizeof(*set->own), set->own_count};
}

int hb_steer_nat_add(struct hb_steer_nat *nat, const struct hb_steer_nat_set *set)
{
    struct keys own = own_of(set), answers = answers_of(set);
    int error = add_keys(nat->own_fd, &own);

    return error != 0 ? error : add_keys(nat->answers_fd, &answers);
}

int hb_steer_nat_keep_only(struct hb_steer_nat *nat, const struct hb_steer_nat_set *set)
{
    struct keys own = own_of(set), answers = answers_of(set);
    int error = keep_keys(nat->answers_fd, &answers, HB_STEER_ANSWERS_MAX, compare_answers);

    return error != 0 ? error : keep_keys(nat->own_fd, &own, HB_STEER_OWN_MAX, compare_vips);
}

struct hb_steer_kept *hb_steer_nat_keep(const struct hb_xdp_program *left_over)
{
    char ignored[HB_TEXT_SIZE]; /* without the maps there is nothing to keep */
    struct hb_steer_nat nat;
    struct hb_steer_kept *kept;

    if (hb_steer_nat_open(&nat, left_over, ignored) != 0)
        return NULL;
    kept = calloc(1, sizeof(*kept));
    if (kept != NULL) {
        kept->answers =
            list_keys(nat.answers_fd, sizeof(struct hb_steer_answer), HB_STEER_ANSWERS_MAX);
        kept->own = list_keys(nat.own_fd, sizeof(struct hb_steer_vip), HB_STEER_OWN_MAX);
    }
    hb_steer_nat_close(&nat);
    return kept;
}

int hb_steer_nat_restore(struct hb_steer_nat *nat, struct hb_steer_kept *kept)
{
    int error = 0;

    if (kept != NULL)
        error = add_keys(nat->own_fd, &kept->own);
    if (kept != NULL && error == 0)
        error = add_keys(nat->answers_fd, &kept->answers);
    hb_steer_nat_forget(kept);
    return error;
}

void hb_steer_nat_forget(struct hb_steer_kept *kept)
{
    if (kept == NULL)
        return;
    free(kept->answers.bytes);
    free(kept->own.bytes);
    free(kept);
}
