/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config_internal.h: what the parts of the configuration reader share.
 *
 *     config.c          the file, whole and unchanged; the order of the steps; the derived keys
 *     config_report.c   complaints: collected, put in the order of the file, handed on
 *     config_yaml.c     text to nodes: one document, no aliases, bounded depth
 *     config_schema.c   nodes to struct hb_config: one row a key
 *     config_values.c   one scalar to one value
 *     config_unique.c   what may be there only once
 *     config_rules.c    what else must hold between keys
 *     config_nat.c      the same for NAT, with its keys
 *     config_forwarding.c  keys and rules of the forwarding modes
 *     config_icmp.c     keys and rules about ICMP and MSS
 *     config_hashing.c  the same for the keys that choose and shape lookup tables
 *     config_health.c   rows, values and rules of health checks
 *     config_services.c values and rules of services: prefixes, ranges, sources, limits
 *     config_vips.c     VIPs that are something else too
 *     config_quic.c     the same for QUIC connection ids
 *     config_policy.c   keys and rules for what happens when backends fail, come up, or all rest
 *
 * A step goes on after a complaint as far as it makes sense, so that a person sees all of them at
 * once. One thread at a time; nothing is global.
 */
#ifndef HB_CONTROL_CONFIG_INTERNAL_H
#define HB_CONTROL_CONFIG_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <yaml.h>

#include "config.h"

#define HB_CONFIG_FILE_MAX       (16 << 20) /* bytes; 65,535 backends need about a quarter of it */
#define HB_CONFIG_DEPTH_MAX      16         /* the schema needs 6 */
#define HB_CONFIG_COMPLAINTS_MAX 1000       /* what nobody reads is not kept */
#define HB_CONFIG_PATH           192
#define HB_CONFIG_KEYS_MAX       24 /* of one schema */

struct hb_config_complaint {
    int line;
    uint32_t sequence; /* keeps complaints of one line in the order they were made */
    bool warning;
    char *message;
};

/* Where a field of struct hb_config was read from. */
struct hb_config_place {
    const void *field;
    int line;
    bool good;        /* its value was accepted */
    const char *text; /* as it stands in the file */
};

struct hb_config_reader {
    const char *file;
    yaml_document_t *document;
    struct hb_config *config;
    struct hb_config_complaint *complaints;
    uint32_t complaints_count;
    uint32_t errors; /* complaints that are not warnings, counted even when not kept */
    struct hb_config_place *places;
    size_t places_count, places_room;
    bool no_memory;
};

/* config_report.c */

/* Keeps "file:line: path: text". Line 0 and an empty path are left out. */
void hb_config_complain(struct hb_config_reader *reader, int line, const char *path,
                        const char *format, ...) __attribute__((format(printf, 4, 5)));
void hb_config_warn(struct hb_config_reader *reader, int line, const char *path, const char *format,
                    ...) __attribute__((format(printf, 4, 5)));
