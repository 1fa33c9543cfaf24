/* SPDX-License-Identifier: BSD-3-Clause */
/* See options.h. */
#include "options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define FLOWS_MIN        1024
#define FLOWS_MAX        (UINT64_C(1) << 32)
#define NAT_SESSIONS_MAX (UINT64_C(1) << 28)
#define MBUFS_MAX        (UINT64_C(64) << 20)
#define MBUF_SIZE_MIN    128
#define MBUF_SIZE_MAX    16384

static __attribute__((format(printf, 2, 3))) int complain(char *problem, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(problem, HB_TEXT_SIZE, format, arguments);
    va_end(arguments);
    return -EINVAL;
}

/* A whole number from text, with no sign and no space; *end is what follows it. */
static bool read_number(const char *text, uint64_t max, uint64_t *number, const char **end)
{
    unsigned long long value;
    char *stop;

    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    value = strtoull(text, &stop, 10);
    *number = value;
    *end = stop;
    return errno == 0 && value <= max;
}

static int set_socket(struct hb_options *options, const char *value, char *problem)
{
    const size_t path_max = 107; /* sun_path, terminated */

    if (*value == '\0' || strlen(value) > path_max)
        return complain(problem, "--socket '%.80s': a path of 1 to %zu bytes is expected", value,
                        path_max);
    options->socket = value;
    return 0;
}

static bool is_ifname(const char *name)
{
    size_t length = strlen(name);

    return length > 0 && length < HB_IFNAME_SIZE && strpbrk(name, "/ ,=") == NULL;
}

static int set_interface(struct hb_options *options, const char *value, char *problem)
{
    if (!is_ifname(value))
        return complain(
            problem,
            "--interface '%.80s': the name of a network interface is expected, such as eth0",
            value);
    for (uint32_t i = 0; i < options->interfaces; i++)
        if (strcmp(options->interface[i], value) == 0)
            return complain(problem, "--interface %s is given twice", value);
    if (options->interfaces == HB_PORTS_MAX)
        return complain(problem, "--interface %s: at most %d ports", value, HB_PORTS_MAX);
    options->interface[options->interfaces++] = value;
    return 0;
}

/* PORT=IFNAME, into a list by port. */
static int set_of_port(const char *option, const char *list[], const char *value, char *problem)
{
    const char *name;
    uint64_t port;

    if (!read_number(value, HB_PORTS_MAX - 1, &port, &name) || *name != '=' || !is_ifname(name + 1))
        return complain(problem,
                        "%s '%.80s': PORT=IFNAME is expected, such as 0=eth0; ports are 0 to %d",
                        option, value, HB_PORTS_MAX - 1);
    if (list[port] != NULL)
        return complain(problem, "%s: port %u is given twice", option, (unsigned)port);
    list[port] = name + 1;
    return 0;
}

static int set_kernel_interface(struct hb_options *options, const char *value, char *problem)
{
    return set_of_port("--kernel-interface", options->kernel_interface, value, problem);
}

static int set_punt(struct hb_options *options, const char *value, char *problem)
{
    return set_of_port("--punt", options->punt, value, problem);
}

/* A number with K or M behind it, if need be. */
static int read_count(const char *option, const char *value, uint64_t min, uint64_t max,
                      uint64_t *count, char *problem)
{
    uint64_t number, unit = 1;
    const char *end;

    if (!read_number(value, max, &number, &end))
        goto bad;
    if (*end == 'K' || *end == 'k')
        unit = 1024, end++;
    else if (*end == 'M' || *end == 'm')
        unit = 1024 * 1024, end++;
    if (*end != '\0' || number > max / unit || number * unit < min)
        goto bad;
    *count = number * unit;
    return 0;
bad:
    return complain(problem,
                    "%s '%.80s': a number of %llu to %lluM is expected, K and M are allowed: 16M",
                    option, value, (unsigned long long)min, (unsigned long long)(max >> 20));
}

static int set_flows(struct hb_options *options, const char *value, char *problem)
{
    return read_count("--flows", value, FLOWS_MIN, FLOWS_MAX, &options->flows, problem);
}

static int set_flows6(struct hb_options *options, const char *value, char *problem)
{
    return read_count("--flows6", value, 1, FLOWS_MAX, &options->flows6, problem);
}

static int set_mbufs(struct hb_options *options, const char *value, char *problem)
{
    uint64_t mbufs = 0;
    int error = read_count("--mbufs", value, 1, MBUFS_MAX, &mbufs, problem);

    if (error == 0)
        options->mbufs = (uint32_t)mbufs;
    return error;
}

static int set_mbuf_size(struct hb_options *options, const char *value, char *problem)
{
    const char *end;
    uint64_t number;

    if (!read_number(value, MBUF_SIZE_MAX, &number, &end) || *end != '\0' || number < MBUF_SIZE_MIN)
        return complain(problem, "--mbuf-size '%.80s': bytes of a frame are expected, %d to %d",
                        value, MBUF_SIZE_MIN, MBUF_SIZE_MAX);
    options->mbuf_size = (uint32_t)number;
    return 0;
}

