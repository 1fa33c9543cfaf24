/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * types.h: the few types that every part of the contract shares.
 *
 * Numbers are in host byte order unless their type says otherwise: hb_be16 and hb_be32 hold network
 * byte order, as the bytes stand in a packet. Both ends of the contract run on one machine, so the
 * contract itself needs no byte swapping; a blob from a machine of the other endianness fails at
 * its magic number.
 */
#ifndef HB_API_TYPES_H
#define HB_API_TYPES_H

#include <stdint.h>

typedef uint16_t hb_be16;
typedef uint32_t hb_be32;

/* Address families as the contract writes them; deliberately not AF_INET/AF_INET6, whose values
 * differ between systems. */
enum hb_family {
    HB_FAMILY_IPV4 = 4,
    HB_FAMILY_IPV6 = 6,
};

/* IP protocol numbers a service can have (IANA "Assigned Internet Protocol Numbers"). */
enum hb_protocol {
    HB_PROTOCOL_TCP = 6,
    HB_PROTOCOL_UDP = 17,
    HB_PROTOCOL_SCTP = 132, /* ports alone are read; everything behind them is the ends' business */
};

/* An IPv4 address stands in the first four bytes and the other twelve are zero. The family is
 * always kept beside it, so an IPv4 address and an IPv6 address of the same bits never compare
 * equal. */
#define HB_ADDRESS_SIZE 16

/* Names of services, pools and backends: UTF-8, zero terminated, the rest of the field zero. */
#define HB_NAME_SIZE 64

/* A backend id is an index: 1 to HB_BACKENDS_MAX. 0 means "no backend" everywhere. */
#define HB_BACKENDS_MAX 65535
#define HB_BACKEND_NONE 0

/* A service id is an index into the counters: 0 to HB_SERVICES_MAX - 1. */
#define HB_SERVICES_MAX 4096

#define HB_POOLS_MAX   4096
#define HB_WORKERS_MAX 128
#define HB_PORTS_MAX   32

/* Of a generation, all lists together. */
#define HB_PREFIXES_MAX 262144
#define HB_QUIC_MAX     1024
#define HB_SOURCES_MAX  1024

/* Content address of a lookup table: XXH3, 128 bits, over all of its columns. */
#define HB_DIGEST_SIZE 16

#endif
