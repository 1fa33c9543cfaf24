/* SPDX-License-Identifier: BSD-3-Clause */
#include "state_file.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "whole_file.h"

#define FORMAT  "halbach-state"
#define VERSION 1

static const char *const health_names[] = {
    [HB_BACKEND_UNKNOWN] = "unknown",
    [HB_BACKEND_UP] = "up",
    [HB_BACKEND_FAILED] = "down",
};

static const char *protocol_name(uint8_t protocol)
{
    return protocol == HB_PROTOCOL_TCP ? "tcp" : protocol == HB_PROTOCOL_UDP ? "udp" : "sctp";
}

/* --- writing --- */

/* The text is written as it is, without a tree of objects: with 10,000 backends that would hold the
 * event loop up for tens of milliseconds. */

/* A string of JSON. Names come from files of others. */
static void print_string(FILE *to, const char *text)
{
    fputc('"', to);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            fprintf(to, "\\%c", *text);
        else if ((unsigned char)*text < ' ')
            fprintf(to, "\\u%04x", (unsigned char)*text);
        else
            fputc(*text, to);
    }
    fputc('"', to);
}

static const char *boolean(bool value)
{
    return value ? "true" : "false";
}

static void print_drain(FILE *to, const struct hb_state_backend *backend)
{
    const struct hb_drain *drain = &backend->drain;

    fprintf(to,
            ", \"draining_since_unix\": %" PRIu64 ",\n   \"drain\": {\"deadline_unix_ms\": %" PRIu64
            ", \"at_deadline\": \"%s\", \"flows_at_start\": %" PRIu64 ", \"forced\": %" PRIu64
            ", \"overdue\": %s, \"disabled\": %s, \"reset\": %s}",
            backend->drain_since_unix, drain->deadline_unix_ms,
            hb_at_deadline_name(drain->at_deadline), drain->flows_at_start, drain->forced,
            boolean(drain->overdue), boolean(backend->disabled), boolean(backend->reset));
}

static void print_backend(FILE *to, const struct hb_state_backend *backend)
{
    char address[HB_ADDRESS_TEXT];

    fprintf(to, "  {\"id\": %u, \"incarnation\": %u", backend->id, backend->incarnation);
    if (backend->pool[0] != '\0') {
        fputs(", \"pool\": ", to);
        print_string(to, backend->pool);
        fprintf(to, ", \"address\": \"%s\", \"health\": \"%s\", \"health_since_unix\": %" PRIu64,
                hb_address_print(&backend->address, address), health_names[backend->health],
                backend->health_since_unix);
        if (backend->draining)
            print_drain(to, backend);
        if (backend->in_panic)
            fputs(", \"in_panic\": true", to);
        if (backend->weight_is_set)
            fprintf(to, ", \"weight\": %u", backend->weight);
        if (backend->ramp_since_unix_ms != 0)
            fprintf(to, ", \"ramp_since_unix_ms\": %" PRIu64, backend->ramp_since_unix_ms);
        if (backend->penalty > 0)
            fprintf(to,
                    ", \"damping\": {\"penalty\": %.4f, \"unix_ms\": %" PRIu64 ", \"held\": %s}",
                    backend->penalty, backend->penalty_unix_ms, boolean(backend->held));
    }
    fputc('}', to);
}

static void print_service(FILE *to, const struct hb_state_service *service)
{
    char vip[HB_ADDRESS_TEXT];

    fprintf(to, "  {\"id\": %u, \"incarnation\": %u", service->id, service->incarnation);
    if (service->vip.family != 0)
        fprintf(to, ", \"vip\": \"%s\", \"protocol\": \"%s\", \"port\": %u",
                hb_address_print(&service->vip, vip), protocol_name(service->protocol),
                service->port);
    if (service->vip.family != 0 && service->prefix_length != hb_address_bits(service->vip.family))
        fprintf(to, ", \"prefix_length\": %u", service->prefix_length);
    if (service->vip.family != 0 && service->port_last != service->port)
        fprintf(to, ", \"port_last\": %u", service->port_last);
    fputc('}', to);
}

/* NULL when memory is short: nothing incomplete may replace a whole file. */
static char *state_to_text(const struct hb_state *state)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);

    if (to == NULL)
        return NULL;
    fprintf(to, "{\n \"format\": \"%s\",\n \"version\": %d,\n \"generation\": %" PRIu64, FORMAT,
            VERSION, state->generation);
    if (state->withdrawn)
        fprintf(to, ",\n \"withdrawn_since_unix\": %" PRIu64, state->withdrawn_since_unix);
    fputs(",\n \"backends\": [", to);
    for (uint32_t b = 0; b < state->backends_count; b++) {
        fputs(b > 0 ? ",\n" : "\n", to);
        print_backend(to, &state->backends[b]);
    }
    fputs("],\n \"services\": [", to);
    for (uint32_t s = 0; s < state->services_count; s++) {
        fputs(s > 0 ? ",\n" : "\n", to);
        print_service(to, &state->services[s]);
    }
    fputs("]\n}", to);
    if (fclose(to) == 0)
        return text;
    free(text);
    return NULL;
}

