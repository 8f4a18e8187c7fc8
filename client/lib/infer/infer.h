// SPDX-License-Identifier: Apache-2.0
// Sends inferences to the daemon.
#ifndef INF_CLIENT_LIB_INFER_INFER_H
#define INF_CLIENT_LIB_INFER_INFER_H

#include <stdbool.h>

#include "client/lib/infer/call.h"

// What to call when the answer to an inference arrives.
struct inf_client_infer_target {
    inferd_callback callback;
    void *context;
    bool blocking; // a blocking function waits for the callback, and retries by itself
};

// Sends an inference. If there is no connection and the request may be retried, queues the request
// until there is a connection.
//
// INF_INVALID      the request is malformed, or does not fit its model.
// INF_EXHAUSTED    (QUOTA_REQUESTS, QUOTA_BYTES) the daemon's credit is used up.
// INF_UNAVAILABLE  there is no connection, and the request may not wait for one.
enum inf_code inf_client_infer_start(inferd_client *client, const inferd_request *request,
                                     const struct inf_client_infer_target *target,
                                     struct inf_client_call **out_call,
                                     struct inf_error *err) INF_NODISCARD;

// Sends an inference again, with its outputs placed by the sizes in the metadata cache and with the
// remaining timeout.
enum inf_code inf_client_infer_resend(inferd_client *client, struct inf_client_call *call,
                                      struct inf_error *err) INF_NODISCARD;

#endif
