// SPDX-License-Identifier: Apache-2.0
// Handles the inference requests of the REST interface.
#ifndef INF_GATEWAY_REST_INFERENCE_H
#define INF_GATEWAY_REST_INFERENCE_H

#include "client/gateway/core/gateway.h"

// Allocates shared memory for a body of `size` bytes with binary tensors, creates an inference that
// owns the memory, and stores the inference in exchange->user. Returns NULL, and stores nothing, if
// the binary tensors are absent or smaller than 16 KiB, or if no shared memory is available.
uint8_t *inf_rest_inference_place(struct inf_gateway *gateway, struct inf_http_exchange *exchange,
                                  size_t size);

// Runs a model on the inputs in the body of the exchange, and responds when the daemon has
// answered. `version` may be empty: the newest version.
void inf_rest_inference_run(struct inf_gateway *gateway, struct inf_http_exchange *exchange,
                            struct inf_span model, struct inf_span version);

#endif
