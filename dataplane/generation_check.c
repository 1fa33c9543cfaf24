/* SPDX-License-Identifier: BSD-3-Clause */
/* See generation_check.h. The ladder at the end is the table of contents. */
#include "generation_check.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "generation_check_internal.h"
#include "rewrite_check.h"

enum hb_reject hb_check_refuse(struct hb_generation_fault *fault, enum hb_reject reason,
                               uint32_t record, uint64_t offset, const char *format, ...)
{
    va_list arguments;

    fault->reason = reason;
    fault->record = record;
    fault->offset = offset;
    va_start(arguments, format);
    vsnprintf(fault->text, sizeof(fault->text), format, arguments);
    va_end(arguments);
    return reason;
}

enum hb_reject hb_generation_check_fd(int fd, uint64_t *size, struct hb_generation_fault *fault)
{
    const int wanted = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    struct stat about;
    int seals;

    memset(fault, 0, sizeof(*fault));
    *size = 0;
    if (fd < 0)
        return hb_check_refuse(
            fault, HB_REJECT_NO_FD, 0, 0,
            "no file descriptor came with the message; pass a sealed memfd (SCM_RIGHTS)");
    seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0)
        return hb_check_refuse(
            fault, HB_REJECT_SEALS, 0, 0,
            "the file descriptor is not a memfd; create it with memfd_create and "
            "MFD_ALLOW_SEALING");
    if ((seals & wanted) != wanted)
        return hb_check_refuse(
            fault, HB_REJECT_SEALS, 0, 0, "the memfd is not sealed against%s%s%s%s",
            seals & F_SEAL_WRITE ? "" : " writing", seals & F_SEAL_SHRINK ? "" : " shrinking",
            seals & F_SEAL_GROW ? "" : " growing", seals & F_SEAL_SEAL ? "" : " new seals");
    if (fstat(fd, &about) != 0)
        return hb_check_refuse(fault, HB_REJECT_SIZE, 0, 0,
                               "the size of the memfd cannot be read: %s", strerror(errno));
    if (about.st_size < (off_t)sizeof(struct hb_generation_header) ||
        (uint64_t)about.st_size > HB_GENERATION_SIZE_MAX)
        return hb_check_refuse(fault, HB_REJECT_SIZE, 0, 0,
                               "the memfd has %" PRIu64 " bytes; a generation has %zu to %" PRIu64,
                               (uint64_t)about.st_size, sizeof(struct hb_generation_header),
                               (uint64_t)HB_GENERATION_SIZE_MAX);
    *size = (uint64_t)about.st_size;
    return HB_REJECT_NONE;
}

static enum hb_reject check_size(struct hb_check *c)
{
    if (c->size < sizeof(*c->header) || c->size > HB_GENERATION_SIZE_MAX)
        return hb_check_refuse(c->fault, HB_REJECT_SIZE, 0, 0,
                               "the generation has %" PRIu64 " bytes; the header alone has %zu",
                               c->size, sizeof(*c->header));
    if (c->header->total_size != c->size)
        return REFUSE_FIELD(c, HB_REJECT_SIZE, 0, &c->header->total_size,
                            "the header says %" PRIu64 " bytes, %" PRIu64 " came",
                            c->header->total_size, c->size);
    return HB_REJECT_NONE;
}

static enum hb_reject check_magic(struct hb_check *c)
{
    if (c->header->magic != HB_GENERATION_MAGIC)
        return REFUSE_FIELD(c, HB_REJECT_MAGIC, 0, &c->header->magic,
                            "magic %#018" PRIx64 " instead of %#018" PRIx64
                            "; this is not a generation, or of a machine of the other byte order",
                            c->header->magic, HB_GENERATION_MAGIC);
    return HB_REJECT_NONE;
}

static enum hb_reject check_version(struct hb_check *c)
{
    const struct hb_generation_header *header = c->header;

    if (header->version != HB_GENERATION_VERSION)
        return REFUSE_FIELD(
            c, HB_REJECT_VERSION, 0, &header->version,
            "generation format %u, this dataplane reads %u; install the same release "
            "of halbach-control and halbach-dataplane",
            header->version, HB_GENERATION_VERSION);
    if (header->header_size != sizeof(*header))
        return REFUSE_FIELD(c, HB_REJECT_VERSION, 0, &header->header_size,
                            "the header says it has %u bytes, format %u has %zu",
                            header->header_size, HB_GENERATION_VERSION, sizeof(*header));
    if (header->flags != 0)
        return REFUSE_FIELD(c, HB_REJECT_VERSION, 0, &header->flags,
                            "the header has flags %#x, this dataplane knows none", header->flags);
    if (header->number == 0)
        return REFUSE_FIELD(c, HB_REJECT_VERSION, 0, &header->number,
                            "generation number 0 means \"none\"; numbers start at 1");
    if (!is_zero(header->reserved, sizeof(header->reserved)))
        return REFUSE_FIELD(c, HB_REJECT_VERSION, 0, header->reserved,
                            "reserved bytes of the header are not zero");
    return HB_REJECT_NONE;
}

