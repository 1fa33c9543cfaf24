/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config.h: the configuration file as control uses it.
 *
 * A file is read whole, checked by a schema (config_schema.c: one row a key) and by rules across
 * keys (config_rules.c), and becomes one immutable struct hb_config. Every complaint names file,
 * line, key and what was expected; all complaints of a file are reported, not only the first. A
 * file with a complaint yields no configuration at all, so a bad reload can change nothing.
 */
#ifndef HB_CONTROL_CONFIG_H
#define HB_CONTROL_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "address.h"
#include "address_prefix.h"
#include "config_nat.h"
#include "forwarding.h"
#include "halbach/flow_key.h"
#include "halbach/generation.h"
#include "halbach/types.h"
#include "hashing/table_builder.h"
#include "health/check_config.h"
#include "service_rules.h"

#define HB_BUCKET_NONE UINT32_MAX /* a backend without the key "bucket" */

/* What a pool does when fewer than `minimum` of its backends are usable (pool_policy.h). */
enum hb_below {
    HB_BELOW_REST = 0, /* those that are left serve */
    HB_BELOW_ALL = 1,  /* all serve, whatever their checks say */
    HB_BELOW_BACKUP = 2,
    HB_BELOW_CLOSE = 3, /* no new flows */
};

#define HB_PANIC_ONE 1024

struct hb_failure_config {
    uint32_t minimum; /* usable backends; 0 is taken for 1 */
    enum hb_below below;
    uint32_t panic;            /* part of the backends that must be usable, in 1/1024; 0: none */
    char backup[HB_NAME_SIZE]; /* pool; "": none */
};

/* Maintenance of the whole balancer (maintenance.h). */
#define HB_COMMAND_SIZE 256
struct hb_maintenance_config {
    char on_withdraw[HB_COMMAND_SIZE]; /* for a shell; "": none */
    char on_announce[HB_COMMAND_SIZE];
    uint32_t time_limit_ms;
    uint32_t quiet; /* packets a second below which traffic has gone */
};

struct hb_backend_config {
    char name[HB_NAME_SIZE]; /* unique in its pool */
    struct hb_address
        address;             /* unique in its pool: with direct server return ports cannot differ */
    uint32_t weight;         /* 0 to 65,535; default 1; 0: no new flows */
    uint32_t bucket;         /* jump only, and then 0 to n - 1, each once; else HB_BUCKET_NONE */
    char zone[HB_NAME_SIZE]; /* where it stands; empty: not said */
    uint8_t server_id[15];   /* of QUIC connection ids; the rest is zero */
    uint8_t server_id_length; /* 0: none */
    bool backup;              /* it is a backend of the pool's backup pool */
    int line;
};

struct hb_pool_config {
    char name[HB_NAME_SIZE];
    enum hb_algorithm algorithm;
    uint32_t table_size; /* prime */
    struct hb_table_options options;
    uint32_t bounded_load; /* how far above its part a backend may go, in 1/1024; 0: no bound */
    enum hb_forwarding forwarding;
    struct hb_nat_config nat; /* for NAT and full NAT */
    struct hb_forwarding_options encap;
    struct hb_health_config health;
    struct hb_failure_config failure;
    uint32_t slow_start_ms; /* 0: a backend that comes up gets its whole share at once */
    struct hb_backend_config *backends;
    uint32_t backends_count; /* at least 1; own ones first, then backups */
    int line;
};

/* A configuration of QUIC connection ids as it stands in the file; rules.quic is what is made of
 * it.
 */
struct hb_quic_entry {
    uint8_t id;
    uint8_t nonce; /* bytes */
    bool encrypted;
    uint8_t key[16];
    int line;
};

struct hb_service_config {
    char name[HB_NAME_SIZE];
    struct hb_address vip; /* bits behind the prefix are zero */
    uint8_t prefix_length;
    uint8_t protocol;         /* enum hb_protocol */
    uint16_t port, port_last; /* 0 and 65535: any */
    uint32_t pool;            /* index */
    uint8_t tracking;         /* enum hb_tracking */
    struct hb_service_rules rules;
    uint16_t mss_max; /* 0: SYNs stay as they are */
    struct hb_quic_entry *quic;
    uint32_t quic_count;
    int line;
};

/* Rates are of each worker of the dataplane; 0: none. */
struct hb_icmp_config {
    struct hb_address source, source6; /* of its own errors; family 0: the VIP */
    uint32_t rate;                     /* own messages a second */
    uint32_t relay_rate;               /* errors about flows handed on, a second */
    uint16_t mtu_floor, mtu_floor6;    /* packet-too-big messages below are dropped; 0: no floor */
    uint8_t echo;                      /* enum hb_echo */
};

/* How the API may be reached beside control's Unix socket. */
struct hb_api_config {
    char listen[HB_NAME_SIZE]; /* a loopback address and port; "": nowhere */
    bool listen_may_change;    /* over TCP, where nobody knows who asks */
    bool others_may_read;      /* any user of this machine, over the Unix socket */
};

struct hb_config {
    char *file; /* as it was named */
    char seed[HB_NAME_SIZE];
    struct hb_hash_key hash_key;      /* derived from the seed, for flows */
    uint64_t table_seed;              /* derived from the seed, for table builders */
    struct hb_address tunnel_source;  /* family 0: learned from the kernel's route */
    struct hb_address tunnel_source6; /* the same */
    struct hb_icmp_config icmp;
    /* Outer sources by the flow, for headers without ports; family 0: not wanted. */
    struct hb_address_prefix tunnel_prefix, tunnel_prefix6;
    uint32_t settle_after_ms;     /* 0: the dataplane's idle time of TCP flows */
    uint32_t keep_configurations; /* for rollbacks; 0: as history.h says */
    struct hb_api_config api;
    struct hb_maintenance_config maintenance;
    uint32_t punt_rate; /* packets a second and worker to the kernel; 0: no limit */
    struct hb_pool_config *pools;
    uint32_t pools_count;
    struct hb_service_config *services;
    uint32_t services_count;
};

/* Receives one complaint (or warning), complete and without a newline:
 * "halbach.yaml:12: pools[0].table_size: 65536 is not prime; the nearest primes are 65521 and
 * 65537". */
typedef void (*hb_config_report)(void *context, bool warning, const char *message);

/* Reads and checks a file. Returns the configuration, which the caller frees with hb_config_free(),
 * or NULL after at least one complaint. Control's thread, or offline. */
struct hb_config *hb_config_load(const char *file, hb_config_report report, void *context);

/* The same from memory; `file` is only for the messages. */
struct hb_config *hb_config_parse(const char *text, size_t size, const char *file,
                                  hb_config_report report, void *context);

/* Only reads a file, whole and unchanged. Returns 0 and a text that the caller frees, or a negative
 * errno after a complaint. */
int hb_config_read(const char *file, char **text, size_t *size, hb_config_report report,
                   void *context);

bool hb_icmp_config_equal(const struct hb_icmp_config *a, const struct hb_icmp_config *b);
/* Writes the settings of a generation that are about ICMP. */
void hb_icmp_config_apply(const struct hb_icmp_config *icmp, struct hb_settings *settings);

void hb_config_free(struct hb_config *config);

#endif
