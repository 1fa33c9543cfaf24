/* SPDX-License-Identifier: BSD-3-Clause */
#include "whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "log.h"

static int write_all(int fd, const uint8_t *bytes, size_t left)
{
    while (left > 0) {
        ssize_t wrote = write(fd, bytes, left);

        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return -errno;
        bytes += wrote;
        left -= (size_t)wrote;
    }
    return 0;
}

static int sync_folder(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), error = 0;

    if (fd < 0)
        return -errno;
    if (fsync(fd) != 0 && errno != EINVAL)
        error = -errno;
    close(fd);
    return error;
}

static int put(const char *path, const void *bytes, size_t size)
{
    char temporary[PATH_MAX];
    int fd, error;

    if (snprintf(temporary, sizeof(temporary), "%s.new", path) >= (int)sizeof(temporary))
        return -ENAMETOOLONG;
    fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    error = write_all(fd, bytes, size);
    /* Or the new name could stand for an empty file after a power cut. */
    if (error == 0 && fdatasync(fd) != 0)
        error = -errno;
    close(fd);
    if (error == 0 && rename(temporary, path) != 0)
        error = -errno;
    if (error != 0)
        unlink(temporary);
    return error;
}

int hb_whole_file_replace(const char *path, const void *bytes, size_t size)
{
    char copy[PATH_MAX];
    int error = put(path, bytes, size);

    if (error != 0)
        return error;
    snprintf(copy, sizeof(copy), "%s", path);
    return sync_folder(dirname(copy));
}

void hb_whole_file_set_aside(const char *path, const char *why, const char *without)
{
    char bad[PATH_MAX];

    snprintf(bad, sizeof(bad), "%s.bad", path);
    if (rename(path, bad) == 0)
        hb_log(HB_LOG_WARNING, "%s: %s; it was moved to %s and %s", path, why, bad, without);
    else
        hb_log(HB_LOG_WARNING, "%s: %s, and it could not be moved to %s: %s; %s", path, why, bad,
               strerror(errno), without);
}