static enum hb_reject check_checksum(struct hb_check *c)
{
    struct hb_generation_header header = *c->header;
    XXH3_state_t state;
    uint64_t sum;

    header.checksum = 0;
    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, &header, sizeof(header));
    XXH3_64bits_update(&state, c->blob + sizeof(header), c->size - sizeof(header));
    sum = XXH3_64bits_digest(&state);
    if (sum != c->header->checksum)
        return REFUSE_FIELD(c, HB_REJECT_CHECKSUM, 0, &c->header->checksum,
                            "the checksum is %#018" PRIx64 ", the contents give %#018" PRIx64,
                            c->header->checksum, sum);
    return HB_REJECT_NONE;
}

static enum hb_reject check_sections(struct hb_check *c)
{
    const struct hb_generation_header *header = c->header;
    const struct {
        const char *name;
        const struct hb_section *section;
        uint32_t record_size;
        uint32_t max;
    } rows[] = {
        {"services", &header->services, sizeof(struct hb_service_record), HB_SERVICES_MAX},
        {"pools", &header->pools, sizeof(struct hb_pool_record), HB_POOLS_MAX},
        {"backends", &header->backends, sizeof(struct hb_backend_record), HB_BACKENDS_MAX},
        {"tables", &header->tables, sizeof(struct hb_table_record), HB_POOLS_MAX},
        {"prefixes", &header->prefixes, sizeof(struct hb_prefix_record), HB_PREFIXES_MAX},
        {"quic", &header->quic, sizeof(struct hb_quic_record), HB_QUIC_MAX},
        {"sources", &header->sources, sizeof(struct hb_source_record), HB_SOURCES_MAX},
    };
    const uint32_t count = sizeof(rows) / sizeof(rows[0]);
    uint64_t end[sizeof(rows) / sizeof(rows[0])];

    for (uint32_t i = 0; i < count; i++) {
        const struct hb_section *section = rows[i].section;

        if (section->record_size != rows[i].record_size)
            return REFUSE_FIELD(c, HB_REJECT_SECTION, i, &section->record_size,
                                "section %s: records of %u bytes, this dataplane reads %u",
                                rows[i].name, section->record_size, rows[i].record_size);
        if (section->count > rows[i].max)
            return REFUSE_FIELD(c, HB_REJECT_SECTION, i, &section->count,
                                "section %s: %u records, at most %u", rows[i].name, section->count,
                                rows[i].max);
        end[i] = (uint64_t)section->count * section->record_size;
        if (section->count == 0 && section->offset % HB_SECTION_ALIGN == 0 &&
            section->offset <= HB_GENERATION_SIZE_MAX) {
            end[i] = section->offset; /* an empty section has no place that matters */
            continue;
        }
        if (!is_inside(c, section->offset, end[i]))
            return REFUSE_FIELD(c, HB_REJECT_SECTION, i, &section->offset,
                                "section %s: offset %" PRIu64 " with %" PRIu64
                                " bytes is misaligned or outside the %" PRIu64 " bytes of the blob",
                                rows[i].name, section->offset, end[i], c->size);
        end[i] += section->offset;
        for (uint32_t j = 0; j < i; j++)
            if (rows[j].section->count > 0 && section->offset < end[j] &&
                rows[j].section->offset < end[i])
                return REFUSE_FIELD(c, HB_REJECT_SECTION, i, &section->offset,
                                    "section %s overlaps section %s", rows[i].name, rows[j].name);
    }
    return HB_REJECT_NONE;
}

/* Terminated, not empty, zero behind the end, and printable: names go to logs and terminals. */
static bool is_name(const char name[HB_NAME_SIZE])
{
    size_t length = strnlen(name, HB_NAME_SIZE);

    if (length == 0 || length == HB_NAME_SIZE || !is_zero(name + length, HB_NAME_SIZE - length))
        return false;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
            return false;
    return true;
}

static enum hb_reject check_names(struct hb_check *c)
{
    const struct hb_generation_header *header = c->header;
    static const char problem[] =
        "%s %u: the name is empty, not terminated or has control characters in it";

