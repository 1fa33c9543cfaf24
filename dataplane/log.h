/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log.h: what the main lcore tells people, through rte_log to standard error.
 *
 * One line, one event; each names its object and, when something is wrong, the remedy. Works before
 * rte_eal_init as well. Not for the packet path. Any thread.
 */
#ifndef HB_DATAPLANE_LOG_H
#define HB_DATAPLANE_LOG_H

/* Sends rte_log to standard error alone (not to syslog too, as EAL would) and keeps what is below
 * "notice" out of it, unless the user has asked for log levels. Before rte_eal_init. */
void hb_log_setup(int user_sets_levels);

void hb_log_notice(const char *format, ...) __attribute__((format(printf, 1, 2)));
void hb_log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
