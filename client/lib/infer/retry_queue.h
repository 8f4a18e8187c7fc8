// SPDX-License-Identifier: Apache-2.0
// The queue of asynchronous requests that wait to be sent again, in the order in which they failed.
#ifndef INF_CLIENT_LIB_INFER_RETRY_QUEUE_H
#define INF_CLIENT_LIB_INFER_RETRY_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "client/lib/infer/call.h"
#include "proto/core/status.h"

// Requests that wait to be sent again. Zero-initialise.
struct inf_client_retry_queue {
    // List of calls linked by `next`. It is short, so appending may walk to its end.
    struct inf_client_call *head;
    // How long requests are sent again (inferd_set_retry()); 0: they are not sent again.
    uint64_t limit_ns;
};

// Returns whether a request that failed with `code` and `reason` was certainly not started, so that
// sending it again cannot run it twice.
bool inf_client_retry_is_safe(enum inf_code code, enum inf_reason reason);

// Appends a call that was removed from the table of calls and was not started. Returns false, and
// does not change the call, if the call must not be sent again or has no time left.
bool inf_client_retry_queue_push(inferd_client *client, struct inf_client_call *call,
                                 const struct inf_error *error, uint32_t retry_after_ms);

#endif
