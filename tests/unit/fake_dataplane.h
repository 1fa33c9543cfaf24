/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fake_dataplane.h: the dataplane's end of the socket, played by a test step by step.
 *
 * A test is a script: it accepts, reads what control sent and answers as it likes, well or badly.
 * While it waits for control it turns control's event loop, so everything runs in one thread and in
 * one order. Every wait has a deadline and fails the test when that passes.
 */
#ifndef HB_TEST_FAKE_DATAPLANE_H
#define HB_TEST_FAKE_DATAPLANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "halbach/counters.h"
#include "halbach/generation.h"
#include "halbach/protocol.h"

struct event_base;

#define FAKE_INSTANCE UINT64_C(0x1122334455667788)

struct fake_dataplane {
    struct event_base *base;
    char directory[32];
    char path[64];
    int listener;                        /* -1: not listening */
    int connection;                      /* -1: none */
    int counters_fd;                     /* a good region: 2 workers, 4 services, 8 backends */
    struct hb_counters_header *counters; /* the same, writable */
    size_t counters_size;
    int received_fd; /* that came with the last message, or -1 */
    union {
        struct hb_message_header header;
        struct hb_hello hello;
        struct hb_publish publish;
        struct hb_lookup lookup;
        struct hb_settle settle;
        uint8_t bytes[HB_MESSAGE_MAX];
    } message; /* the last one */
};

void fake_open(struct fake_dataplane *fake, struct event_base *base);
void fake_close(struct fake_dataplane *fake);
void fake_listen(struct fake_dataplane *fake);
void fake_stop_listening(struct fake_dataplane *fake);

/* Turns the loop once and waits a moment for something to do. */
void fake_turn(struct fake_dataplane *fake);
/* Turns it until *flag reaches `wanted`. */
void fake_wait(struct fake_dataplane *fake, const unsigned *flag, unsigned wanted);

void fake_accept(struct fake_dataplane *fake);
void fake_hang_up(struct fake_dataplane *fake);
/* Waits for a message of this type and exactly its size. */
void fake_receive(struct fake_dataplane *fake, uint16_t type);
/* True when control sends nothing in the next turns of the loop. */
bool fake_hears_nothing(struct fake_dataplane *fake);
void fake_send(struct fake_dataplane *fake, const void *message, size_t size, const int *fds,
               unsigned fds_count);

/* A well-formed message in answer to the last received one. */
struct hb_message_header fake_header(const struct fake_dataplane *fake, uint16_t type, size_t size);
struct hb_hello_reply fake_hello_reply(const struct fake_dataplane *fake);
struct hb_publish_reply fake_publish_reply(const struct fake_dataplane *fake, uint32_t reason);
struct hb_refused fake_refused(const struct fake_dataplane *fake, const char *text);

/* Accepts, reads the hello and answers it well. */
void fake_greet(struct fake_dataplane *fake);

/* A memfd of `size` bytes from `data` with these seals. */
int fake_memfd(const void *data, size_t size, int seals);
/* The smallest blob with a good header. */
struct hb_generation_header fake_generation(uint64_t number);

#endif
