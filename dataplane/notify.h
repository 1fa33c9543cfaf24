/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * notify.h: tells the service manager how far we are (sd_notify(3) of systemd, its datagram
 * protocol).
 */
#ifndef HB_DATAPLANE_NOTIFY_H
#define HB_DATAPLANE_NOTIFY_H

/* Sends `state` ("READY=1") to $NOTIFY_SOCKET. Does nothing when there is none; errors don't
 * matter. */
void hb_notify(const char *state);

#endif
