/* SPDX-License-Identifier: BSD-3-Clause */
#include "slot_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "whole_file.h"

#define MAGIC     UINT64_C(0x31544f4c53424c42) /* "BLBSLOT1", little-endian */
#define NAME_SIZE 20

struct header {
    uint64_t magic;
    uint64_t checksum; /* XXH3, 64 bits, of the whole file with this field zero */
    uint64_t seed_hash;
    uint32_t slots;
    uint32_t flags; /* as in struct hb_table_record */
    uint32_t members;
    uint32_t reserved;
    char pool[HB_NAME_SIZE];
};
_Static_assert(sizeof(struct header) == 104, "no padding");

struct member {
    uint8_t address[HB_ADDRESS_SIZE];
    uint32_t id;
    uint32_t family;
};
_Static_assert(sizeof(struct member) == 24, "no padding; columns stay aligned to 8");

static void file_name(const char *pool, char name[NAME_SIZE])
{
    snprintf(name, NAME_SIZE, "%016" PRIx64, (uint64_t)XXH3_64bits(pool, strlen(pool)));
}

static uint64_t seed_hash(uint64_t seed)
{
    return XXH3_64bits(&seed, sizeof(seed));
}

static uint64_t checksum(const void *file, size_t size)
{
    struct header header = *(const struct header *)file;
    XXH3_state_t *state = XXH3_createState();
    uint64_t sum = 0;

    if (state == NULL)
        return 0;
    header.checksum = 0;
    XXH3_64bits_reset(state);
    XXH3_64bits_update(state, &header, sizeof(header));
    XXH3_64bits_update(state, (const uint8_t *)file + sizeof(header), size - sizeof(header));
    sum = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return sum;
}

/* --- writing --- */

static size_t size_of(const struct header *header)
{
    return sizeof(*header) + header->members * sizeof(struct member) +
           hb_table_body_bytes(header->slots, header->flags);
}

static void fill_members(const struct hb_model_pool *pool, struct member *members)
{
    for (uint32_t b = 0; b < pool->backends_count; b++) {
        const struct hb_model_backend *backend = pool->backends[b];

        members[b] = (struct member){.id = backend->id, .family = backend->address.family};
        memcpy(members[b].address, backend->address.bytes, HB_ADDRESS_SIZE);
    }
}

void *hb_slot_file_make(const struct hb_model_pool *pool, size_t *size)
{
    struct hb_table_columns column = hb_history_columns(&pool->history);
    struct header header = {
        .magic = MAGIC,
        .seed_hash = seed_hash(pool->history.seed),
        .slots = pool->history.slots,
        .flags = column.unsettled != NULL ? HB_TABLE_TWO_OWNERS : 0,
        .members = pool->backends_count,
    };
    size_t bytes = header.slots * sizeof(uint16_t), offset = hb_table_previous_offset(header.slots);
    uint8_t *file, *body;

    memcpy(header.pool, pool->name, sizeof(header.pool));
    *size = size_of(&header);
    file = calloc(1, *size);
    if (file == NULL)
        return NULL;
    memcpy(file, &header, sizeof(header));
    fill_members(pool, (void *)(file + sizeof(header)));
    body = file + sizeof(header) + header.members * sizeof(struct member);
    memcpy(body, column.owner, bytes);
    if (column.unsettled != NULL) {
        memcpy(body + offset, column.previous, bytes);
        memcpy(body + 2 * offset, column.unsettled, hb_table_unsettled_bytes(header.slots));
    }
    ((struct header *)file)->checksum = checksum(file, *size);
    return file;
}

int hb_slot_file_put(const char *folder, const char *pool, const void *file, size_t size)
{
    char path[PATH_MAX], name[NAME_SIZE];

    file_name(pool, name);
    if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
        return -ENAMETOOLONG;
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return -errno;
    return hb_whole_file_replace(path, file, size);
}

/* --- reading --- */

