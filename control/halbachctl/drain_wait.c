/* SPDX-License-Identifier: BSD-3-Clause */
#include "drain_wait.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "api_client.h"
#include "format.h"
#include "json.h"

#define LOOK_EVERY_MS 500
#define PATIENCE_S    30 /* without an answer of control: it may be restarting */
#define BAR_SIZE      30
#define BAR_LEAST     5 /* a shorter one tells nothing */
#define LINE_SIZE     (HB_DRAIN_LINE / 3)

struct wait {
    const struct hb_ctl *ctl;
    const char *name;
    FILE *to;
    bool bar;       /* on a terminal ... */
    unsigned width; /* ... of so many columns; 0: not known */
    uint64_t most;  /* flows at the beginning, or the most seen */
    uint64_t told;  /* the last number in a plain line */
    bool told_any;
    bool told_blind; /* that the dataplane cannot be seen */
    time_t started, heard;
};

/* A signal handler can reach nothing else. */
static volatile sig_atomic_t interrupted;

static void on_signal(int signal)
{
    (void)signal;
    interrupted = 1;
}

static time_t now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static void view_drain(struct hb_drain_view *view, const json_t *backend)
{
    uint64_t estimate = UINT64_MAX, deadline = UINT64_MAX;

    view->drained += hb_json_has(backend, "drain") ? hb_json_flag(backend, "drain.drained")
                                                   : hb_json_count(backend, "flows") == 0;
    view->disabled += strcmp(hb_json_text(backend, "state"), "disabled") == 0;
    view->forced += hb_json_count(backend, "drain.forced");
    view->remembered += hb_json_count(backend, "drain.remembered_slots");
    if (hb_json_has(backend, "drain.estimate_s"))
        estimate = hb_json_count(backend, "drain.estimate_s");
    if (hb_json_has(backend, "drain.deadline_s") && !hb_json_flag(backend, "drain.drained"))
        deadline = hb_json_count(backend, "drain.deadline_s");
    /* The last one to end counts, and one of which nobody can tell. */
    if (view->estimate_s < estimate)
        view->estimate_s = estimate;
    if (view->deadline_s > deadline)
        view->deadline_s = deadline;
}

struct hb_drain_view hb_drain_view(const json_t *backends, const json_t *status, const char *name,
                                   const char *pool)
{
    struct hb_drain_view view = {.deadline_s = UINT64_MAX};
    const json_t *backend;
    size_t i;

    view.trusted =
        hb_json_flag(status, "dataplane.connected") && hb_json_flag(status, "generation.in_sync");
    json_array_foreach (hb_json_at(backends, "backends"), i, backend) {
        if (strcmp(hb_json_text(backend, "name"), name) != 0 ||
            (pool && strcmp(hb_json_text(backend, "pool"), pool) != 0))
            continue;
        view.members++;
        view.draining += hb_json_flag(backend, "draining");
        view.flows += hb_json_count(backend, "flows");
        view_drain(&view, backend);
    }
    return view;
}

/* Returns true when both answers are there. */
static bool look(const struct wait *wait, struct hb_drain_view *view, struct hb_answer *failure)
{
    struct hb_answer backends, status = {0};
    const char *socket_path = wait->ctl->socket_path;
    bool good = hb_api_request(socket_path, false, "/v1/backends", &backends) == 0;

    /* The state of the dataplane second: it must hold for the flows just read. */
    if (good)
        good = hb_api_request(socket_path, false, "/v1/status", &status) == 0;
    if (good)
        *view = hb_drain_view(backends.json, status.json, wait->name, wait->ctl->pool);
    else
        *failure = *backends.error ? backends : status;
    if (good || failure->json != backends.json)
        hb_answer_free(&backends);
    if (good || failure->json != status.json)
        hb_answer_free(&status);
    return good;
}

/* ", about 40s more, deadline in 5m", as far as it is known. */
static const char *outlook_of(const struct hb_drain_view *view, char text[LINE_SIZE])
{
    struct hb_text time;
    int at = 0;

    text[0] = '\0';
    if (view->flows > 0 && view->estimate_s != UINT64_MAX && view->estimate_s != 0)
        at = snprintf(text, LINE_SIZE, ", about %s more",
                      hb_format_duration(&time, view->estimate_s));
    if (view->deadline_s != UINT64_MAX)
        at += snprintf(text + at, LINE_SIZE - (size_t)at, ", deadline in %s",
                       hb_format_duration(&time, view->deadline_s));
    if (view->flows == 0 && view->remembered > 0)
        snprintf(text + at, LINE_SIZE - (size_t)at,
                 ", %" PRIu64 " slots may still lead untracked connections there",
                 view->remembered);
    return text;
}

