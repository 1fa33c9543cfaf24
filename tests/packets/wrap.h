/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wrap.h: what must leave for a backend, for every forwarding mode, and the rewrites that lead to
 * it. Nothing here is shared with the code under test. No DPDK: the tests of halbach-backend use it
 * too.
 */
#ifndef HB_TEST_WRAP_H
#define HB_TEST_WRAP_H

#include "halbach/generation.h"
#include "packet.h"

/* A mode, and what is free in its headers. */
struct wrap {
    uint8_t forwarding; /* enum hb_forwarding */
    uint8_t family;     /* of the outer header and of the backend's address */
    uint16_t number;    /* of the backend */
    bool checksum;      /* UDP has one */
    uint8_t tags;       /* 1: VLAN 7 */
    uint8_t dscp;       /* of L3DSR */
    uint8_t spread;     /* bits of the outer source */
    uint8_t fragment;   /* HB_REWRITE_FRAGMENT_... or 0 */

    /* By the flow or by the worker; see read_free_fields. */
    uint16_t id;
    uint32_t label;
    uint16_t source_port;
    uint64_t source; /* the spread bits */
};

/* The rewrite of the backend. Returns its size; for L3DSR the address stands behind it. */
uint32_t write_wrap(uint8_t *bytes, const struct wrap *wrap);

/* Bytes that a mode adds to the IP packet. */
uint32_t wrap_overhead(const struct wrap *wrap);

/* The frame for the backend. L3DSR: the layer above has a right checksum, so `in` must have one. */
struct frame wrap_frame(const struct frame *in, const struct wrap *wrap);

/* Takes label, source port and spread bits as they stand in a frame that left. */
void read_free_fields(struct wrap *wrap, const struct frame *out);

/* Gives a frame the right TCP or UDP checksum, computed anew. No extension headers. */
struct frame fix_l4(struct frame frame);

/* The name of a mode, for messages. */
const char *wrap_name(const struct wrap *wrap);

/* The checksum of the layer above as it must be: over the pseudo-header and `length` bytes, the
 * field itself as it stands. 0 when the field is right. */
uint16_t pseudo_checksum(const uint8_t *ip, uint8_t protocol, const uint8_t *bytes,
                         uint32_t length);
/* The same of a pseudo-header alone, for `length` bytes. */
uint16_t pseudo_checksum_of(const uint8_t *ip, uint8_t protocol, uint32_t length);

#endif