static int set_nat_sessions(struct hb_options *options, const char *value, char *problem)
{
    uint64_t sessions = 0;
    int error = read_count("--nat-sessions", value, 0, NAT_SESSIONS_MAX, &sessions, problem);

    if (error == 0)
        options->nat_sessions = (uint32_t)sessions;
    return error;
}

static int set_idle_sleep(struct hb_options *options, const char *value, char *problem)
{
    const char *end;
    uint64_t number;

    if (!read_number(value, 100000, &number, &end) || *end != '\0')
        return complain(
            problem, "--idle-sleep '%.80s': microseconds are expected, 0 (never sleep) to 100000",
            value);
    options->idle_sleep_us = (uint32_t)number;
    return 0;
}

static int set_mtu(struct hb_options *options, const char *value, char *problem)
{
    const char *end;
    uint64_t number;

    if (!read_number(value, HB_MTU_MAX, &number, &end) || *end != '\0' || number < HB_MTU_MIN)
        return complain(problem,
                        "--mtu '%.80s': bytes of the largest IP packet are expected, %d to %d",
                        value, HB_MTU_MIN, HB_MTU_MAX);
    options->mtu = (uint16_t)number;
    return 0;
}

static int set_udp_checksum_offload(struct hb_options *options, const char *value, char *problem)
{
    (void)value, (void)problem;
    options->udp_checksum_offload = true;
    return 0;
}

/* A time with a unit, kept in milliseconds: 500ms, 3s, 10m, 1h. At least 1 ms, at most 24 days. */
static int read_time(const char *option, const char *value, uint32_t *ms, char *problem)
{
    static const struct {
        const char *unit;
        uint32_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
    const char *unit;
    uint64_t number;

    if (read_number(value, INT32_MAX, &number, &unit))
        for (unsigned i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
            if (strcmp(unit, units[i].unit) != 0)
                continue;
            number *= units[i].ms;
            if (number == 0 || number > INT32_MAX)
                break;
            *ms = (uint32_t)number;
            return 0;
        }
    return complain(problem, "%s '%.80s': a time with its unit is expected: 500ms, 3s, 10m, 1h",
                    option, value);
}

#define TIMEOUT_SETTER(field, option)                                                              \
    static int set_##field(struct hb_options *options, const char *value, char *problem)           \
    {                                                                                              \
        return read_time(option, value, &options->timeouts.field, problem);                        \
    }
TIMEOUT_SETTER(tcp_syn_ms, "--timeout-tcp-syn")
TIMEOUT_SETTER(tcp_established_ms, "--timeout-tcp-established")
TIMEOUT_SETTER(tcp_fin_ms, "--timeout-tcp-fin")
TIMEOUT_SETTER(tcp_rst_ms, "--timeout-tcp-rst")
TIMEOUT_SETTER(udp_ms, "--timeout-udp")

static int set_version(struct hb_options *options, const char *value, char *problem)
{
    (void)value, (void)problem;
    options->version = true;
    return 0;
}

static int set_help(struct hb_options *options, const char *value, char *problem)
{
    (void)value, (void)problem;
    options->help = true;
    return 0;
}

static const struct row {
    const char *name;
    const char *argument; /* NULL: takes none */
    int (*set)(struct hb_options *options, const char *value, char *problem);
    const char *help;
} rows[] = {
    {"--interface", "IFNAME", set_interface,
     "a port on this kernel interface: AF_XDP through the\n"
     "steering program, AF_PACKET when that can't be had;\n"
     "may be given several times"},
    {"--socket", "PATH", set_socket,
     "where halbach-control finds this dataplane\n"
     "(default " HB_DATAPLANE_SOCKET ")"},
    {"--flows", "N", set_flows,
     "entries of the flow caches of all workers together;\n"
     "K and M are allowed (default 1M)"},
    {"--nat-sessions", "N", set_nat_sessions,
     "connections of full NAT of all workers together;\n"
     "0: none are possible (default 64K)"},
    {"--flows6", "N", set_flows6, "of them IPv6 at most (default an eighth)"},
    {"--mbufs", "N", set_mbufs,
     "packet buffers on each NUMA node that has workers, if\n"
     "that is more than the rings of the ports hold"},
    {"--mbuf-size", "BYTES", set_mbuf_size,
     "the largest frame that fits one buffer (default 2048,\n"
     "or what the MTU of an --interface calls for)"},
    {"--idle-sleep", "US", set_idle_sleep,
     "a worker that finds nothing to do sleeps this many\n"
     "microseconds; 0 never sleeps (default 0)"},
    {"--kernel-interface", "PORT=IFNAME", set_kernel_interface,
     "the kernel interface that has the same link as DPDK\n"
     "port PORT, when the driver does not know it"},
    {"--mtu", "BYTES", set_mtu,
     "largest IP packet of the ports that EAL found\n"
     "(default: what their drivers say)"},
    {"--udp-checksum-offload", NULL, set_udp_checksum_offload,
     "ports that can compute the UDP checksums of tunnels\n"
     "do it; some drivers then send all packets more slowly"},
    {"--punt", "PORT=IFNAME", set_punt,
     "makes the TAP interface IFNAME with the MAC address of\n"
     "DPDK port PORT: what is not for a VIP goes to the\n"
     "kernel there, and what the kernel sends there goes out"},
    {"--timeout-tcp-syn", "TIME", set_tcp_syn_ms, "a SYN and nothing after it (default 3s)"},
    {"--timeout-tcp-established", "TIME", set_tcp_established_ms,
     "an established connection that is idle (default 1h)"},
    {"--timeout-tcp-fin", "TIME", set_tcp_fin_ms, "after a FIN (default 10s)"},
    {"--timeout-tcp-rst", "TIME", set_tcp_rst_ms, "after a RST (default 1s)"},
    {"--timeout-udp", "TIME", set_udp_ms, "a UDP flow that is idle (default 60s)"},
    {"--version", NULL, set_version, "print the version and end"},
    {"--help", NULL, set_help, "print this and end"},
};

/* The row of an argument such as --flows or --flows=1M, or NULL. *value is behind the "=", or NULL.
 */
static const struct row *find_row(const char *argument, const char **value)
{
    size_t length = strcspn(argument, "=");

    *value = argument[length] == '=' ? argument + length + 1 : NULL;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strlen(rows[i].name) == length && strncmp(rows[i].name, argument, length) == 0)
            return &rows[i];
    return NULL;
}

