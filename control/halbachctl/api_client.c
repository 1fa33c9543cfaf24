/* SPDX-License-Identifier: BSD-3-Clause */
#include "api_client.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "json.h"
#include "table.h"

#define TIMEOUT_MS      10000L /* control answers a change after two seconds at the latest */
#define BODY_TIMEOUT_MS 60000L /* a plan builds the tables of all pools that change */
#define BODY_MAX        (64u << 20)

bool hb_answer_append(struct hb_answer *answer, const char *data, size_t size)
{
    char *body;

    if (answer->size + size > BODY_MAX)
        return false;
    body = realloc(answer->body, answer->size + size + 1);
    if (!body)
        return false;
    memcpy(body + answer->size, data, size);
    answer->body = body;
    answer->size += size;
    body[answer->size] = '\0';
    return true;
}

static size_t take_body(char *data, size_t unit, size_t count, void *context)
{
    return hb_answer_append(context, data, unit * count) ? unit * count : 0;
}

/* Why there is nothing at the socket, as an errno; libcurl's own texts do not tell. */
static int probe_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd, error = 0;

    if (strlen(path) >= sizeof(address.sun_path))
        return ENAMETOOLONG;
    memcpy(address.sun_path, path, strlen(path) + 1);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0)
        error = errno;
    close(fd);
    return error;
}

/* What is asked for: `body` NULL for none. */
struct question {
    const char *socket_path, *path;
    bool post;
    const char *body;
    size_t size;
};

static void explain_failure(const struct question *question, CURLcode code, const char *detail,
                            struct hb_answer *answer)
{
    long timeout_ms = question->body ? BODY_TIMEOUT_MS : TIMEOUT_MS;
    const char *socket_path = question->socket_path;
    int error = probe_socket(socket_path);
    const char *remedy = "is halbach-control running? 'systemctl status halbach-control' or "
                         "--socket PATH";

    if (error == EACCES)
        remedy = "run as root or as a member of the socket's group";
    else if (error == EPROTOTYPE || error == ENAMETOOLONG)
        remedy = "name the socket of halbach-control with --socket PATH";
    if (error != 0)
        snprintf(answer->error, sizeof(answer->error), "cannot reach halbach-control at %s: %s; %s",
                 socket_path, strerror(error), remedy);
    else if (code == CURLE_OPERATION_TIMEDOUT)
        snprintf(answer->error, sizeof(answer->error),
                 "halbach-control at %s has not answered for %ld s; is it stopped? "
                 "'systemctl status halbach-control'",
                 socket_path, timeout_ms / 1000);
    else
        snprintf(answer->error, sizeof(answer->error),
                 "no usable answer from %s: %s; is it the "
                 "socket of halbach-control?",
                 socket_path, detail);
}

/* The body as it is: libcurl would call it a form, and ask first whether it may send so much. */
static struct curl_slist *add_body(CURL *curl, const struct question *question)
{
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/yaml"), *more;

    more = curl_slist_append(headers, "Expect:");
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)question->size);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, question->body);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, more ? more : headers);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, BODY_TIMEOUT_MS);
    return more ? more : headers;
}

CURL *hb_api_open(const char *socket_path, const char *path, char *detail)
{
    CURL *curl = curl_easy_init();
    char url[2048];

    if (!curl)
        return NULL;
    snprintf(url, sizeof(url), "http://halbach%s", path);
    curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, socket_path);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "*"); /* http_proxy means other hosts than this one */
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, TIMEOUT_MS);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, detail);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "halbachctl/" HB_VERSION);
    return curl;
}

static CURLcode perform(const struct question *question, char *detail, struct hb_answer *answer)
{
    struct curl_slist *headers = NULL;
    CURL *curl = hb_api_open(question->socket_path, question->path, detail);
    CURLcode code;

    if (!curl)
        return CURLE_OUT_OF_MEMORY;
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
    if (question->body)
        headers = add_body(curl, question);
    else if (question->post)
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, "");
    code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer->status);
    curl_easy_cleanup(curl);
    curl_slist_free_all(headers);
    return code;
}

static int judge(const struct question *question, CURLcode code, const char *detail,
                 struct hb_answer *answer)
{
    char why[512];

    if (code != CURLE_OK) {
        explain_failure(question, code, detail, answer);
        return -1;
    }
    answer->json = hb_json_parse(answer->body ? answer->body : "", answer->size, why, sizeof(why));
    if (!json_is_object(answer->json)) {
        snprintf(
            answer->error, sizeof(answer->error),
            "the answer of %s to %s is no JSON object (HTTP status %ld, %s); is it the socket of "
            "halbach-control?",
            question->socket_path, question->path, answer->status,
            answer->json ? "another value" : why);
        return -1;
    }
    if (answer->status >= 400 || hb_json_has(answer->json, "error")) {
        snprintf(answer->error, sizeof(answer->error), "%s",
                 hb_json_has(answer->json, "error.message")
                     ? hb_json_text(answer->json, "error.message")
                     : "halbach-control refused the request without a reason; see its log");
        hb_text_clean(answer->error);
        return -1;
    }
    return 0;
}

int hb_api_judge(const char *socket_path, const char *path, CURLcode code, const char *detail,
                 struct hb_answer *answer)
{
    const struct question question = {.socket_path = socket_path, .path = path};

    return judge(&question, code, detail, answer);
}

static int request(const struct question *question, struct hb_answer *answer)
{
    char detail[CURL_ERROR_SIZE] = "";
    CURLcode code;

    memset(answer, 0, sizeof(*answer));
    code = perform(question, detail, answer);
    return judge(question, code, *detail ? detail : curl_easy_strerror(code), answer);
}

int hb_api_request(const char *socket_path, bool post, const char *path, struct hb_answer *answer)
{
    const struct question question = {.socket_path = socket_path, .path = path, .post = post};

    return request(&question, answer);
}

int hb_api_post(const char *socket_path, const char *path, const char *body, size_t size,
                struct hb_answer *answer)
{
    const struct question question = {
        .socket_path = socket_path, .path = path, .post = true, .body = body, .size = size};

    return request(&question, answer);
}

void hb_answer_report(const struct hb_answer *answer, FILE *to)
{
    const struct hb_screen screen = {.out = to};
    const json_t *complaint;
    size_t i;

    fprintf(to, "halbachctl: %s\n", answer->error);
    json_array_foreach (hb_json_at(answer->json, "error.complaints"), i, complaint) {
        const char *text = json_string_value(complaint);

        hb_print(&screen, HB_PLAIN, "  %s", text ? text : "-");
        fputc('\n', to);
    }
}

void hb_answer_free(struct hb_answer *answer)
{
    free(answer->body);
    json_decref(answer->json);
    memset(answer, 0, sizeof(*answer));
}

bool hb_url_escape(char *to, size_t size, const char *text)
{
    char *escaped = curl_easy_escape(NULL, text, 0);
    bool fits = escaped && strlen(escaped) < size;

    if (fits)
        strcpy(to, escaped);
    curl_free(escaped);
    return fits;
}
