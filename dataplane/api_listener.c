/* SPDX-License-Identifier: BSD-3-Clause */
/* See api_listener.h. */
#include "api_listener.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Opens and locks the folder of `path`. The lock goes with the descriptor. */
static int lock_folder(const char *path, char *problem)
{
    char copy[sizeof(((struct hb_api_listener *)0)->path)];
    const char *folder;
    int fd;

    snprintf(copy, sizeof(copy), "%s", path);
    folder = dirname(copy);
    if (strcmp(folder, "/run/halbach") == 0 && mkdir(folder, 0755) != 0 && errno != EEXIST) {
        snprintf(problem, HB_TEXT_SIZE, "%s cannot be made: %s", folder, strerror(errno));
        return -errno;
    }
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || flock(fd, LOCK_EX) != 0) {
        int error = -errno;

        snprintf(
            problem, HB_TEXT_SIZE,
            "the folder %s of the control socket cannot be opened: %s; make it, or give another "
            "path with --socket",
            folder, strerror(errno));
        if (fd >= 0)
            close(fd);
        return error;
    }
    return fd;
}

static void fill_address(struct sockaddr_un *address, const char *path)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address->sun_path, sizeof(address->sun_path), "%s", path);
}

/* Removes a stale socket at the path. Returns 0 when the path is free now. */
static int clear_path(const char *path, char *problem)
{
    struct sockaddr_un address;
    struct ucred peer = {0};
    socklen_t size = sizeof(peer);
    struct stat about;
    int fd, error = 0;

    if (lstat(path, &about) != 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISSOCK(about.st_mode)) {
        snprintf(problem, HB_TEXT_SIZE,
                 "%s exists and is not a socket; remove it, or give another path with --socket",
                 path);
        return -EEXIST;
    }
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    fill_address(&address, path);
    /* EAGAIN: somebody listens, with a full backlog. EPROTOTYPE: a socket of another type. */
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 || errno == EAGAIN) {
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
        snprintf(
            problem, HB_TEXT_SIZE,
            "another dataplane (pid %d) serves %s; stop it, or give another path with --socket",
            (int)peer.pid, path);
        error = -EADDRINUSE;
    } else if (errno != ECONNREFUSED) {
        error = -errno;
        snprintf(problem, HB_TEXT_SIZE,
                 "%s is in use by something else (%s); give another path with --socket", path,
                 strerror(errno));
    } else if (unlink(path) != 0 && errno != ENOENT) {
        error = -errno;
        snprintf(problem, HB_TEXT_SIZE, "the stale socket %s cannot be removed: %s", path,
                 strerror(errno));
    }
    close(fd);
    return error;
}

static int listen_at(struct hb_api_listener *listener)
{
    struct sockaddr_un address;
    struct stat about;

    fill_address(&address, listener->path);
    listener->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener->fd < 0 || bind(listener->fd, (struct sockaddr *)&address, sizeof(address)) != 0)
        return -errno;
    if (stat(listener->path, &about) != 0)
        return -errno;
    listener->device = about.st_dev;
    listener->inode = about.st_ino;
    /* Before listen(): nobody can connect until then. */
    if (chmod(listener->path, 0660) != 0 || listen(listener->fd, 16) != 0)
        return -errno;
    return 0;
}

int hb_api_listener_open(struct hb_api_listener *listener, const char *path, char *problem)
{
    int folder, error;

    *listener = (struct hb_api_listener){.fd = -1};
    snprintf(listener->path, sizeof(listener->path), "%s", path);
    problem[0] = '\0';
    folder = lock_folder(listener->path, problem);
    if (folder < 0)
        return folder;
    error = clear_path(listener->path, problem);
    if (error == 0)
        error = listen_at(listener);
    if (error != 0 && problem[0] == '\0')
        snprintf(problem, HB_TEXT_SIZE, "cannot listen at %s: %s", path, strerror(-error));
    if (error != 0)
        hb_api_listener_close(listener);
    close(folder);
    return error;
}

void hb_api_listener_close(struct hb_api_listener *listener)
{
    struct stat about;

    if (listener->fd < 0)
        return;
    if (listener->inode != 0 && lstat(listener->path, &about) == 0 &&
        about.st_dev == listener->device && about.st_ino == listener->inode)
        unlink(listener->path);
    close(listener->fd);
    listener->fd = -1;
}
