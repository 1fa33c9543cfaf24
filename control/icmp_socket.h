/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * icmp_socket.h: the ICMP errors that are sent to this machine.
 *
 * Whatever way packets take to the dataplane, what is for an address of the machine itself is the
 * kernel's, so errors about tunnel packets arrive there. Two raw sockets, one a family, hear them
 * beside the kernel, which goes on to use them as if nobody listened. Runs on control's event loop;
 * no more than some thousand messages a second are read, and the rest of a flood is the kernel's to
 * throw away.
 */
#ifndef HB_CONTROL_ICMP_SOCKET_H
#define HB_CONTROL_ICMP_SOCKET_H

#include <stddef.h>
#include <stdint.h>

/* Read at a time; then a rest. */
#define HB_ICMP_READS_MAX 32

struct event_base;
struct hb_icmp_socket;

/* `message`: from the ICMP type on, of `family` (enum hb_family). */
typedef void (*hb_icmp_heard)(void *context, uint8_t family, const uint8_t *message, size_t size);

/* NULL with errno on failure: EPERM without CAP_NET_RAW. */
struct hb_icmp_socket *hb_icmp_socket_open(struct event_base *base, uint8_t family,
                                           hb_icmp_heard heard, void *context);
void hb_icmp_socket_close(struct hb_icmp_socket *icmp); /* NULL is fine */

#endif
