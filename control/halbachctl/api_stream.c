/* SPDX-License-Identifier: BSD-3-Clause */
/* An answer that does not end, line by line. */
#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

#include "api_client.h"

#define LINE_MAX_BYTES 65536

struct stream {
    hb_line_taker take;
    void *context;
    struct hb_answer *answer; /* of a refusal */
    CURL *curl;
    char *line;
    size_t size;
    bool stopped; /* by the taker */
};

static bool take_lines(struct stream *stream, const char *data, size_t size)
{
    char *line = realloc(stream->line, stream->size + size + 1);

    if (!line || stream->size + size > LINE_MAX_BYTES)
        return false;
    stream->line = line;
    memcpy(line + stream->size, data, size);
    stream->size += size;
    line[stream->size] = '\0';
    while (stream->size > 0) {
        const char *end = memchr(line, '\n', stream->size);
        size_t length = end ? (size_t)(end - line) : 0;

        if (!end)
            return true;
        if (length > 0 && !stream->take(stream->context, line, length)) {
            stream->stopped = true;
            return false;
        }
        stream->size -= length + 1;
        memmove(line, end + 1, stream->size + 1);
    }
    return true;
}

static size_t on_data(char *data, size_t unit, size_t count, void *context)
{
    struct stream *stream = context;
    size_t size = unit * count;
    long status = 0;

    curl_easy_getinfo(stream->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status < 400)
        return take_lines(stream, data, size) ? size : 0;
    return hb_answer_append(stream->answer, data, size) ? size : 0;
}

int hb_api_stream(const char *socket_path, const char *path, hb_line_taker take, void *context,
                  struct hb_answer *answer)
{
    struct stream stream = {.take = take, .context = context, .answer = answer};
    char detail[CURL_ERROR_SIZE] = "";
    CURLcode code;

    memset(answer, 0, sizeof(*answer));
    stream.curl = hb_api_open(socket_path, path, detail);
    if (!stream.curl) {
        snprintf(answer->error, sizeof(answer->error), "out of memory");
        return -1;
    }
    curl_easy_setopt(stream.curl, CURLOPT_TIMEOUT_MS, 0L);
    curl_easy_setopt(stream.curl, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(stream.curl, CURLOPT_WRITEDATA, &stream);
    code = curl_easy_perform(stream.curl);
    curl_easy_getinfo(stream.curl, CURLINFO_RESPONSE_CODE, &answer->status);
    curl_easy_cleanup(stream.curl);
    free(stream.line);
    if (stream.stopped)
        return 0;
    if (code == CURLE_OK && answer->status < 400)
        snprintf(answer->error, sizeof(answer->error),
                 "halbach-control has ended the stream; is it being restarted?");
    else
        hb_api_judge(socket_path, path, code, *detail ? detail : curl_easy_strerror(code), answer);
    return -1;
}