/* The whole file, aligned; NULL with *error. */
static void *read_file(const char *path, size_t *size, int *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat about;
    uint8_t *bytes = NULL;

    *error = 0;
    *size = 0;
    if (fd < 0) {
        *error = -errno;
        return NULL;
    }
    if (fstat(fd, &about) != 0 || about.st_size < (off_t)sizeof(struct header))
        *error = -EBADMSG;
    else
        bytes = malloc((size_t)about.st_size);
    if (*error == 0 && bytes == NULL)
        *error = -ENOMEM;
    while (*error == 0 && *size < (size_t)about.st_size) {
        ssize_t got = read(fd, bytes + *size, (size_t)about.st_size - *size);

        if (got <= 0 && errno != EINTR)
            *error = -EBADMSG;
        *size += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    if (*error == 0)
        return bytes;
    free(bytes);
    return NULL;
}

static bool is_good(const struct header *header, size_t size, const char *pool, uint64_t seed)
{
    return header->magic == MAGIC && header->seed_hash == seed_hash(seed) &&
           strncmp(header->pool, pool, HB_NAME_SIZE) == 0 && header->slots >= HB_TABLE_SLOTS_MIN &&
           header->slots <= HB_TABLE_SLOTS_MAX && header->members <= HB_BACKENDS_MAX &&
           (header->flags & ~HB_TABLE_TWO_OWNERS) == 0 && size == size_of(header) &&
           header->checksum == checksum(header, size);
}

/* By the ids of the file, those of now. */
static void map_ids(const struct hb_model_pool *pool, const struct member *members, uint32_t count,
                    uint16_t *id_of)
{
    for (uint32_t m = 0; m < count; m++) {
        struct hb_address address = {.family = (uint8_t)members[m].family};
        const struct hb_model_backend *backend;

        memcpy(address.bytes, members[m].address, sizeof(address.bytes));
        backend = hb_pool_backend(pool, &address);
        if (members[m].id <= HB_BACKENDS_MAX && backend != NULL)
            id_of[members[m].id] = (uint16_t)backend->id;
    }
}

int hb_slot_file_load(const char *folder, struct hb_model_pool *pool, uint64_t seed)
{
    struct hb_slot_history history = {0};
    struct hb_table_columns column;
    char path[PATH_MAX], name[NAME_SIZE];
    const struct member *members;
    const struct header *header;
    uint16_t *id_of;
    size_t size;
    int error;

    file_name(pool->name, name);
    if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
        return -ENAMETOOLONG;
    header = read_file(path, &size, &error);
    if (header == NULL)
        return error;
    id_of = calloc(HB_BACKENDS_MAX + 1, sizeof(*id_of));
    error = id_of == NULL ? -ENOMEM : is_good(header, size, pool->name, seed) ? 0 : -EBADMSG;
    if (error == 0) {
        members = (const void *)(header + 1);
        column = hb_table_columns(members + header->members, header->slots, header->flags);
        map_ids(pool, members, header->members, id_of);
        error = hb_history_load(&history, &column, header->slots, seed);
    }
    if (error == 0) {
        hb_history_renumber(&history, id_of);
        hb_history_clear(&pool->history);
        pool->history = history;
    }
    free(id_of);
    free((void *)(uintptr_t)header);
    return error;
}

/* --- what is left over --- */

static bool is_of_a_pool(const struct hb_model *model, const char *file)
{
    for (uint32_t p = 0; p < model->pools_count; p++) {
        char name[NAME_SIZE];

        file_name(model->pools[p].name, name);
        if (strcmp(name, file) == 0)
            return true;
    }
    return false;
}

void hb_slot_files_prune(const char *folder, const struct hb_model *model)
{
    DIR *list = opendir(folder);
    const struct dirent *entry;

    while (list != NULL && (entry = readdir(list)) != NULL) {
        if (entry->d_name[0] != '.' && !is_of_a_pool(model, entry->d_name))
            unlinkat(dirfd(list), entry->d_name, 0);
    }
    if (list != NULL)
        closedir(list);
}
