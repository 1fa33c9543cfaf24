/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log.h: one line to standard error for each event that an operator should know.
 *
 * Lines carry a level prefix that systemd's journal understands (sd-daemon(3), "<3>") when standard
 * error is the journal, and a time stamp when it is not. The message is printed once, where the
 * cause is known; it names the object and, if something is wrong, the remedy.
 */
#ifndef HB_CONTROL_LOG_H
#define HB_CONTROL_LOG_H

enum hb_log_level {
    HB_LOG_ERROR = 3,
    HB_LOG_WARNING = 4,
    HB_LOG_NOTICE = 5,
    HB_LOG_INFO = 6,
    HB_LOG_DEBUG = 7,
};

/* Lines above this level are not printed; default HB_LOG_INFO. */
void hb_log_set_level(enum hb_log_level level);

void hb_log(enum hb_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
