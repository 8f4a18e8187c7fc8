// SPDX-License-Identifier: Apache-2.0
// Sending blocking requests and questions again.
//
// A blocking call retries by itself instead of using the retry queue, because it can also wait: for
// the daemon's retry_after_ms, and for a new connection.
#ifndef INF_CLIENT_LIB_INFER_RETRY_WAIT_H
#define INF_CLIENT_LIB_INFER_RETRY_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "client/inferd.h"

struct inf_client_retry_wait {
    uint64_t start_ns;    // when the caller called
    uint64_t deadline_ns; // of the call; UINT64_MAX: none
    bool unsent;          // the connection had failed before the last attempt
};

// Blocks until a call that failed with `err` may be sent again. Reconnects if the connection has
// failed. Returns false if the call may have been started, or there is not enough time. `err` then
// says why: it is replaced if the connection could not be made.
//
// A model that is loading is waited for until the deadline. After other failures the limit of
// inferd_set_retry() holds too.
bool inf_client_retry_wait(inferd_client *client, const struct inf_client_retry_wait *wait,
                           struct inferd_error *err);

#endif
