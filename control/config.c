/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config.c: the configuration file, from its name to struct hb_config.
 *
 * The file is read whole before any of it is looked at, and only if it is the same file before and
 * after: whoever writes it while it is read gets a complaint, not half a configuration. A text that
 * ends in the middle of a line is refused too: "port: 80" may be the beginning of "port: 8080".
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xxhash.h>

#include "config_internal.h"

/*
 * Keys from the seed, the same on every balancer: word i of the hash key is XXH3 (64 bits) of the
 * seed's bytes with the number i as XXH3's own seed, and the seed of the tables is that with i =
 * HB_HASH_KEY_WORDS. A word of zero would multiply a part of the packet's key away, so it is
 * replaced.
 */
static uint64_t derive_word(const char *seed, unsigned i)
{
    uint64_t word = XXH3_64bits_withSeed(seed, strlen(seed), i);

    return word != 0 ? word : UINT64_C(0x9e3779b97f4a7c15);
}

static void derive_keys(struct hb_config *config)
{
    for (unsigned i = 0; i < HB_HASH_KEY_WORDS; i++)
        config->hash_key.word[i] = derive_word(config->seed, i);
    config->table_seed = derive_word(config->seed, HB_HASH_KEY_WORDS);
}

void hb_config_free(struct hb_config *config)
{
    if (config == NULL)
        return;
    for (uint32_t i = 0; i < config->pools_count; i++)
        free(config->pools[i].backends);
    free(config->pools);
    for (uint32_t i = 0; i < config->services_count; i++) {
        hb_service_rules_clear(&config->services[i].rules);
        free(config->services[i].quic);
    }
    free(config->services);
    free(config->file);
    free(config);
}

static void check_last_line(struct hb_config_reader *reader, const char *text, size_t size)
{
    int line = 1;

    if (text[size - 1] == '\n')
        return;
    for (size_t i = 0; i < size; i++)
        line += text[i] == '\n';
    hb_config_complain(reader, line, "",
                       "it ends in the middle of a line; if it is not cut short, end that line "
                       "with a newline");
}

/* Reads the document into reader->config. */
static void read_document(struct hb_config_reader *reader, const char *text, size_t size)
{
    yaml_document_t document;

    check_last_line(reader, text, size);
    if (!hb_config_yaml_load(reader, text, size, &document))
        return;
    reader->document = &document;
    hb_config_apply_schema(reader);
    hb_config_sort_places(reader);
    hb_config_apply_rules(reader);
    reader->document = NULL;
    yaml_document_delete(&document);
    derive_keys(reader->config);
}

struct hb_config *hb_config_parse(const char *text, size_t size, const char *file,
                                  hb_config_report report, void *context)
{
    struct hb_config_reader reader = {.file = file};
    bool refused;

    reader.config = calloc(1, sizeof(*reader.config));
    if (reader.config != NULL)
        reader.config->file = strdup(file);
    if (reader.config == NULL || reader.config->file == NULL)
        reader.no_memory = true;
    else if (size > HB_CONFIG_FILE_MAX)
        hb_config_complain(&reader, 0, "", "it is larger than %d MB; is it the right file?",
                           HB_CONFIG_FILE_MAX >> 20);
    else if (size == 0)
        hb_config_complain(&reader, 0, "",
                           "it is empty; it needs at least \"seed\", \"pools\" and \"services\"");
    else
        read_document(&reader, text, size);
    refused = reader.errors > 0 || reader.no_memory;
    hb_config_report_all(&reader, report, context);
    free(reader.places);
    if (!refused)
        return reader.config;
    hb_config_free(reader.config);
    return NULL;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

int hb_config_read_file(int fd, const struct stat *before, char **text, size_t *size)
{
    size_t expected = (size_t)before->st_size, length = 0;
    struct stat after;
    char *buffer;

    if (before->st_size > HB_CONFIG_FILE_MAX)
        return -EFBIG;
    buffer = malloc(expected + 1);
    if (buffer == NULL)
        return -ENOMEM;
    while (length <= expected) { /* one byte more than there should be */
        ssize_t got = read(fd, buffer + length, expected + 1 - length);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            int error = -errno;

            free(buffer);
            return error;
        }
        if (got == 0)
            break;
        length += (size_t)got;
    }
    if (length != expected || fstat(fd, &after) < 0 || !is_same(before, &after)) {
        free(buffer);
        return -EAGAIN;
    }
    buffer[length] = '\0';
    *text = buffer;
    *size = length;
    return 0;
}

static void complain_file(struct hb_config_reader *reader, int error)
{
    switch (-error) {
    case ENOENT:
        hb_config_complain(reader, 0, "", "there is no such file; is the path right?");
        break;
    case EACCES:
        hb_config_complain(reader, 0, "", "it may not be read by this user; check its permissions");
        break;
    case EISDIR:
        hb_config_complain(reader, 0, "", "it is a directory; name the file in it");
        break;
    case EINVAL:
        hb_config_complain(reader, 0, "", "it is not a regular file");
        break;
    case EFBIG:
        hb_config_complain(reader, 0, "", "it is larger than %d MB; is it the right file?",
                           HB_CONFIG_FILE_MAX >> 20);
        break;
    case EAGAIN:
        hb_config_complain(reader, 0, "",
                           "it changed while it was read; write to a temporary file, then rename "
                           "that");
        break;
    default:
        hb_config_complain(reader, 0, "", "it cannot be read: %s", strerror(-error));
    }
}

/* Opens and reads a file that must be a regular one. O_NONBLOCK: a pipe must not hold control up.
 */
static int read_named_file(const char *file, char **text, size_t *size)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat before;
    int error;

    if (fd < 0)
        return -errno;
    if (fstat(fd, &before) < 0)
        error = -errno;
    else if (S_ISDIR(before.st_mode))
        error = -EISDIR;
    else if (!S_ISREG(before.st_mode))
        error = -EINVAL;
    else
        error = hb_config_read_file(fd, &before, text, size);
    close(fd);
    return error;
}

int hb_config_read(const char *file, char **text, size_t *size, hb_config_report report,
                   void *context)
{
    struct hb_config_reader reader = {.file = file};
    int error = read_named_file(file, text, size);

    if (error < 0) {
        complain_file(&reader, error);
        hb_config_report_all(&reader, report, context);
    }
    return error;
}

struct hb_config *hb_config_load(const char *file, hb_config_report report, void *context)
{
    struct hb_config *config;
    char *text = NULL;
    size_t size = 0;

    if (hb_config_read(file, &text, &size, report, context) < 0)
        return NULL;
    config = hb_config_parse(text, size, file, report, context);
    free(text);
    return config;
}