int hb_state_save(const char *path, const struct hb_state *state)
{
    char *text = state_to_text(state);
    int error;

    if (text == NULL)
        return -ENOMEM;
    error = hb_whole_file_replace(path, text, strlen(text));
    free(text);
    return error;
}

/* --- reading --- */

static bool read_number(const json_t *object, const char *name, uint64_t max, uint64_t *number)
{
    const json_t *value = json_object_get(object, name);

    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        (uint64_t)json_integer_value(value) > max)
        return false;
    *number = (uint64_t)json_integer_value(value);
    return true;
}

static bool read_address(const json_t *object, const char *name, struct hb_address *address)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text != NULL && hb_address_parse(text, address);
}

static bool read_health(const json_t *object, enum hb_backend_health *health)
{
    const char *text = json_string_value(json_object_get(object, "health"));

    for (unsigned i = 0; text != NULL && i < sizeof(health_names) / sizeof(*health_names); i++) {
        if (strcmp(text, health_names[i]) != 0)
            continue;
        *health = (enum hb_backend_health)i;
        return true;
    }
    return false;
}

/* What an older control wrote has no details. */
static bool read_drain(const json_t *object, struct hb_state_backend *backend)
{
    const json_t *drain = json_object_get(object, "drain");
    const char *at_deadline = json_string_value(json_object_get(drain, "at_deadline"));
    struct hb_drain *to = &backend->drain;

    if (drain == NULL)
        return true;
    if (at_deadline == NULL || !hb_at_deadline_parse(at_deadline, &to->at_deadline) ||
        !read_number(drain, "deadline_unix_ms", INT64_MAX, &to->deadline_unix_ms) ||
        !read_number(drain, "flows_at_start", INT64_MAX, &to->flows_at_start) ||
        !read_number(drain, "forced", INT64_MAX, &to->forced))
        return false;
    to->overdue = json_is_true(json_object_get(drain, "overdue"));
    backend->disabled = json_is_true(json_object_get(drain, "disabled"));
    backend->reset = json_is_true(json_object_get(drain, "reset"));
    return true;
}

/* May be missing. */
static bool read_damping(const json_t *object, struct hb_state_backend *backend)
{
    const json_t *damping = json_object_get(object, "damping");
    const json_t *penalty = json_object_get(damping, "penalty");

    if (damping == NULL)
        return true;
    backend->penalty = json_number_value(penalty);
    backend->held = json_is_true(json_object_get(damping, "held"));
    return json_is_number(penalty) && backend->penalty >= 0 &&
           read_number(damping, "unix_ms", INT64_MAX, &backend->penalty_unix_ms);
}

/* An operator's weight and a slow start: both may be missing. */
static bool read_share(const json_t *object, struct hb_state_backend *backend)
{
    uint64_t weight = 0;

    backend->in_panic = json_is_true(json_object_get(object, "in_panic"));
    backend->weight_is_set = json_object_get(object, "weight") != NULL;
    if (backend->weight_is_set && !read_number(object, "weight", UINT16_MAX, &weight))
        return false;
    backend->weight = (uint32_t)weight;
    return json_object_get(object, "ramp_since_unix_ms") == NULL ||
           read_number(object, "ramp_since_unix_ms", INT64_MAX, &backend->ramp_since_unix_ms);
}

static bool read_backend(const json_t *object, struct hb_state_backend *backend)
{
    const char *pool = json_string_value(json_object_get(object, "pool"));
    uint64_t id, incarnation;

    if (!read_number(object, "id", HB_BACKENDS_MAX, &id) || id == HB_BACKEND_NONE ||
        !read_number(object, "incarnation", UINT32_MAX, &incarnation))
        return false;
    backend->id = (uint32_t)id;
    backend->incarnation = (uint32_t)incarnation;
    if (json_object_get(object, "pool") == NULL)
        return true;
    if (pool == NULL || pool[0] == '\0' || strlen(pool) >= sizeof(backend->pool))
        return false;
    snprintf(backend->pool, sizeof(backend->pool), "%s", pool);
    if (json_object_get(object, "draining_since_unix") != NULL) {
        backend->draining = true;
        if (!read_number(object, "draining_since_unix", INT64_MAX, &backend->drain_since_unix) ||
            !read_drain(object, backend))
            return false;
    }
    if (!read_share(object, backend) || !read_damping(object, backend))
        return false;
    return read_address(object, "address", &backend->address) &&
           read_health(object, &backend->health) &&
           read_number(object, "health_since_unix", INT64_MAX, &backend->health_since_unix);
}