/* The same for a fault of syntax: "file:line:column: text". */
void hb_config_complain_at(struct hb_config_reader *reader, int line, int column,
                           const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Hands all complaints on in the order of the file and frees them. */
void hb_config_report_all(struct hb_config_reader *reader, hb_config_report report, void *context);
/* Makes `text` fit for a message in quotes: one line, printable, not long. Returns `quoted`. */
#define HB_CONFIG_QUOTED 72
const char *hb_config_quote(const char *text, char quoted[HB_CONFIG_QUOTED]);
/* True when `b` is most likely a misspelling of `a`. */
bool hb_config_is_close(const char *a, const char *b);

/* config_yaml.c: loads the one document of a text; false after a complaint. */
bool hb_config_yaml_load(struct hb_config_reader *reader, const char *text, size_t size,
                         yaml_document_t *document);

/* config_schema.c */
void hb_config_apply_schema(struct hb_config_reader *reader);
void hb_config_add_place(struct hb_config_reader *reader, const void *field,
                         const yaml_node_t *node, bool good);
/* Must be called once before the first search. */
void hb_config_sort_places(struct hb_config_reader *reader);
/* NULL when the file does not have the key. */
const struct hb_config_place *hb_config_find_place(const struct hb_config_reader *reader,
                                                   const void *field);

/* config_values.c */
enum hb_config_type {
    HB_CONFIG_NUMBER,    /* whole, plain digits */
    HB_CONFIG_DURATION,  /* digits and a unit; kept in milliseconds */
    HB_CONFIG_SECRET,    /* printable text */
    HB_CONFIG_COMMAND,   /* the same on one line, spaces allowed; for a shell */
    HB_CONFIG_NAME,      /* letters, digits, . _ - */
    HB_CONFIG_ADDRESS,   /* struct hb_address */
    HB_CONFIG_CHOICE,    /* one of a list of words */
    HB_CONFIG_BOOLEAN,   /* true or false */
    HB_CONFIG_FRACTION,  /* plain digits with a point; kept in 1/1024, min and max in millionths */
    HB_CONFIG_PREFIX,    /* struct hb_address_prefix */
    HB_CONFIG_MAC,       /* six bytes, 02:00:00:00:00:01 */
    HB_CONFIG_REFERENCE, /* a name, looked up by a rule */
    HB_CONFIG_OWN,       /* read by the row's own function */
    HB_CONFIG_CUSTOM,    /* by a function of its own */
    HB_CONFIG_MAPPING,
    HB_CONFIG_LIST, /* of mappings */
};

#define HB_CONFIG_NOT_YET UINT32_MAX /* known, but not available in this version */

struct hb_config_choice {
    const char *word;
    uint32_t value;
};

struct hb_config_schema;
struct hb_config_key;

/* Reads a node: HB_CONFIG_OWN a scalar into its field, HB_CONFIG_CUSTOM any node into the object
 * around the field. False after a complaint. */
typedef bool (*hb_config_read_own)(struct hb_config_reader *reader, const struct hb_config_key *key,
                                   const yaml_node_t *node, const char *path, void *to);

/* One key of the file. */
struct hb_config_key {
    const char *name;
    const char *expected; /* completes "expected ..." */
    size_t offset, size;  /* of the field */
    /* Anything else that an accepted value must hold; complains and returns false when it does not.
     */
    bool (*check)(struct hb_config_reader *reader, int line, const char *path, const void *field);
    hb_config_read_own read;                /* HB_CONFIG_OWN, HB_CONFIG_CUSTOM */
    const struct hb_config_choice *choices; /* ends with a NULL word */
    const struct hb_config_schema *schema;  /* of a mapping, or of a list's elements */
    size_t count_offset;                    /* of a list's count, uint32_t */
    uint32_t min, max; /* value, milliseconds, bytes of text or elements of a list */
    uint32_t preset;
    enum hb_config_type type;
    bool required;
};

struct hb_config_schema {
    const char *what; /* "a pool" */
    const struct hb_config_key *keys;
    uint32_t keys_count;
    size_t size;        /* of the object; 0: the fields are of the object around it */
    size_t line_offset; /* of its `int line`; 0: it has none */
};

/* Reads a scalar into its field; false after a complaint. */
bool hb_config_read_value(struct hb_config_reader *reader, const struct hb_config_key *key,
                          const yaml_node_t *node, const char *path, void *field);
/* "expected a port from 1 to 65535, found "70000"" and the hint; returns false. */
bool hb_config_complain_found(struct hb_config_reader *reader, const struct hb_config_key *key,
                              const yaml_node_t *node, const char *path, const char *hint);
/* Stores a number into a field of 1, 2 or 4 bytes. */
void hb_config_store(void *field, size_t size, uint32_t value);
/* Checks for rows. */
bool hb_config_check_prime(struct hb_config_reader *reader, int line, const char *path,
                           const void *field);
bool hb_config_check_unicast(struct hb_config_reader *reader, int line, const char *path,
                             const void *field);
bool hb_config_check_unicast_ipv4(struct hb_config_reader *reader, int line, const char *path,
                                  const void *field);
bool hb_config_check_prefix_ipv4(struct hb_config_reader *reader, int line, const char *path,
                                 const void *field);
bool hb_config_check_prefix_ipv6(struct hb_config_reader *reader, int line, const char *path,
                                 const void *field);
bool hb_config_check_unicast_ipv6(struct hb_config_reader *reader, int line, const char *path,
                                  const void *field);
bool hb_config_check_loopback(struct hb_config_reader *reader, int line, const char *path,
                              const void *field);

/* The line of a field, or `otherwise` when the file does not have the key. */
int hb_config_line_of(const struct hb_config_reader *reader, const void *field, int otherwise);
/* False when the file has a value that was refused. */
bool hb_config_is_good(const struct hb_config_reader *reader, const void *field);

/* config_unique.c */

/* Something that must be unique, and where it is. */
struct hb_config_entry {
    const char *name; /* or NULL: compare the address */
    const struct hb_address *address;
    uint32_t pool; /* for backends */
    uint32_t index;
    int line;
};
/* By key, equal keys in the order of the file; for qsort(). */
int hb_config_compare_entries(const void *left, const void *right);
/* `entries` has room for as many as there are backends, pools and services. */
void hb_config_check_unique(struct hb_config_reader *reader, struct hb_config_entry *entries);

/* config_rules.c */
void hb_config_apply_rules(struct hb_config_reader *reader);

/* config_nat.c */
extern const struct hb_config_schema hb_config_nat_schema;
void hb_config_check_nat(struct hb_config_reader *reader);
/* config_icmp.c */
extern const struct hb_config_schema hb_config_icmp_schema; /* of struct hb_icmp_config */
void hb_config_check_mss(struct hb_config_reader *reader, uint32_t service_index);
/* config_health.c */
extern const struct hb_config_schema hb_config_health_schema;
/* What a pool has in place of its first service: there is none; or some service's pool could not be
 * found, and it may be this one. */
#define HB_CONFIG_NO_SERVICE      UINT32_MAX
#define HB_CONFIG_UNKNOWN_SERVICE (UINT32_MAX - 1)
/* `service` is the index of the pool's first one. */
void hb_config_check_health(struct hb_config_reader *reader, uint32_t pool_index, uint32_t service);
/* config_forwarding.c */
extern const struct hb_config_choice hb_config_forwardings[], hb_config_fragments[];
extern const struct hb_config_schema hb_config_gue_schema, hb_config_vxlan_schema,
    hb_config_l3dsr_schema; /* of struct hb_forwarding_options */
void hb_config_check_forwarding(struct hb_config_reader *reader);

/* config_hashing.c */
void hb_config_check_hashing(struct hb_config_reader *reader, uint32_t pool_index);

/* config_services.c: readers for rows, and rules. */
bool hb_config_read_ports(struct hb_config_reader *reader, const struct hb_config_key *key,
                          const yaml_node_t *node, const char *path, void *object);
bool hb_config_read_vip(struct hb_config_reader *reader, const struct hb_config_key *key,
                        const yaml_node_t *node, const char *path, void *object);
bool hb_config_read_sources(struct hb_config_reader *reader, const struct hb_config_key *key,
                            const yaml_node_t *node, const char *path, void *object);
void hb_config_check_service(struct hb_config_reader *reader, uint32_t index);
void hb_config_check_lists(struct hb_config_reader *reader);
void hb_config_check_service_keys(struct hb_config_reader *reader);
/* config_vips.c, config_nat_rules.c: `backends` are sorted by address. */
/* The first whose address is not below this one, or NULL. */
const struct hb_config_entry *hb_config_first_from(const struct hb_config_entry *backends,
                                                   uint32_t count,
                                                   const struct hb_address *address);
void hb_config_check_nat_sources(struct hb_config_reader *reader,
                                 const struct hb_config_entry *backends, uint32_t count);
void hb_config_check_vips(struct hb_config_reader *reader, const struct hb_config_entry *backends,
                          uint32_t count);

/* config_quic.c */
extern const struct hb_config_schema hb_config_quic_schema;
bool hb_config_read_server_id(struct hb_config_reader *reader, const struct hb_config_key *key,
                              const yaml_node_t *node, const char *path, void *object);
void hb_config_check_quic(struct hb_config_reader *reader, uint32_t index);
void hb_config_check_server_ids(struct hb_config_reader *reader, uint32_t pool_index);
/* config_policy.c */
extern const struct hb_config_schema hb_config_failure_schema, hb_config_maintenance_schema;
/* Whether another pool falls back on the one of this name. */
bool hb_config_is_backup(const struct hb_config *config, const char *name);
void hb_config_check_failure(struct hb_config_reader *reader, uint32_t pool_index);
/* Finds the pools' backups and gives each pool those of its backup pool. Last of all: it moves
 * lists of backends, so no place in them is found any more. */
void hb_config_join_backups(struct hb_config_reader *reader, const struct hb_config_entry *pools,
                            uint32_t pools_count);

/* config_rules.c: the index of a pool, or -1. `pools` is sorted. */
int hb_config_find_pool(const struct hb_config_entry *pools, uint32_t count, const char *name);

/* config.c: reads an open regular file whole. `before` is its fstat(): when the file is not the
 * same afterwards, -EAGAIN. Returns 0 and a zero-terminated text that the caller frees, or a
 * negative errno. */
int hb_config_read_file(int fd, const struct stat *before, char **text, size_t *size);

#endif
