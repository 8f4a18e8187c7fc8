// SPDX-License-Identifier: Apache-2.0
// Requests whose shared memory the daemon has refused: their tensors go through the socket.
#ifndef INF_CLIENT_LIB_INFER_FALLBACK_H
#define INF_CLIENT_LIB_INFER_FALLBACK_H

#include <stddef.h>
#include <stdint.h>

#include "client/lib/infer/call.h"

// Returns a region of the call that the daemon has refused, or NULL.
const inferd_memory *inf_client_fallback_find_refused(const struct inf_client_call *call);

// Counts the call in statistics.without_shared_memory, once.
void inf_client_fallback_count(inferd_client *client, struct inf_client_call *call);

// Assigns inputs in refused regions an offset after the `data_bytes` of the frame's data, and
// returns the new number of bytes. Sets sources[i] to the elements of input i, which the caller
// copies to that offset; NULL: input i is not moved.
size_t inf_client_fallback_move_inputs(const struct inf_client_call *call,
                                       struct inf_infer_request *message, size_t data_bytes,
                                       const uint8_t *sources[INF_LIMIT_TENSORS]);

// Requests outputs of refused regions through the socket, and records in call->targets where to
// copy them.
enum inf_code inf_client_fallback_move_outputs(struct inf_client_call *call,
                                               struct inf_infer_request *message,
                                               struct inf_error *err) INF_NODISCARD;

// Copies outputs of the answer to call->targets.
//
// INF_RANGE  (OUTPUT_TOO_SMALL) an output does not fit.
enum inf_code inf_client_fallback_copy_outputs(const struct inf_client_call *call,
                                               inferd_result *result,
                                               struct inf_error *err) INF_NODISCARD;

#endif
