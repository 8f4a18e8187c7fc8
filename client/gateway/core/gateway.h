// SPDX-License-Identifier: Apache-2.0
// The state of the gateway that its REST and gRPC code share.
#ifndef INF_GATEWAY_GATEWAY_H
#define INF_GATEWAY_GATEWAY_H

#include "client/gateway/core/link.h"
#include "client/gateway/core/question.h"
#include "client/gateway/core/sequences.h"
#include "client/gateway/core/slices.h"
#include "client/gateway/core/tokens.h"
#include "client/gateway/http/server.h"

// Numbers of inferences since the start of the gateway, by outcome.
struct inf_gateway_counters {
    uint64_t started, succeeded, failed, cancelled;
    // Total time of the inferences that succeeded or failed after they were started. The time of
    // one inference begins when its request is decoded and ends with the daemon's answer.
    uint64_t duration_ns;
};

struct inf_grpc_stream;

struct inf_gateway {
    void (*begin_call)(struct inf_grpc_stream *stream);  // handles the header fields of a call
    void (*handle_call)(struct inf_grpc_stream *stream); // handles a complete unary gRPC call
    struct inf_link *link;                               // connection for inferences
    struct inf_question_queue *questions;      // questions asked on the daemon's data socket
    struct inf_question_queue *administration; // questions asked on the daemon's admin socket
    struct inf_sequences *sequences;           // sequences of requests with state
    struct inf_slices *slices;                 // computations that are too long for one turn
    struct inf_tokens *tokens;                 // accepted bearer tokens; NULL: no token is needed
    struct inf_http_server *server;
    // Timeout of a request that sets none. A longer timeout of a request is reduced to this one.
    uint64_t timeout_ms;
    struct inf_gateway_counters counters;
};

#endif
