// SPDX-License-Identifier: Apache-2.0
// Requests whose shared memory the daemon has refused: their tensors go through the socket.
#ifndef INF_CLIENT_LIB_INFER_FALLBACK_H
#define INF_CLIENT_LIB_INFER_FALLBACK_H

#include <stddef.h>
#include <stdint.h>

#include "client/lib/infer/call.h"

// Returns a region that the call uses and that the daemon has refused to register, or NULL if there
// is none.
const inferd_memory *inf_client_fallback_find_refused(const struct inf_client_call *call);

// Adds 1 to statistics.without_shared_memory, but only once for each call.
void inf_client_fallback_count(inferd_client *client, struct inf_client_call *call);

// Moves inputs in refused regions to the frame's data: gives each such input an offset after the
// first `data_bytes` bytes, and returns the new number of bytes. Sets sources[i] to the elements of
// input i, which the caller copies to that offset; NULL: input i is not moved.
size_t inf_client_fallback_move_inputs(const struct inf_client_call *call,
                                       struct inf_infer_request *message, size_t data_bytes,
                                       const uint8_t *sources[INF_LIMIT_TENSORS]);

// Changes the request so that the daemon sends outputs that were to be written to refused regions
// through the socket. Records in call->targets to which memory these outputs must be copied.
enum inf_code inf_client_fallback_move_outputs(struct inf_client_call *call,
                                               struct inf_infer_request *message,
                                               struct inf_error *err) INF_NODISCARD;

// Copies the outputs that arrived through the socket to the memory that call->targets names.
//
// INF_RANGE  (OUTPUT_TOO_SMALL) an output does not fit into its memory.
enum inf_code inf_client_fallback_copy_outputs(const struct inf_client_call *call,
                                               inferd_result *result,
                                               struct inf_error *err) INF_NODISCARD;

#endif
