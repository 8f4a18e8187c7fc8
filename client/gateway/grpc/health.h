// SPDX-License-Identifier: Apache-2.0
// The service grpc.health.v1.Health. The gateway is healthy while it is connected to the daemon.
// The services that it knows are those of grpc_service.proto and this one, and "", which stands for
// all.
#ifndef INF_GATEWAY_GRPC_HEALTH_H
#define INF_GATEWAY_GRPC_HEALTH_H

#include "client/gateway/grpc/stream.h"

// Answers a call of Check with the status of the service that the message names, or with NOT_FOUND
// if the gateway does not know the service.
void inf_grpc_health_check(struct inf_grpc_stream *stream, struct inf_span message);

// Begins a call of Watch, whose header fields have arrived. The client receives the status of the
// service at once and at each change, until it ends the call or the gateway stops.
void inf_grpc_health_watch_begin(struct inf_grpc_stream *stream);

#endif
