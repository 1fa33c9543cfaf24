/* SPDX-License-Identifier: BSD-3-Clause */
#include "watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api_client.h"
#include "command_line.h"
#include "json.h"

#define LEAST_S 0.1
#define MOST_S  86400.0

bool hb_watch_check(const struct hb_ctl *ctl)
{
    char *end;
    double seconds;

    if (!ctl->watch)
        return true;
    seconds = strtod(ctl->watch, &end);
    if (*end == '\0' && seconds >= LEAST_S && seconds <= MOST_S)
        return true;
    fprintf(ctl->err, "halbachctl: --watch is '%s'; expected seconds from %g to %g\n", ctl->watch,
            LEAST_S, MOST_S);
    return false;
}

static double interval_of(const struct hb_ctl *ctl)
{
    return ctl->watch ? strtod(ctl->watch, NULL) : 1;
}

static void rest(double seconds)
{
    struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

    while (nanosleep(&time, &time) != 0 && errno == EINTR)
        ;
}

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* --- the terminal as a whole --- */

static bool has_frames(const struct hb_ctl *ctl)
{
    return ctl->screen.terminal && !ctl->json;
}

/* Line by line over what was there, so that nothing flickers; cut to the terminal's height. */
static void print_frame(const struct hb_ctl *ctl, const char *text)
{
    const struct hb_screen *screen = &ctl->screen;
    unsigned line = 0, room = screen->height > 3 ? screen->height - 2 : 0;

    fputs("\033[H", screen->out);
    while (*text != '\0' && (room == 0 || line < room)) {
        size_t size = strcspn(text, "\n");

        fprintf(screen->out, "%.*s\033[K\n", (int)size, text);
        text += size + (text[size] == '\n');
        line++;
    }
    fprintf(screen->out, "\033[J\n%severy %g s, ctrl-C ends", *text ? "(more below) " : "",
            interval_of(ctl));
    fflush(screen->out);
}

static void clear_screen(const struct hb_ctl *ctl)
{
    if (has_frames(ctl))
        fputs("\033[2J", ctl->screen.out);
}

/* A copy of the call whose output goes to memory. */
static bool open_frame(const struct hb_ctl *ctl, struct hb_ctl *framed, char **text, size_t *size)
{
    *framed = *ctl;
    *text = NULL;
    framed->screen.out = open_memstream(text, size);
    framed->err = framed->screen.out;
    return framed->screen.out != NULL;
}

static void close_frame(const struct hb_ctl *ctl, struct hb_ctl *framed, char **text)
{
    fclose(framed->screen.out);
    if (*text)
        print_frame(ctl, *text);
    free(*text);
}

/* --- commands that know nothing of it --- */

static int run_once(const struct hb_ctl *ctl)
{
    struct hb_ctl once = *ctl;

    once.watch = NULL;
    return once.command->run(&once);
}

static int watch_terminal(const struct hb_ctl *ctl)
{
    struct hb_ctl framed;
    char *text;
    size_t size;

    clear_screen(ctl);
    while (open_frame(ctl, &framed, &text, &size)) {
        int status = run_once(&framed);

        close_frame(ctl, &framed, &text);
        if (status == HB_EXIT_USAGE)
            return status;
        rest(interval_of(ctl));
    }
    return HB_EXIT_FAILED;
}

int hb_watch(const struct hb_ctl *ctl)
{
    if (has_frames(ctl))
        return watch_terminal(ctl);
    for (;;) {
        int status = run_once(ctl);

        if (status != HB_EXIT_OK)
            return status;
        if (!ctl->json)
            fputc('\n', ctl->screen.out);
        if (fflush(ctl->screen.out) != 0)
            return HB_EXIT_FAILED;
        rest(interval_of(ctl));
    }
}

/* --- rates --- */

static bool ask_one(const struct hb_ctl *ctl, const char *path, json_t *all)
{
    struct hb_answer answer;
    bool good = hb_ctl_ask(ctl, false, path, &answer);

    if (good)
        json_object_update(all, answer.json);
    hb_answer_free(&answer);
    return good;
}

/* All answers in one object, or NULL after a report to `err`. The status comes first, so that its
 * members give way to those of the same name. */
static json_t *ask_all(const struct hb_ctl *ctl, const char *const *paths)
{
    json_t *all = json_object();
    bool good = ask_one(ctl, "/v1/status", all);

    for (; good && *paths; paths++)
        good = ask_one(ctl, *paths, all);
    if (good)
        return all;
    json_decref(all);
    return NULL;
}

/* No packets, and none that can be counted, look the same. */
static void show_rates(const struct hb_ctl *ctl, const json_t *now, const json_t *before,
                       double seconds, hb_rates_show show)
{
    if (!ctl->json && !hb_json_flag(now, "dataplane.connected")) {
        hb_print(&ctl->screen, HB_RED, "the dataplane is out of reach: nothing can be counted");
        fprintf(ctl->screen.out, "\n\n");
    }
    show(ctl, now, before, seconds);
}

/* On a terminal a control that is away is waited for, in view of the failure. */
static json_t *ask_patiently(const struct hb_ctl *ctl, const char *const *paths)
{
    struct hb_ctl framed;
    json_t *all;
    char *text;
    size_t size;

    while (open_frame(ctl, &framed, &text, &size)) {
        all = ask_all(&framed, paths);
        if (all) {
            fclose(framed.screen.out);
            free(text);
            return all;
        }
        close_frame(ctl, &framed, &text);
        rest(interval_of(ctl));
    }
    return NULL;
}

static void show_frame(const struct hb_ctl *ctl, const json_t *now, const json_t *before,
                       double seconds, hb_rates_show show)
{
    struct hb_ctl framed;
    char *text;
    size_t size;

    if (!has_frames(ctl)) {
        show_rates(ctl, now, before, seconds, show);
    } else if (open_frame(ctl, &framed, &text, &size)) {
        show_rates(&framed, now, before, seconds, show);
        close_frame(ctl, &framed, &text);
    }
}

int hb_watch_rates(const struct hb_ctl *ctl, const char *const *paths, bool once,
                   hb_rates_show show)
{
    bool patient = !once && has_frames(ctl);
    json_t *before = ask_all(ctl, paths), *now = NULL;
    double then = now_s(), seconds;

    if (!before)
        return HB_EXIT_FAILED;
    if (patient)
        clear_screen(ctl);
    for (;;) {
        rest(interval_of(ctl));
        now = patient ? ask_patiently(ctl, paths) : ask_all(ctl, paths);
        if (!now)
            break;
        seconds = now_s() - then;
        then += seconds;
        if (once)
            show_rates(ctl, now, before, seconds, show);
        else
            show_frame(ctl, now, before, seconds, show);
        json_decref(before);
        before = now;
        if (fflush(ctl->screen.out) != 0 || once)
            break;
    }
    json_decref(before);
    return now ? HB_EXIT_OK : HB_EXIT_FAILED;
}
