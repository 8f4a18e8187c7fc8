// SPDX-License-Identifier: Apache-2.0
// Measures the daemon process, for several methods that report its memory use.
#ifndef INF_DAEMON_SERVICE_SERVER_H
#define INF_DAEMON_SERVICE_SERVER_H

#include "daemon/service/state.h"

// Returns the resident memory of the daemon in bytes, as the kernel counts it; 0 if it is not
// known.
uint64_t inf_service_resident_bytes(const struct inf_service *service) INF_ON_LOOP;

#endif
