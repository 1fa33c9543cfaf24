/* SPDX-License-Identifier: BSD-3-Clause */
/* arguments.h: the command line of halbach-backend: options in, what they ask for out. */
#ifndef HB_BACKEND_ARGUMENTS_H
#define HB_BACKEND_ARGUMENTS_H

#include <stdbool.h>

#include "decap_program.h"

#define EXIT_FAILED 1
#define EXIT_USAGE  2

#define HB_HOST_ADDRESSES_MAX 64
#define HB_DSCPS_MAX          64

/* A DSCP and the VIP that it stands for. */
struct dscp_argument {
    uint32_t dscp;
    struct hb_decap_address vip;
};

struct arguments {
    const char *ifname; /* NULL: none given */
    struct hb_decap_prefix vips[HB_DECAP_VIPS_MAX];
    struct hb_decap_prefix sources[HB_DECAP_SOURCES_MAX];
    struct hb_decap_address hosts[HB_HOST_ADDRESSES_MAX];
    struct dscp_argument dscps[HB_DSCPS_MAX];
    struct hb_decap_mark_row marks[HB_DECAP_MARKS_MAX]; /* hosts by DSCPs */
    uint32_t vips_count, sources_count, hosts_count, dscps_count, marks_count;
    struct hb_decap_settings settings;
    enum hb_decap_wish wish;
    bool tunnels_given;
    bool json;
};

/* What prints "halbach-backend: WHAT: VALUE; see ..." and returns EXIT_USAGE. */
int fail_usage(const char *what, const char *value);

/* Takes all options; `accepted` are the letters that the command takes, `command` its name (NULL:
 * there is none yet). Returns 0, or the exit status plus one: 1 when help or the version was wanted
 * (`*help` then says whether help). */
int take_options(int argc, char **argv, const char *accepted, const char *command,
                 struct arguments *arguments, bool *help);

/* What attach needs. Returns 0 or EXIT_USAGE. */
int check_attach(struct arguments *arguments);

void print_options(void);

#endif