    for (uint32_t i = 0; i < header->services.count; i++)
        if (!is_name(services(c)[i].name))
            return REFUSE_FIELD(c, HB_REJECT_NAME, i, services(c)[i].name, problem, "service", i);
    for (uint32_t i = 0; i < header->pools.count; i++)
        if (!is_name(pools(c)[i].name))
            return REFUSE_FIELD(c, HB_REJECT_NAME, i, pools(c)[i].name, problem, "pool", i);
    for (uint32_t i = 0; i < header->backends.count; i++)
        if (!is_name(backends(c)[i].name))
            return REFUSE_FIELD(c, HB_REJECT_NAME, i, backends(c)[i].name, problem, "backend", i);
    return HB_REJECT_NONE;
}

/* ICMP messages may not come from a group or from loopback. All zero: from the VIP. */
static bool is_icmp_source4(const uint8_t address[4])
{
    return is_zero(address, 4) || (address[0] != 0 && address[0] != 127 && address[0] < 224);
}

static bool is_icmp_source6(const uint8_t address[HB_ADDRESS_SIZE])
{
    return address[0] != 0xff && !(is_zero(address, HB_ADDRESS_SIZE - 1) && address[15] == 1);
}

static enum hb_reject check_settings(struct hb_check *c)
{
    const struct hb_settings *settings = &c->header->settings;

    if (!is_icmp_source4(settings->icmp_source4))
        return REFUSE_FIELD(c, HB_REJECT_SETTINGS, 0, settings->icmp_source4,
                            "the source of ICMP messages (%u.%u.%u.%u) is no host's address",
                            settings->icmp_source4[0], settings->icmp_source4[1],
                            settings->icmp_source4[2], settings->icmp_source4[3]);
    if (!is_icmp_source6(settings->icmp_source6))
        return REFUSE_FIELD(c, HB_REJECT_SETTINGS, 0, settings->icmp_source6,
                            "the source of ICMPv6 messages is a group or loopback");

    if (settings->echo >= HB_ECHOS)
        return REFUSE_FIELD(c, HB_REJECT_SETTINGS, 0, &settings->echo,
                            "echo %u, must be 0 (answer), 1 (forward) or 2 (drop)", settings->echo);
    for (uint32_t i = 0; i < 2; i++)
        if (settings->to_clients[i].size != 0 && settings->to_clients[i].size != 14 &&
            settings->to_clients[i].size != 18)
            return REFUSE_FIELD(c, HB_REJECT_SETTINGS, i, &settings->to_clients[i].size,
                                "the way to clients has %u bytes of Ethernet, must be 0, 14 or 18",
                                settings->to_clients[i].size);
    if (!is_zero(settings->reserved, sizeof(settings->reserved)) ||
        !is_zero(settings->reserved64, sizeof(settings->reserved64)))
        return REFUSE_FIELD(c, HB_REJECT_SETTINGS, 0, settings->reserved,
                            "reserved bytes of the settings are not zero");
    return HB_REJECT_NONE;
}

#define REFUSE_BACKEND(c, reason, i, field, format, ...)                                           \
    REFUSE_FIELD(c, reason, i, &backends(c)[i].field, "backend %u (%s): " format, i,               \
                 backends(c)[i].name, __VA_ARGS__)

static enum hb_reject check_pool_indexes(struct hb_check *c)
{
    uint32_t count = c->header->pools.count;

    enum hb_reject reason = hb_check_service_pools(c);

    if (reason != HB_REJECT_NONE)
        return reason;
    for (uint32_t i = 0; i < c->header->backends.count; i++)
        if (backends(c)[i].pool >= count)
            return REFUSE_BACKEND(c, HB_REJECT_POOL_INDEX, i, pool,
                                  "names pool %u, there are %u pools", backends(c)[i].pool, count);
    return HB_REJECT_NONE;
}

