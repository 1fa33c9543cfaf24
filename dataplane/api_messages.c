/* SPDX-License-Identifier: BSD-3-Clause */
/* See api_messages.h. */
#include "api_messages.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The requests that control may send. */
static const struct request {
    uint16_t type;
    uint32_t length;
    const char *name;
} requests[] = {
    {HB_MSG_HELLO, sizeof(struct hb_hello), "HELLO"},
    {HB_MSG_PUBLISH, sizeof(struct hb_publish), "PUBLISH"},
    {HB_MSG_LOOKUP, sizeof(struct hb_lookup), "LOOKUP"},
    {HB_MSG_SETTLE, sizeof(struct hb_settle), "SETTLE"},
    {HB_MSG_FLUSH, sizeof(struct hb_flush), "FLUSH"},
};

static __attribute__((format(printf, 3, 4))) int complain(int error, char *problem,
                                                          const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(problem, HB_TEXT_SIZE, format, arguments);
    va_end(arguments);
    return -error;
}

static const struct request *find_request(uint16_t type)
{
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
        if (requests[i].type == type)
            return &requests[i];
    return NULL;
}

int hb_message_check(const void *packet, size_t size, bool greeted, char *problem)
{
    const struct hb_message_header *header = packet;
    const struct request *request;

    if (size < sizeof(*header) || header->magic != HB_PROTOCOL_MAGIC)
        return complain(EBADMSG, problem, "%zu bytes that are not a message of Halbach's protocol",
                        size);
    /* Before the length: another version may have other lengths. */
    if (header->version != HB_PROTOCOL_VERSION)
        return complain(EPROTONOSUPPORT, problem,
                        "control speaks version %u of the protocol, this dataplane (" HB_VERSION
                        ") speaks version %u; install the same release of both",
                        header->version, HB_PROTOCOL_VERSION);
    request = find_request(header->type);
    if (request == NULL)
        return complain(EBADMSG, problem, "message type %u is no request that a control can make",
                        header->type);
    if (header->length != size || size != request->length)
        return complain(EMSGSIZE, problem, "%s of %zu bytes (its header says %u), must be %u",
                        request->name, size, header->length, request->length);
    if (greeted && header->type == HB_MSG_HELLO)
        return complain(EPROTO, problem, "a second HELLO on one connection");
    if (!greeted && header->type != HB_MSG_HELLO)
        return complain(EPROTO, problem, "%s before HELLO", request->name);
    if (header->type == HB_MSG_HELLO) {
        const struct hb_hello *hello = packet;
        size_t length = strnlen(hello->name, sizeof(hello->name));

        if (length == sizeof(hello->name))
            return complain(EBADMSG, problem, "HELLO with a name that is not terminated");
        for (size_t i = 0; i < length; i++) /* it goes to the log */
            if ((unsigned char)hello->name[i] < 0x20 || hello->name[i] == 0x7f)
                return complain(EBADMSG, problem, "HELLO with control characters in the name");
    }
    return 0;
}

void hb_message_begin(struct hb_message_header *header, enum hb_message_type type, size_t length,
                      uint32_t sequence)
{
    *header = (struct hb_message_header){
        .magic = HB_PROTOCOL_MAGIC,
        .version = HB_PROTOCOL_VERSION,
        .type = (uint16_t)type,
        .length = (uint32_t)length,
        .sequence = sequence,
    };
}
