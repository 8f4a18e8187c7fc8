// SPDX-License-Identifier: Apache-2.0
// Decompresses a message of a gRPC call in slices of the event loop.
#ifndef INF_GATEWAY_GRPC_INFLATER_H
#define INF_GATEWAY_GRPC_INFLATER_H

#include "client/gateway/core/gateway.h"
#include "client/gateway/http/content_coding.h"
#include "proto/core/span.h"
#include "proto/core/status.h"

// Zero-initialise. Holds one decompressed message.
struct inf_grpc_inflater {
    struct inf_gateway *gateway;
    struct inf_slice_task task;
    struct inf_http_coder coder;
    size_t charged; // bytes of the decompressed message that are charged to all bodies
    // Receives the message, or the error if err->code is not INF_OK. The message is valid until
    // inf_grpc_inflater_fini(). May free the inflater.
    void (*done)(void *context, struct inf_span message, const struct inf_error *err);
    void *context;
};

// Begins to decompress `message`, which must stay valid until done(). Calls done() once: before the
// function returns if the message is small, otherwise later.
void inf_grpc_inflate(struct inf_grpc_inflater *inflater, struct inf_gateway *gateway,
                      enum inf_http_coding coding, struct inf_span message,
                      void (*done)(void *context, struct inf_span message,
                                   const struct inf_error *err),
                      void *context);

// Frees the decompressed message, or stops decompressing it; then done() is not called.
void inf_grpc_inflater_fini(struct inf_grpc_inflater *inflater);

#endif
