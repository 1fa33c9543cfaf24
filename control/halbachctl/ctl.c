/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl.h"

#include "api_client.h"

bool hb_ctl_ask(const struct hb_ctl *ctl, bool post, const char *path, struct hb_answer *answer)
{
    if (hb_api_request(ctl->socket_path, post, path, answer) == 0)
        return true;
    hb_answer_report(answer, ctl->err);
    return false;
}

void hb_ctl_print_json(const struct hb_ctl *ctl, const struct hb_answer *answer)
{
    size_t size = answer->size;

    while (size > 0 && (answer->body[size - 1] == '\n' || answer->body[size - 1] == '\r'))
        size--;
    fprintf(ctl->screen.out, "%.*s\n", (int)size, answer->body);
}
