/* SPDX-License-Identifier: BSD-3-Clause */
/* status.h: 'halbach-backend status': what the program of an interface goes by and has counted. */
#ifndef HB_BACKEND_STATUS_H
#define HB_BACKEND_STATUS_H

#include "arguments.h"

/* Prints "halbach-backend: PROBLEM" and returns EXIT_FAILED. */
int fail(const char *problem);

/* Returns the exit status. */
int run_status(const struct arguments *arguments);

#endif
