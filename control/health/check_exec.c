/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_exec.c: a target is well when a command on this machine ends with status 0 in time. The
 * first line that it prints is the reason.
 *
 * The command is started directly (no shell) in a process group of its own, and knows its target by
 * environment variables. At the time limit the whole group is killed, by its id. Its end comes as
 * an event on a pidfd, so neither SIGCHLD nor a wait can hold up the loop.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "checker.h"
#include "probe_socket.h"

#define ARGUMENTS_MAX 64
#define OUTPUT_SIZE   128
#define GONE_MS       10

struct hb_check {
    struct hb_check_setup setup;
    char words[HB_CHECK_COMMAND_MAX]; /* the command, cut into its arguments */
    char *arguments[ARGUMENTS_MAX + 1];
    char address[32 + HB_ADDRESS_TEXT];
    char port[32];
    char timeout[48];
    char *environment[8];

    pid_t pid; /* 0: no probe under way */
    int pidfd;
    int output; /* the read end of its standard output and error */
    struct event ended;
};

static void close_all(struct hb_check *check)
{
    event_del(&check->ended);
    close(check->pidfd);
    close(check->output);
    check->pid = 0;
}

/* A killed command that has not gone yet: the kernel may keep one in an uninterruptible wait. */
struct corpse {
    pid_t pid;
    int pidfd;
    struct event gone;
};

static void on_gone(evutil_socket_t fd, short what, void *context)
{
    struct corpse *corpse = context;

    (void)what;
    waitpid(corpse->pid, NULL, WNOHANG);
    event_del(&corpse->gone);
    close(fd);
    free(corpse);
}

/* Leaves the rest to an event. Without memory the process stays a zombie, no worse. */
static void reap_later(struct hb_check *check)
{
    struct corpse *corpse = calloc(1, sizeof(*corpse));

    if (corpse == NULL)
        return;
    corpse->pid = check->pid;
    corpse->pidfd = fcntl(check->pidfd, F_DUPFD_CLOEXEC, 0);
    event_assign(&corpse->gone, check->setup.base, corpse->pidfd, EV_READ, on_gone, corpse);
    if (corpse->pidfd < 0 || event_add(&corpse->gone, NULL) < 0)
        free(corpse);
}

/* Kills the whole group and reaps the command. Until it is reaped its id, which is the group's,
 * names nobody else. Waits as long as a kill usually takes, far below a millisecond, and no longer
 * than GONE_MS. Returns its status, where it has ended. */
static int end_group(struct hb_check *check)
{
    struct pollfd gone = {.fd = check->pidfd, .events = POLLIN};
    int status = 0;

    kill(-check->pid, SIGKILL);
    if (poll(&gone, 1, GONE_MS) <= 0 || waitpid(check->pid, &status, WNOHANG) != check->pid)
        reap_later(check);
    return status;
}

/* The first line of what there is, printable, into `text`; false when there is none. */
static bool read_first_line(int fd, char *text)
{
    ssize_t size = read(fd, text, OUTPUT_SIZE - 1);
    size_t length = 0;

    if (size <= 0)
        return false;
    text[size] = '\0';
    length = strcspn(text, "\r\n");
    text[length] = '\0';
    for (size_t i = 0; i < length; i++) {
        if (text[i] < ' ' || text[i] > '~')
            text[i] = '?';
    }
    return length > 0;
}

static enum hb_probe_reason judge(int status, char *text, bool has_line)
{
    bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;

    if (!has_line && WIFEXITED(status))
        snprintf(text, OUTPUT_SIZE, "ended with status %d", WEXITSTATUS(status));
    else if (!has_line)
        snprintf(text, OUTPUT_SIZE, "was ended by signal %d", WTERMSIG(status));
    return good ? HB_PROBE_OK : HB_PROBE_WRONG;
}

