/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hugepages.h: how much hugepage memory is free, asked before EAL is started.
 *
 * EAL would fail half way, or come up and run dry later (BL-106). Pure (sysfs); main thread.
 */
#ifndef HB_DATAPLANE_HUGEPAGES_H
#define HB_DATAPLANE_HUGEPAGES_H

#include <stdint.h>

/* Free bytes in hugepages of every size below `folder` ("/sys/kernel/mm/hugepages"). 0 when there
 * are none or it cannot be read. */
uint64_t hb_hugepages_free(const char *folder);

#endif
