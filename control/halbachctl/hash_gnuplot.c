/* SPDX-License-Identifier: BSD-3-Clause */
/* hash_gnuplot.c: gnuplot as a child process. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hash_plot.h"

extern char **environ;

static int refuse_file(const struct hb_ctl *ctl, const char *file)
{
    return hb_hash_refuse(ctl, HB_EXIT_FAILED,
                          "--out %s: %s; choose a file in a folder that can be written", file,
                          strerror(errno));
}

/* A new file beside `file`; `name` gets its name. */
static int open_beside(const char *file, char **name)
{
    int fd;

    if (asprintf(name, "%s.XXXXXX", file) < 0) {
        *name = NULL;
        errno = ENOMEM;
        return -1;
    }
    fd = mkostemp(*name, O_CLOEXEC);
    if (fd >= 0 && fchmod(fd, 0644) < 0) {
        close(fd);
        unlink(*name);
        return -1;
    }
    return fd;
}

static bool write_all(int fd, const char *text, size_t size)
{
    while (size > 0) {
        ssize_t written = write(fd, text, size);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        text += written;
        size -= (size_t)written;
    }
    return true;
}

int hb_plot_write(const struct hb_ctl *ctl, const char *script, size_t size, const char *file)
{
    char *name;
    int fd = open_beside(file, &name), status = HB_EXIT_OK;

    if (fd < 0 || !write_all(fd, script, size) || rename(name, file) < 0) {
        status = refuse_file(ctl, file);
        if (fd >= 0)
            unlink(name);
    }
    if (fd >= 0)
        close(fd);
    free(name);
    return status;
}

/* A file in memory that holds the text, to be read from its start. */
static int hold_text(const char *text, size_t size)
{
    int fd = memfd_create("halbachctl", MFD_CLOEXEC);

    if (fd < 0)
        return -1;
    if (!write_all(fd, text, size) || lseek(fd, 0, SEEK_SET) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Runs gnuplot between three files. Returns its status, or -errno when it did not start. */
static int run_child(int in, int out, int err)
{
    static const char *const argv[] = {"gnuplot", "-d", "-", NULL};
    posix_spawn_file_actions_t actions;
    int result, status;
    pid_t child;

    if (posix_spawn_file_actions_init(&actions) != 0)
        return -ENOMEM;
    result = posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    if (result == 0)
        result = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    if (result == 0)
        result = posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
    if (result == 0)
        result = posix_spawnp(&child, argv[0], &actions, NULL, (char **)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (result != 0)
        return -result;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR)
            return -errno;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static int report_child(const struct hb_ctl *ctl, int result, int err)
{
    char words[512];
    ssize_t size = pread(err, words, sizeof(words) - 1, 0);

    if (result == -ENOENT || result == 127)
        return hb_hash_refuse(ctl, HB_EXIT_FAILED,
                              "gnuplot is not installed; as root, run 'apt-get install "
                              "gnuplot-nox', or write its commands with --out FILE.gp");
    if (result < 0)
        return hb_hash_refuse(ctl, HB_EXIT_FAILED, "gnuplot did not start: %s", strerror(-result));
    words[size > 0 ? size : 0] = '\0';
    return hb_hash_refuse(ctl, HB_EXIT_FAILED,
                          "gnuplot failed with status %d and said: %s; --out FILE.gp shows what it "
                          "was asked",
                          result, *words ? words : "nothing");
}

int hb_gnuplot_run(const struct hb_ctl *ctl, const char *script, size_t size, const char *file)
{
    int in = hold_text(script, size), err = hold_text("", 0), out, result;
    int status = HB_EXIT_OK;
    char *name = NULL;

    if (in < 0 || err < 0)
        status = hb_hash_no_memory(ctl);
    out = status == HB_EXIT_OK ? open_beside(file, &name) : -1;
    if (status == HB_EXIT_OK && out < 0)
        status = refuse_file(ctl, file);
    if (status == HB_EXIT_OK) {
        result = run_child(in, out, err);
        /* It ends with status 0 after some mistakes, too; but then there is no picture. */
        if (result != 0 || lseek(out, 0, SEEK_END) == 0)
            status = report_child(ctl, result, err);
        else if (rename(name, file) < 0)
            status = refuse_file(ctl, file);
        if (status != HB_EXIT_OK)
            unlink(name);
    }
    if (in >= 0)
        close(in);
    if (err >= 0)
        close(err);
    if (out >= 0)
        close(out);
    free(name);
    return status;
}
