/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fail_call: to be preloaded (LD_PRELOAD); lets the HB_FAIL_CALL-th of the calls below fail,
 * counted over all of them from 1. 0, or nothing: none fails. Writes "fail_call: NAME" to standard
 * error when it does.
 *
 * These are the calls of the dataplane's start that can fail on a real machine: memory, ports,
 * queues, descriptors. Calls that DPDK makes of its own functions from another of its libraries
 * count as well.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static bool fails(const char *name)
{
    static unsigned calls;
    const char *which = getenv("HB_FAIL_CALL");

    if (which == NULL || __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) != (unsigned)atoi(which))
        return false;
    fprintf(stderr, "fail_call: %s\n", name);
    errno = ENOMEM;
    return true;
}

/* One call: `result` name(arguments), which gives `failure` when it fails. */
#define WRAP(result, name, declaration, arguments, failure)                                        \
    result name declaration;                                                                       \
    result name declaration                                                                        \
    {                                                                                              \
        static result(*next) declaration;                                                          \
                                                                                                   \
        if (next == NULL)                                                                          \
            *(void **)&next = dlsym(RTLD_NEXT, #name);                                             \
        return fails(#name) ? (failure) : next arguments;                                          \
    }

WRAP(void *, rte_zmalloc, (const char *type, size_t size, unsigned align), (type, size, align),
     NULL)
WRAP(void *, rte_zmalloc_socket, (const char *type, size_t size, unsigned align, int node),
     (type, size, align, node), NULL)
WRAP(void *, rte_malloc_socket, (const char *type, size_t size, unsigned align, int node),
     (type, size, align, node), NULL)
WRAP(void *, rte_mempool_create_empty,
     (const char *name, unsigned count, unsigned size, unsigned cache, unsigned room, int node,
      unsigned flags),
     (name, count, size, cache, room, node, flags), NULL)
WRAP(int, rte_mempool_set_ops_byname, (void *pool, const char *name, void *config),
     (pool, name, config), -ENOMEM)
WRAP(int, rte_mempool_populate_default, (void *pool), (pool), -ENOMEM)
WRAP(int, rte_eth_dev_info_get, (uint16_t port, void *info), (port, info), -EIO)
WRAP(int, rte_eth_dev_configure, (uint16_t port, uint16_t rx, uint16_t tx, const void *conf),
     (port, rx, tx, conf), -EIO)
WRAP(int, rte_eth_dev_adjust_nb_rx_tx_desc, (uint16_t port, uint16_t *rx, uint16_t *tx),
     (port, rx, tx), -EIO)
WRAP(int, rte_eth_rx_queue_setup,
     (uint16_t port, uint16_t queue, uint16_t count, unsigned node, const void *conf, void *pool),
     (port, queue, count, node, conf, pool), -EIO)
WRAP(int, rte_eth_tx_queue_setup,
     (uint16_t port, uint16_t queue, uint16_t count, unsigned node, const void *conf),
     (port, queue, count, node, conf), -EIO)
WRAP(int, rte_eth_dev_start, (uint16_t port), (port), -EIO)
WRAP(int, rte_rcu_qsbr_init, (void *qsbr, uint32_t threads), (qsbr, threads), 1)
WRAP(int, rte_eal_remote_launch, (int (*function)(void *), void *argument, unsigned lcore),
     (function, argument, lcore), -EBUSY)
WRAP(int, memfd_create, (const char *name, unsigned flags), (name, flags), -1)
WRAP(int, signalfd, (int fd, const void *mask, int flags), (fd, mask, flags), -1)
WRAP(int, epoll_create1, (int flags), (flags), -1)
