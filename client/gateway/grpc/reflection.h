// SPDX-License-Identifier: Apache-2.0
// Server reflection: tells clients such as grpcurl which services the gateway has.
#ifndef INF_GATEWAY_GRPC_REFLECTION_H
#define INF_GATEWAY_GRPC_REFLECTION_H

#include "client/gateway/grpc/stream.h"

// Begins a call of ServerReflectionInfo, a method of grpc.reflection.v1.ServerReflection and of
// grpc.reflection.v1alpha.ServerReflection, whose messages are equal.
void inf_grpc_reflection_begin(struct inf_grpc_stream *stream);

#endif