static bool read_protocol(const json_t *object, uint8_t *protocol)
{
    static const uint8_t protocols[] = {HB_PROTOCOL_TCP, HB_PROTOCOL_UDP, HB_PROTOCOL_SCTP};
    const char *text = json_string_value(json_object_get(object, "protocol"));

    for (size_t i = 0; text != NULL && i < sizeof(protocols); i++) {
        *protocol = protocols[i];
        if (strcmp(text, protocol_name(*protocol)) == 0)
            return true;
    }
    return false;
}

/* A member that may be missing: then *number stays as it is. */
static bool read_if_there(const json_t *object, const char *name, uint64_t max, uint64_t *number)
{
    return json_object_get(object, name) == NULL || read_number(object, name, max, number);
}

static bool read_service(const json_t *object, struct hb_state_service *service)
{
    uint64_t id, incarnation, port, port_last, prefix_length;

    if (!read_number(object, "id", HB_SERVICES_MAX - 1, &id) ||
        !read_number(object, "incarnation", UINT32_MAX, &incarnation))
        return false;
    service->id = (uint32_t)id;
    service->incarnation = (uint32_t)incarnation;
    if (json_object_get(object, "vip") == NULL)
        return true;
    if (!read_protocol(object, &service->protocol) ||
        !read_number(object, "port", UINT16_MAX, &port) ||
        !read_address(object, "vip", &service->vip))
        return false;
    port_last = port;
    prefix_length = hb_address_bits(service->vip.family);
    if (!read_if_there(object, "port_last", UINT16_MAX, &port_last) ||
        !read_if_there(object, "prefix_length", prefix_length, &prefix_length))
        return false;
    service->port = (uint16_t)port;
    service->port_last = (uint16_t)port_last;
    service->prefix_length = (uint8_t)prefix_length;
    return true;
}

static int compare_ids(const void *a, const void *b)
{
    uint32_t left = ((const struct hb_state_backend *)a)->id;
    uint32_t right = ((const struct hb_state_backend *)b)->id;

    return (left > right) - (left < right);
}

/* Returns what is wrong with it, or NULL. */
static const char *read_state(const json_t *root, struct hb_state *state)
{
    const json_t *backends = json_object_get(root, "backends");
    const json_t *services = json_object_get(root, "services");
    const char *format = json_string_value(json_object_get(root, "format"));
    uint64_t version;

    if (format == NULL || strcmp(format, FORMAT) != 0)
        return "it is not a state file of halbach-control";
    if (!read_number(root, "version", UINT32_MAX, &version) || version != VERSION)
        return "it is of another version";
    if (!read_number(root, "generation", INT64_MAX, &state->generation) ||
        !json_is_array(backends) || !json_is_array(services))
        return "a member is missing or of the wrong type";
    state->withdrawn = json_object_get(root, "withdrawn_since_unix") != NULL;
    if (state->withdrawn &&
        !read_number(root, "withdrawn_since_unix", INT64_MAX, &state->withdrawn_since_unix))
        return "withdrawn_since_unix is not a number";
    state->backends = calloc(json_array_size(backends) + 1, sizeof(*state->backends));
    state->services = calloc(json_array_size(services) + 1, sizeof(*state->services));
    if (state->backends == NULL || state->services == NULL)
        return "there is not enough memory for it";
    for (size_t b = 0; b < json_array_size(backends); b++) {
        if (!read_backend(json_array_get(backends, b), &state->backends[state->backends_count++]))
            return "a backend's entry is damaged";
    }
    for (size_t s = 0; s < json_array_size(services); s++) {
        if (!read_service(json_array_get(services, s), &state->services[state->services_count++]))
            return "a service's entry is damaged";
    }
    qsort(state->backends, state->backends_count, sizeof(*state->backends), compare_ids);
    return NULL;
}

int hb_state_load(const char *path, struct hb_state *state)
{
    json_error_t error;
    const char *wrong;
    json_t *root;
    FILE *file;

    memset(state, 0, sizeof(*state));
    file = fopen(path, "re");
    if (file == NULL && errno == ENOENT)
        return -ENOENT;
    if (file == NULL) {
        int code = errno;

        hb_log(HB_LOG_ERROR,
               "%s: cannot be read: %s; check its owner and mode, or name another "
               "file with --state",
               path, strerror(code));
        return -code;
    }
    root = json_loadf(file, JSON_REJECT_DUPLICATES, &error);
    fclose(file);
    wrong = root ? read_state(root, state) : "it is torn or not JSON";
    json_decref(root);
    if (wrong == NULL)
        return 0;
    hb_state_clear(state);
    hb_whole_file_set_aside(
        path, wrong, "control starts without it (drains, weights and maintenance are forgotten)");
    return -EBADMSG;
}

void hb_state_clear(struct hb_state *state)
{
    free(state->backends);
    free(state->services);
    memset(state, 0, sizeof(*state));
}
