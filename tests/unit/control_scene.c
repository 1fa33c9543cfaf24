/* SPDX-License-Identifier: BSD-3-Clause */
#include "control_scene.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

const char good_config[] =
    "seed: 0123456789abcdef0123456789abcdef\n"
    "tunnel: { source: 203.0.113.10 }\n"
    "pools:\n"
    "  - name: web\n"
    "    table_size: 251\n"
    "    health: { type: none }\n"
    "    backends:\n"
    "      - { name: one, address: 198.51.100.1 }\n"
    "      - { name: two, address: 198.51.100.2 }\n"
    "services:\n"
    "  - { name: www, vip: 192.0.2.10, protocol: tcp, port: 80, pool: web }\n";

/* --- the stage --- */

void write_config(struct scene *scene, const char *text, size_t size)
{
    FILE *file = fopen(scene->config, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    fclose(file);
}

void open_control(struct scene *scene)
{
    const struct hb_control_options options = {.config = scene->config,
                                               .dataplane = scene->fake.path,
                                               .socket = scene->socket,
                                               .state = scene->state};

    scene->control = hb_control_open(&options);
    assert_non_null(scene->control);
    scene->fake.base = scene->control->base;
}

void close_control(struct scene *scene)
{
    hb_control_close(scene->control);
    scene->control = NULL;
    fake_hang_up(&scene->fake);
}

int set_stage(void **state)
{
    struct scene *scene = calloc(1, sizeof(*scene));

    fake_open(&scene->fake, NULL);
    snprintf(scene->config, sizeof(scene->config), "%s/config.yaml", scene->fake.directory);
    snprintf(scene->state, sizeof(scene->state), "%s/state", scene->fake.directory);
    snprintf(scene->socket, sizeof(scene->socket), "%s/api", scene->fake.directory);
    snprintf(scene->lock, sizeof(scene->lock), "%s.lock", scene->socket);
    write_config(scene, good_config, strlen(good_config));
    scene->generation_fd = scene->http = -1;
    open_control(scene);
    *state = scene;
    return 0;
}

/* Beside the state file. */
static void remove_folder(const struct scene *scene, const char *name)
{
    char folder[112], file[400];
    const struct dirent *entry;
    DIR *list;

    snprintf(folder, sizeof(folder), "%s.%s", scene->state, name);
    list = opendir(folder);
    while (list != NULL && (entry = readdir(list)) != NULL) {
        snprintf(file, sizeof(file), "%s/%s", folder, entry->d_name);
        unlink(file);
    }
    if (list != NULL)
        closedir(list);
    rmdir(folder);
}

int clear_stage(void **state)
{
    struct scene *scene = *state;
    char history[112];

    if (scene->control != NULL)
        close_control(scene);
    if (scene->generation_fd >= 0)
        close(scene->generation_fd);
    unlink(scene->config);
    unlink(scene->state);
    remove_folder(scene, "slots");
    remove_folder(scene, "configs");
    snprintf(history, sizeof(history), "%s.history", scene->state);
    unlink(history);
    unlink(scene->lock);
    fake_close(&scene->fake);
    free(scene);
    return 0;
}

void resolve_hops(struct scene *scene)
{
    struct hb_model_pool *pool = hb_model_pool(scene->control->model, "web");

    for (uint32_t b = 0; b < pool->backends_count; b++) {
        pool->backends[b]->hop = resolved_hop();
        pool->backends[b]->hop.ifindex = 0; /* as the fake's port has it */
    }
    hb_control_publish(scene->control);
}

void expect_publish(struct scene *scene)
{
    fake_receive(&scene->fake, HB_MSG_PUBLISH);
    if (scene->generation_fd >= 0)
        close(scene->generation_fd);
    scene->generation_fd = dup(scene->fake.received_fd);
    assert_int_equal(pread(scene->generation_fd, &scene->generation, sizeof(scene->generation), 0),
                     sizeof(scene->generation));
    assert_int_equal(scene->generation.number, scene->fake.message.publish.number);
}

void answer_publish(struct scene *scene, enum hb_reject reason)
{
    struct hb_publish_reply reply = fake_publish_reply(&scene->fake, reason);

    fake_send(&scene->fake, &reply, sizeof(reply), NULL, 0);
}

void wait_until_serving(struct scene *scene, uint64_t number)
{
    for (int i = 0; i < 5000 && scene->control->publication.serving != number; i++)
        fake_turn(&scene->fake);
    assert_int_equal(scene->control->publication.serving, number);
}

void start_serving(struct scene *scene)
{
    fake_greet(&scene->fake);
    expect_publish(scene);
    answer_publish(scene, HB_REJECT_NONE);
    wait_until_serving(scene, 1);
    resolve_hops(scene);
    expect_publish(scene);
    answer_publish(scene, HB_REJECT_NONE);
    wait_until_serving(scene, 2);
    assert_int_equal(scene->generation.tables.count, 1);
}

/* --- the operator --- */

/* What the socket does not take at once waits for turns of the loop. */
static void send_all(struct scene *scene, const char *text, size_t size)
{
    for (int i = 0; i < 10000 && size > 0; i++) {
        ssize_t sent = send(scene->http, text, size, MSG_NOSIGNAL);

        if (sent > 0) {
            text += sent;
            size -= (size_t)sent;
        } else {
            fake_turn(&scene->fake);
        }
    }
    assert_int_equal(size, 0);
}

void ask_with_body(struct scene *scene, const char *method, const char *path, const char *body)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char head[512];

    strcpy(address.sun_path, scene->socket);
    scene->http = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    assert_int_equal(connect(scene->http, (struct sockaddr *)&address, sizeof(address)), 0);
    snprintf(head, sizeof(head),
             "%s %s HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n",
             method, path, strlen(body));
    send_all(scene, head, strlen(head));
    send_all(scene, body, strlen(body));
}

void ask(struct scene *scene, const char *method, const char *path)
{
    ask_with_body(scene, method, path, "");
}

bool hears_nothing(struct scene *scene)
{
    char byte;

    for (int i = 0; i < 20; i++)
        fake_turn(&scene->fake);
    return recv(scene->http, &byte, 1, MSG_PEEK) < 0 && errno == EAGAIN;
}

const char *hear_text(struct scene *scene, int *status)
{
    static char answer[65536];
    size_t size = 0;
    char *body;

    for (int i = 0; i < 10000; i++) {
        ssize_t got = recv(scene->http, answer + size, sizeof(answer) - 1 - size, 0);

        if (got == 0)
            break;
        if (got > 0)
            size += (size_t)got;
        else
            fake_turn(&scene->fake);
    }
    close(scene->http);
    answer[size] = '\0';
    body = strstr(answer, "\r\n\r\n");
    assert_non_null(body);
    assert_int_equal(sscanf(answer, "HTTP/1.1 %d", status), 1);
    return body + 4;
}

json_t *hear(struct scene *scene, int *status)
{
    json_t *json = json_loads(hear_text(scene, status), 0, NULL);

    assert_non_null(json);
    return json;
}

json_t *request_with_body(struct scene *scene, const char *method, const char *path,
                          const char *body, int expected)
{
    int status;
    json_t *json;

    ask_with_body(scene, method, path, body);
    json = hear(scene, &status);
    assert_int_equal(status, expected);
    return json;
}

json_t *request(struct scene *scene, const char *method, const char *path, int expected)
{
    return request_with_body(scene, method, path, "", expected);
}

json_int_t number_at(json_t *json, const char *object, const char *member)
{
    return json_integer_value(json_object_get(json_object_get(json, object), member));
}
