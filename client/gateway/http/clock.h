// SPDX-License-Identifier: Apache-2.0
// The clock of the gateway. All times that are compared with each other must be from one clock.
#ifndef INF_GATEWAY_HTTP_CLOCK_H
#define INF_GATEWAY_HTTP_CLOCK_H

#include <stdint.h>

// Return the time of CLOCK_MONOTONIC, in milliseconds or nanoseconds. Usable on any thread.
uint64_t inf_http_clock_ms(void);
uint64_t inf_http_clock_ns(void);

#endif