void hb_drain_bar(char line[HB_DRAIN_LINE], const struct hb_drain_view *view, uint64_t most,
                  uint64_t seconds, unsigned width)
{
    char bar[BAR_SIZE + 1], outlook[LINE_SIZE], words[LINE_SIZE];
    int room = BAR_SIZE, done;
    struct hb_text time;

    snprintf(words, sizeof(words), "%" PRIu64 " of %" PRIu64 " flow%s left, %s", view->flows, most,
             hb_plural(most), hb_format_duration(&time, seconds));
    outlook_of(view, outlook);
    /* A line that is wider than the terminal could not be written over: the bar gives way. The last
     * column stays free, since some terminals begin a new line behind it. */
    if (width > 0)
        room = (int)width - 4 - (int)strlen(words) - (int)strlen(outlook);
    room = room > BAR_SIZE ? BAR_SIZE : room < BAR_LEAST ? 0 : room;
    done = most > 0 ? (int)((double)(most - view->flows) * room / (double)most) : room;
    memset(bar, '.', (size_t)room);
    memset(bar, '#', (size_t)done);
    bar[room] = '\0';
    snprintf(line, HB_DRAIN_LINE, "%s%s%s%s%s", room > 0 ? "[" : "", bar, room > 0 ? "] " : "",
             words, outlook);
    if (width > 0 && width <= HB_DRAIN_LINE && strlen(line) >= width)
        line[width - 1] = '\0';
}

static void show_bar(struct wait *wait, const struct hb_drain_view *view)
{
    char line[HB_DRAIN_LINE];

    hb_drain_bar(line, view, wait->most, (uint64_t)(now_s() - wait->started), wait->width);
    fprintf(wait->to, "\r\033[K%s", line);
    fflush(wait->to);
}

static void show_line(struct wait *wait, const struct hb_drain_view *view)
{
    uint64_t flows = view->flows;
    char outlook[LINE_SIZE];

    if (wait->told_any && wait->told == flows)
        return;
    fprintf(wait->to, "%s: %" PRIu64 " flow%s left%s\n", wait->name, flows, hb_plural(flows),
            outlook_of(view, outlook));
    fflush(wait->to);
    wait->told = flows;
    wait->told_any = true;
}

static void show_blindness(struct wait *wait)
{
    if (wait->told_blind)
        return;
    fprintf(wait->to, "%swaiting for the dataplane: it is not connected or not in sync\n",
            wait->bar ? "\r\033[K" : "");
    fflush(wait->to);
    wait->told_blind = true;
}

static int __attribute__((format(printf, 2, 3)))
end_wait(struct wait *wait, const char *format, ...)
{
    va_list arguments;

    if (wait->bar)
        fputc('\n', wait->to);
    fflush(wait->to);
    fprintf(wait->ctl->err, "halbachctl: ");
    va_start(arguments, format);
    vfprintf(wait->ctl->err, format, arguments);
    va_end(arguments);
    fputc('\n', wait->ctl->err);
    return HB_EXIT_FAILED;
}

/* Returns the exit status, or -1 to go on. */
static int judge(struct wait *wait, const struct hb_drain_view *view)
{
    struct hb_text text;

    if (view->members == 0)
        return end_wait(wait, "%s is no longer configured", wait->name);
    if (view->draining < view->members)
        return end_wait(wait, "%s is no longer draining: somebody has taken it back", wait->name);
    if (!view->trusted) {
        show_blindness(wait);
        return -1;
    }
    wait->told_blind = false;
    if (view->flows > wait->most)
        wait->most = view->flows;
    if (wait->bar)
        show_bar(wait, view);
    else
        show_line(wait, view);
    if (view->drained < view->members)
        return -1;
    hb_format_duration(&text, (uint64_t)(now_s() - wait->started));
    if (view->disabled > 0)
        fprintf(
            wait->to,
            "%s%s is drained: its deadline has passed after %s, %" PRIu64 " flow%s did not stay\n",
            wait->bar ? "\n" : "", wait->name, text.text, view->forced, hb_plural(view->forced));
    else
        fprintf(wait->to, "%s%s is drained: no flow is left after %s\n", wait->bar ? "\n" : "",
                wait->name, text.text);
    return HB_EXIT_OK;
}

static int wait_loop(struct wait *wait)
{
    const struct timespec pause = {.tv_nsec = LOOK_EVERY_MS * 1000000L};

    for (;;) {
        struct hb_answer failure = {0};
        struct hb_drain_view view;
        int result = -1;

        if (!interrupted && look(wait, &view, &failure)) {
            wait->heard = now_s();
            result = judge(wait, &view);
        } else if (!interrupted && now_s() - wait->heard > PATIENCE_S) {
            result = end_wait(wait, "gave up waiting, the drain stays in place: %s", failure.error);
        }
        hb_answer_free(&failure);
        if (result >= 0)
            return result;
        if (interrupted || (nanosleep(&pause, NULL) != 0 && interrupted))
            return end_wait(
                wait, "stopped waiting; %s goes on draining. 'halbachctl undrain %s' takes it back",
                wait->name, wait->name);
    }
}

int hb_drain_wait(const struct hb_ctl *ctl, const char *name, uint64_t flows)
{
    struct sigaction action = {.sa_handler = on_signal}, old_int, old_term;
    struct wait wait = {
        .ctl = ctl,
        .name = name,
        .to = ctl->json ? ctl->err : ctl->screen.out,
        .width = ctl->screen.width,
        .most = flows,
        .started = now_s(),
        .heard = now_s(),
    };
    int result;

    wait.bar = ctl->json ? ctl->err_is_terminal : isatty(fileno(ctl->screen.out)) == 1;
    interrupted = 0;
    sigaction(SIGINT, &action, &old_int);
    sigaction(SIGTERM, &action, &old_term);
    result = wait_loop(&wait);
    sigaction(SIGINT, &old_int, NULL);
    sigaction(SIGTERM, &old_term, NULL);
    return result;
}
