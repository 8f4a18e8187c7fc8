// SPDX-License-Identifier: Apache-2.0
// Sending blocking requests and questions again.
//
// A blocking call retries by itself instead of using the retry queue, because it can block for the
// daemon's retry_after_ms and until there is a new connection.
#ifndef INF_CLIENT_LIB_INFER_RETRY_WAIT_H
#define INF_CLIENT_LIB_INFER_RETRY_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "client/inferd.h"

struct inf_client_retry_wait {
    uint64_t start_ns;    // when the caller's call began
    uint64_t deadline_ns; // when the caller's call must end; UINT64_MAX: no deadline
    bool unsent; // the connection had failed before the last attempt, so that attempt sent nothing
};

// Blocks until a call that failed with `err` may be sent again. Reconnects if the connection has
// failed. Returns false if the call may have been started, or there is not enough time. In that
// case `err` keeps the reason, or is replaced if connecting failed.
//
// If the model is loading, the function waits until the deadline. After other failures the limit of
// inferd_set_retry() applies too.
bool inf_client_retry_wait(inferd_client *client, const struct inf_client_retry_wait *wait,
                           struct inferd_error *err);

#endif
