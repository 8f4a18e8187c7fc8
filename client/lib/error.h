// SPDX-License-Identifier: Apache-2.0
// The clock and the error structs of the library.
#ifndef INF_CLIENT_LIB_ERROR_H
#define INF_CLIENT_LIB_ERROR_H

#include <stdint.h>

#include "client/inferd.h"
#include "proto/core/status.h"

// Returns the time of CLOCK_MONOTONIC in nanoseconds.
uint64_t inf_client_now_ns(void);

// Copies an internal error to the caller's error struct, unless that is NULL, and returns the error
// code.
int inf_client_report_error(struct inferd_error *err, const struct inf_error *error);

#endif
