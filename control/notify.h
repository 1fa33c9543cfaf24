/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * notify.h: tells systemd how the daemon is (sd_notify(3), without its library).
 */
#ifndef HB_CONTROL_NOTIFY_H
#define HB_CONTROL_NOTIFY_H

/* Sends "READY=1" or the like to $NOTIFY_SOCKET; nothing happens when that is not set. */
void hb_notify(const char *state);

#endif