static void on_end(evutil_socket_t fd, short what, void *context)
{
    struct hb_check *check = context;
    siginfo_t info = {0};
    enum hb_probe_reason reason = HB_PROBE_TIMEOUT;
    char text[OUTPUT_SIZE];
    bool has_line, has_ended;
    int status;

    (void)what;
    /* WNOWAIT: see end_group(), which also ends what the command left behind. At the time limit it
     * may have ended, unseen while control was busy. */
    has_ended =
        waitid(P_PIDFD, (id_t)fd, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
    status = end_group(check);
    has_line = read_first_line(check->output, text);
    close_all(check);
    if (has_ended)
        reason = judge(status, text, has_line);
    else
        snprintf(text, sizeof(text), "the command was killed at the time limit");
    check->setup.done(check->setup.context, reason, text); /* last: it may destroy the check */
}

static int spawn(struct hb_check *check, int output)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, usual;
    int error;

    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGPIPE); /* control ignores it */
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &usual);
    posix_spawn_file_actions_init(&actions);
    error = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (error == 0)
        error = posix_spawn_file_actions_adddup2(&actions, output, 1);
    if (error == 0)
        error = posix_spawn_file_actions_adddup2(&actions, output, 2);
    if (error == 0)
        error = posix_spawn(&check->pid, check->arguments[0], &actions, &attributes,
                            check->arguments, check->environment);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return error;
}

/* 0, or an errno and nothing is open. */
static int start(struct hb_check *check)
{
    int ends[2], error;

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return errno;
    /* Only our end must not block; the command's is as any program expects it. */
    fcntl(ends[1], F_SETFL, 0);
    check->output = ends[0];
    error = spawn(check, ends[1]);
    close(ends[1]);
    if (error != 0) {
        close(ends[0]);
        check->pid = 0;
        return error;
    }
    check->pidfd = pidfd_open(check->pid, 0);
    if (check->pidfd >= 0)
        return 0;
    error = errno;
    kill(-check->pid, SIGKILL);
    waitpid(check->pid, NULL, 0);
    close(ends[0]);
    check->pid = 0;
    return error;
}

static int begin(struct hb_check *check, const char **detail)
{
    struct timeval limit = hb_probe_time_limit(check->setup.config);
    int error = start(check);

    if (error == 0) {
        event_assign(&check->ended, check->setup.base, check->pidfd, EV_READ, on_end, check);
        if (event_add(&check->ended, &limit) == 0)
            return HB_PROBE_UNDER_WAY;
        end_group(check);
        close_all(check);
        error = ENOMEM;
    }
    /* What cannot be started says nothing about the target. */
    *detail = error == ENOENT   ? "the command is not there; mend health.command"
              : error == EACCES ? "the command may not be executed; check its mode"
                                : "the command cannot be started: this machine lacks memory, "
                                  "processes or descriptors";
    return HB_PROBE_LOCAL_ERROR;
}

/* Words are divided by spaces; there is no quoting. */
static void cut_words(struct hb_check *check)
{
    char *rest = NULL, *word;
    int count = 0;

    snprintf(check->words, sizeof(check->words), "%s", check->setup.config->command);
    word = strtok_r(check->words, " ", &rest);
    for (; word != NULL && count < ARGUMENTS_MAX; word = strtok_r(NULL, " ", &rest))
        check->arguments[count++] = word;
}

static void set_environment(struct hb_check *check)
{
    static char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    static char language[] = "LC_ALL=C.UTF-8";
    char address[HB_ADDRESS_TEXT];

    snprintf(check->address, sizeof(check->address), "HALBACH_ADDRESS=%s",
             hb_address_print(check->setup.address, address));
    snprintf(check->port, sizeof(check->port), "HALBACH_PORT=%u", check->setup.config->port);
    snprintf(check->timeout, sizeof(check->timeout), "HALBACH_TIMEOUT_MS=%u",
             check->setup.config->timeout_ms);
    check->environment[0] = path;
    check->environment[1] = language;
    check->environment[2] = check->address;
    check->environment[3] = check->port;
    check->environment[4] = check->timeout;
}

static struct hb_check *create(const struct hb_check_setup *setup)
{
    struct hb_check *check = calloc(1, sizeof(*check));

    if (!check)
        return NULL;
    check->setup = *setup;
    cut_words(check);
    set_environment(check);
    return check;
}

static void destroy(struct hb_check *check)
{
    if (check->pid != 0) {
        end_group(check);
        close_all(check);
    }
    free(check);
}

const struct hb_checker hb_checker_exec = {
    .type = HB_HEALTH_EXEC,
    .create = create,
    .begin = begin,
    .destroy = destroy,
};
