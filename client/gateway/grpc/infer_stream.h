// SPDX-License-Identifier: Apache-2.0
// The method ModelStreamInfer: many inferences in one call.
#ifndef INF_GATEWAY_GRPC_INFER_STREAM_H
#define INF_GATEWAY_GRPC_INFER_STREAM_H

#include "client/gateway/grpc/stream.h"

// Maximum number of inferences of one call that are in flight or whose response is not sent. If it
// is reached, the gateway takes no further message of the call, and the client's flow control
// window closes.
#define INF_GRPC_OUTSTANDING_MAX 16u

// Begins a call of ModelStreamInfer, whose header fields have arrived.
void inf_grpc_infer_stream_begin(struct inf_grpc_stream *stream);

#endif