static enum hb_reject check_backends(struct hb_check *c)
{
    for (uint32_t i = 0; i < c->header->backends.count; i++) {
        const struct hb_backend_record *backend = &backends(c)[i];

        if (backend->id == HB_BACKEND_NONE || backend->id > HB_BACKENDS_MAX ||
            backend->id >= c->limits->backends_max)
            return REFUSE_BACKEND(c, HB_REJECT_BACKEND, i, id, "id %u, must be 1 to %u",
                                  backend->id, c->limits->backends_max - 1);
        if (i > 0 && backend->id <= backends(c)[i - 1].id)
            return REFUSE_BACKEND(c, HB_REJECT_BACKEND, i, id,
                                  "id %u follows id %u; records must be sorted by unique ids",
                                  backend->id, backends(c)[i - 1].id);
        if (backend->use < HB_BACKEND_ACTIVE || backend->use > HB_BACKEND_RESET)
            return REFUSE_BACKEND(c, HB_REJECT_BACKEND, i, use,
                                  "use %u, must be 1 (active), 2 (draining), 3 (down) or 4 (reset)",
                                  backend->use);
        if (backend->family != HB_FAMILY_IPV4 && backend->family != HB_FAMILY_IPV6)
            return REFUSE_BACKEND(c, HB_REJECT_BACKEND, i, family, "family %u, must be 4 or 6",
                                  backend->family);
        if (!is_address(backend->address, backend->family))
            return REFUSE_BACKEND(c, HB_REJECT_BACKEND, i, address,
                                  "its address is not an IPv%u address", backend->family);
        if (!is_zero(backend->reserved, sizeof(backend->reserved)))
            return REFUSE_BACKEND(c, HB_REJECT_BACKEND, i, reserved,
                                  "reserved bytes are not zero%s", "");
        if (backend->server_id_length > sizeof(backend->server_id) ||
            !is_zero(backend->server_id + backend->server_id_length,
                     sizeof(backend->server_id) - backend->server_id_length))
            return REFUSE_BACKEND(c, HB_REJECT_BACKEND, i, server_id,
                                  "its server id has %u bytes or others behind them, at most %zu",
                                  backend->server_id_length, sizeof(backend->server_id));
        c->index_of[backend->id] = (uint16_t)i;
    }
    return HB_REJECT_NONE;
}

static bool has_port(const struct hb_generation_limits *limits, uint16_t port)
{
    for (uint32_t i = 0; i < limits->ports_count; i++)
        if (limits->ports[i] == port)
            return true;
    return false;
}

static enum hb_reject check_rewrites(struct hb_check *c)
{
    for (uint32_t i = 0; i < c->header->backends.count; i++) {
        const struct hb_backend_record *backend = &backends(c)[i];
        char problem[128];

        if (backend->rewrite.size == 0 && backend->use != HB_BACKEND_DOWN)
            return REFUSE_BACKEND(c, HB_REJECT_REWRITE, i, rewrite.size,
                                  "has no rewrite, but is not down (use %u)", backend->use);
        if (backend->rewrite.size == 0)
            continue;
        if (!hb_rewrite_check(backend, problem, sizeof(problem)))
            return REFUSE_BACKEND(c, HB_REJECT_REWRITE, i, rewrite, "rewrite: %s", problem);
        if (!has_port(c->limits, backend->rewrite.port))
            return REFUSE_BACKEND(c, HB_REJECT_REWRITE, i, rewrite.port,
                                  "rewrite: port %u is not a port of this dataplane",
                                  backend->rewrite.port);
    }
    return HB_REJECT_NONE;
}

/* In the order of enum hb_reject; each may rely on those before it. */
static enum hb_reject (*const ladder[])(struct hb_check *) = {
    check_size,
    check_magic,
    check_version,
    check_checksum,
    check_sections,
    check_names,
    check_settings,
    hb_check_services,
    hb_check_service_duplicates,
    hb_check_prefixes,
    hb_check_quic,
    hb_check_sources,
    check_pool_indexes,
    check_backends,
    hb_check_server_ids,
    check_rewrites,
    hb_check_nat,
    hb_check_table_indexes,
    hb_check_tables,
    hb_check_table_digests,
    hb_check_tables_known,
    hb_check_slots,
    hb_check_previous,
};

enum hb_reject hb_generation_check(const void *blob, uint64_t size,
                                   const struct hb_generation_limits *limits,
                                   struct hb_generation_fault *fault)
{
    const size_t ids = HB_BACKENDS_MAX + 1;
    struct hb_check c = {blob, size, blob, limits, fault, NULL};
    enum hb_reject reason = HB_REJECT_NONE;

    memset(fault, 0, sizeof(*fault));
    c.index_of = malloc(ids * sizeof(*c.index_of));
    if (c.index_of == NULL)
        return hb_check_refuse(fault, HB_REJECT_NO_MEMORY, 0, 0, "no memory to check a generation");
    memset(c.index_of, 0xff, ids * sizeof(*c.index_of));
    for (size_t i = 0; i < sizeof(ladder) / sizeof(ladder[0]) && reason == HB_REJECT_NONE; i++)
        reason = ladder[i](&c);
    free(c.index_of);
    return reason;
}