int hb_command_line_split(int argc, char **argv, struct hb_command_line *line, char *problem)
{
    const char *value;

    *line = (struct hb_command_line){.eal = argv + 1, .own = argv + argc};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--") != 0)
            continue;
        line->eal_count = i - 1;
        line->own = argv + i + 1;
        line->own_count = argc - i - 1;
        return 0;
    }
    if (argc < 2)
        return 0;
    if (find_row(argv[1], &value) != NULL) {
        line->own = argv + 1;
        line->own_count = argc - 1;
        return 0;
    }
    for (int i = 1; i < argc; i++)
        if (find_row(argv[i], &value) != NULL)
            return complain(
                problem,
                "%.80s comes after options of DPDK's EAL; put -- between the two kinds: "
                "halbach-dataplane [EAL options] -- [options]",
                argv[i]);
    line->eal_count = argc - 1;
    return 0;
}

int hb_options_parse(int count, char **arguments, struct hb_options *options, char *problem)
{
    *options = (struct hb_options){
        .socket = HB_DATAPLANE_SOCKET,
        .flows = 1024 * 1024,
        .nat_sessions = 64 * 1024,
        .timeouts = {.tcp_syn_ms = 3000,
                     .tcp_established_ms = 3600000,
                     .tcp_fin_ms = 10000,
                     .tcp_rst_ms = 1000,
                     .udp_ms = 60000},
    };
    for (int i = 0; i < count; i++) {
        const char *value;
        const struct row *row = find_row(arguments[i], &value);
        int error;

        if (row == NULL)
            return complain(problem, "unknown option '%.80s'; --help lists them all", arguments[i]);
        if (row->argument == NULL && value != NULL)
            return complain(problem, "%s takes no value", row->name);
        if (row->argument != NULL && value == NULL) {
            if (i + 1 == count)
                return complain(problem, "%s needs a value: %s %s", row->name, row->name,
                                row->argument);
            value = arguments[++i];
        }
        error = row->set(options, value, problem);
        if (error != 0)
            return error;
    }
    if (options->flows6 > options->flows)
        return complain(problem, "--flows6 %llu is more than --flows %llu, of which it is a part",
                        (unsigned long long)options->flows6, (unsigned long long)options->flows);
    return 0;
}

void hb_options_help(FILE *out)
{
    fputs(
        "halbach-dataplane forwards packets for virtual IPs, as halbach-control tells it.\n\n"
        "usage: halbach-dataplane [EAL options] -- [options]\n"
        "       halbach-dataplane [options]\n\n"
        "  halbach-dataplane --interface eth0\n"
        "  halbach-dataplane -l 0-3 -a 0000:3b:00.0 -- --punt 0=hb0 --flows 16M\n\n"
        "EAL options are DPDK's; the most useful ones:\n"
        "  -l 0-3                       CPU cores: the first one manages, each other is a worker\n"
        "  --lcores '0@0,1@0'           one worker, all on CPU 0\n"
        "  -a 0000:3b:00.0              a NIC that is bound to DPDK, by PCI address; none is\n"
        "                               touched that is not named\n"
        "  --vdev net_memif0,...        a port of another kind\n\n"
        "options:\n",
        out);
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *text = rows[i].help;
        char left[64];

        snprintf(left, sizeof(left), "%s%s%s", rows[i].name, rows[i].argument == NULL ? "" : " ",
                 rows[i].argument == NULL ? "" : rows[i].argument);
        if (strlen(left) > 28)
            fprintf(out, "  %s\n%31s", left, "");
        else
            fprintf(out, "  %-28s ", left);
        for (; *text != '\0'; text++) {
            fputc(*text, out);
            if (*text == '\n')
                fprintf(out, "%31s", "");
        }
        fputc('\n', out);
    }
    fputs("\nexit status: 0 ended by SIGINT or SIGTERM, 1 failed, 2 wrong usage\n", out);
}
