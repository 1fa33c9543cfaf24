/* SPDX-License-Identifier: BSD-3-Clause */
/* What people are told when the dataplane has started and when it ends. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <rte_lcore.h>
#include <rte_malloc.h>

#include "dataplane.h"
#include "log.h"

static void report_port(const struct hb_port *port)
{
    hb_log_notice("  port %-2u     %s%s%s%s%s, MAC %02x:%02x:%02x:%02x:%02x:%02x, MTU %u%s",
                  port->id, port->kernel.name, port->kernel.name[0] != '\0' ? ", " : "",
                  port->driver, port->steer != NULL ? ", XDP " : "",
                  port->steer != NULL ? hb_steer_mode(port->steer) : "", port->mac[0], port->mac[1],
                  port->mac[2], port->mac[3], port->mac[4], port->mac[5], port->mtu,
                  port->udp_checksum ? ", computes UDP checksums" : "");
}

static void report_workers(const struct hb_dataplane *d)
{
    char list[256] = "";
    size_t used = 0;

    for (uint32_t i = 0; i < d->workers_count && used + 8 < sizeof(list); i++)
        used += (size_t)snprintf(list + used, sizeof(list) - used, " %u", d->worker_lcore[i]);
    hb_log_notice("  workers     %u, on lcore%s; lcore %u manages", d->workers_count, list,
                  rte_get_main_lcore());
}

static void report_memory(const struct hb_dataplane *d)
{
    uint64_t flows = 0, used = 0;

    for (uint32_t i = 0; i < d->workers_count; i++)
        flows += hb_counters_worker(d->counters.region, i)->flows_max;
    for (unsigned node = 0; node < HB_NODES_MAX; node++) {
        struct rte_malloc_socket_stats stats;

        if (rte_malloc_get_socket_stats((int)node, &stats) == 0)
            used += stats.heap_allocsz_bytes;
    }
    hb_log_notice("  memory      %" PRIu64 " MB of %s: %" PRIu64 " flows, %u packet buffers",
                  used >> 20, d->plan.no_huge ? "ordinary memory" : "hugepages", flows,
                  d->ports.buffers);
}

void hb_report_start(const struct hb_dataplane *d)
{
    hb_log_notice("halbach-dataplane " HB_VERSION " runs, pid %d", (int)getpid());
    for (uint32_t i = 0; i < d->ports.count; i++)
        report_port(&d->ports.port[i]);
    report_workers(d);
    report_memory(d);
    hb_log_notice("  control     %s", d->options.socket);
    if (d->plan.remark[0] != '\0')
        hb_log_notice("%s", d->plan.remark);
}

void hb_report_end(const struct hb_dataplane *d)
{
    const struct hb_counters_header *region = d->counters.region;
    struct hb_worker_counters sum = hb_counters_sum(region);
    uint64_t seconds = (uint64_t)time(NULL) - region->started_unix_ns / 1000000000, drops = 0;

    for (unsigned reason = 0; reason < HB_DROP_COUNT; reason++)
        drops += sum.drops[reason];
    hb_log_notice("ends after %" PRIu64 " s: %" PRIu64 " packets received, %" PRIu64
                  " forwarded, %" PRIu64 " handed to the kernel, %" PRIu64 " dropped; %" PRIu64
                  " flows were known",
                  seconds, sum.rx_packets, sum.tx_packets, sum.punted_packets, drops, sum.flows);
    for (unsigned reason = 0; reason < HB_DROP_COUNT; reason++)
        if (sum.drops[reason] > 0)
            hb_log_notice("  dropped %" PRIu64 " as %s: %s", sum.drops[reason],
                          hb_drop_name(reason), hb_drop_text(reason));
}
