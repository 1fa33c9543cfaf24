/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tunnel.h: probes that go through the tunnel, inside the same headers as the traffic.
 *
 * A probe is an ordinary socket that connects to VIP:port, with a mark (SO_MARK) that names a
 * backend:
 *
 *     socket --mark--> policy rule --> TUN device "halbachN" --> tunnel.bpf.c --> eth0 --> backend
 *
 * A rule sends marked packets to a routing table of our own, whose only routes lead to the device;
 * at its egress the program puts the backend's headers in front and sends the frame out of the
 * interface that leads there. The answer comes straight back, as any client's would. So the
 * machine's own routes for VIPs do not matter, no other interface gets a program, and nothing but
 * marked packets ever comes near. All of it goes with this process, but for the rules, which lead
 * nowhere without the device.
 *
 * Needs CAP_NET_ADMIN and CAP_BPF (or root), /dev/net/tun, and rp_filter that accepts answers with
 * a VIP as their source (docs/health.md). Control's thread.
 */
#ifndef HB_CONTROL_HEALTH_TUNNEL_H
#define HB_CONTROL_HEALTH_TUNNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "address.h"
#include "halbach/generation.h"

struct hb_tunnels;

/* NULL: `problem` (of `size` bytes) says why, and what to do. */
struct hb_tunnels *hb_tunnels_open(char *problem, size_t size);
void hb_tunnels_close(struct hb_tunnels *tunnels); /* NULL is allowed */

/* A number for one backend's tunnel, 1 to 65,535; 0: all are taken. */
uint32_t hb_tunnels_claim(struct hb_tunnels *tunnels);
void hb_tunnels_release(struct hb_tunnels *tunnels, uint32_t number);

/* What goes in front of the number's packets, and where they leave. Cheap when nothing changed.
 * False: `problem` says why. */
bool hb_tunnels_set(struct hb_tunnels *tunnels, uint32_t number, uint32_t ifindex,
                    const struct hb_rewrite *rewrite, char *problem, size_t size);

/* The mark of sockets whose packets go through it. */
uint32_t hb_tunnels_mark(uint32_t number);

/* The device's index; for tests. */
uint32_t hb_tunnels_ifindex(const struct hb_tunnels *tunnels);

/* The address that this machine would use towards `to` without a tunnel; family 0: it has none. */
struct hb_address hb_tunnels_source(const struct hb_address *to);

/* Makes the map's value of a rewrite; pure. False: `problem` says why there can be none. */
struct hb_probe_tunnel;
bool hb_probe_tunnel_make(const struct hb_rewrite *rewrite, uint32_t ifindex,
                          struct hb_probe_tunnel *value, char *problem, size_t size);

#endif
