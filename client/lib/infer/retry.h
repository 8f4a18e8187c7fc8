// SPDX-License-Identifier: Apache-2.0
// Sending requests of the retry queue again.
#ifndef INF_CLIENT_LIB_INFER_RETRY_H
#define INF_CLIENT_LIB_INFER_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "client/inferd.h"

// Ends a queued call as cancelled. Returns false if no queued call has this handle.
bool inf_client_retry_cancel(inferd_client *client, uint64_t handle);

// Sends the queued calls that are due, and reconnects if necessary. Never blocks.
void inf_client_retry_send(inferd_client *client);

#endif
