/* SPDX-License-Identifier: BSD-3-Clause */
#include "api_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "log.h"

/* The pid behind a socket that answers, or 0 when nobody does. */
static pid_t find_owner(const struct sockaddr_un *address)
{
    struct ucred owner = {0};
    socklen_t size = sizeof(owner);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool alive;

    if (fd < 0)
        return 0;
    alive = connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ||
            errno == EAGAIN; /* its backlog is full */
    if (alive)
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &owner, &size);
    close(fd);
    return alive ? (owner.pid ? owner.pid : -1) : 0;
}

static int refuse_second(const char *path, pid_t owner)
{
    if (owner > 0)
        hb_log(HB_LOG_ERROR,
               "%s: another halbach-control (pid %d) serves this socket; stop it, or "
               "give this one another --socket (and --state)",
               path, (int)owner);
    else
        hb_log(HB_LOG_ERROR,
               "%s: another process holds this socket; stop it, or give this control "
               "another --socket (and --state)",
               path);
    return -EADDRINUSE;
}

static int take_lock(const char *path, const struct sockaddr_un *address)
{
    char lock[PATH_MAX];
    int fd, error;

    snprintf(lock, sizeof(lock), "%s.lock", path);
    fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        error = -errno;
        hb_log(HB_LOG_ERROR, "%s: cannot be opened: %s; make the folder, or name another --socket",
               lock, strerror(-error));
        return error;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    close(fd);
    return refuse_second(path, find_owner(address));
}

/* With the lock held: what is at the path is a leftover, unless another kind of program serves it.
 */
static int remove_stale(const char *path, const struct sockaddr_un *address)
{
    struct stat status;
    pid_t owner;

    if (lstat(path, &status) != 0)
        return 0;
    if (!S_ISSOCK(status.st_mode)) {
        hb_log(HB_LOG_ERROR, "%s: is there and is not a socket; remove it or name another --socket",
               path);
        return -EEXIST;
    }
    owner = find_owner(address);
    if (owner != 0)
        return refuse_second(path, owner);
    unlink(path);
    return 0;
}

static int listen_at(const char *path, const struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error;

    /* The mode is set before anybody can connect. */
    if (fd >= 0 && bind(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 &&
        chmod(path, 0660) == 0 && listen(fd, 64) == 0)
        return fd;
    error = -errno;
    hb_log(HB_LOG_ERROR, "%s: cannot listen: %s", path, strerror(-error));
    if (fd >= 0)
        close(fd);
    return error;
}

int hb_api_socket_open(struct hb_api_socket *listener, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int error = -ENOMEM;

    if (strlen(path) >= sizeof(address.sun_path)) {
        hb_log(HB_LOG_ERROR,
               "%s: longer than a socket's path may be (%zu bytes); name another "
               "--socket",
               path, sizeof(address.sun_path) - 1);
        return -ENAMETOOLONG;
    }
    memcpy(address.sun_path, path, strlen(path));
    listener->path = strdup(path);
    if (listener->path == NULL)
        return -ENOMEM;
    listener->lock_fd = error = take_lock(path, &address);
    if (error < 0)
        goto free_path;
    error = remove_stale(path, &address);
    if (error != 0)
        goto unlock;
    listener->fd = error = listen_at(path, &address);
    if (error >= 0) {
        struct stat status;

        listener->group = stat(path, &status) == 0 ? status.st_gid : getegid();
        return 0;
    }
unlock:
    close(listener->lock_fd);
free_path:
    free(listener->path);
    return error;
}

void hb_api_socket_close(struct hb_api_socket *listener)
{
    unlink(listener->path);
    if (listener->fd >= 0)
        close(listener->fd);
    close(listener->lock_fd);
    free(listener->path);
}
