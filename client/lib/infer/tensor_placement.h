// SPDX-License-Identifier: Apache-2.0
// Decides where the tensors of a request are stored: in the frame, in shared memory of the caller,
// or in shared memory of the library.
#ifndef INF_CLIENT_LIB_INFER_TENSOR_PLACEMENT_H
#define INF_CLIENT_LIB_INFER_TENSOR_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/lib/infer/call.h"

// Sets the locations of the inputs in client->message, acquires call->input_region if inputs go
// into a region of the library, and copies these inputs. Returns in *inline_bytes the bytes of the
// other inputs, which go into the frame.
//
// INF_EXHAUSTED  no region was available, and the inputs are too large for the socket.
enum inf_code inf_client_tensor_placement_place_inputs(inferd_client *client,
                                                       struct inf_client_call *call,
                                                       const inferd_request *request,
                                                       size_t *inline_bytes,
                                                       struct inf_error *err) INF_NODISCARD;

// Copies the inputs that go into the frame to `data`, with zeros between and after them.
void inf_client_tensor_placement_copy_inline(const struct inf_infer_request *message,
                                             const inferd_request *request, uint8_t *data,
                                             size_t data_size);

// If a request names no outputs and at least one output of the model needs shared memory, lists all
// outputs of the model, because each location belongs to a named output. Sets call->outputs_listed.
// `metadata` may be NULL.
void inf_client_tensor_placement_list_outputs(struct inf_infer_request *message,
                                              struct inf_client_call *call,
                                              const struct inf_client_metadata *metadata);

// Reserves room in call->output_region for the outputs in client->message that are known to be
// large. If no region is available and `must` is false, the outputs arrive through the socket.
// `metadata` may be NULL.
//
// INF_EXHAUSTED  no region was available, and `must` is true.
enum inf_code inf_client_tensor_placement_place_outputs(inferd_client *client,
                                                        struct inf_client_call *call,
                                                        const struct inf_client_metadata *metadata,
                                                        bool must,
                                                        struct inf_error *err) INF_NODISCARD;

#endif
