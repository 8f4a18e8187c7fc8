// SPDX-License-Identifier: Apache-2.0
// The memory that the daemon uses, and the most that it may use.
#ifndef INF_CLIENT_INFERCTL_CLI_MEMORY_USE_H
#define INF_CLIENT_INFERCTL_CLI_MEMORY_USE_H

#include "client/inferd.h"

struct memory_use {
    uint64_t used_bytes;
    uint64_t limit_bytes; // 0: no limit, or the daemon is older and does not report it
};

// Asks the daemon. If it does not answer, all numbers are 0.
struct memory_use memory_use_read(inferd_client *client);

#endif
