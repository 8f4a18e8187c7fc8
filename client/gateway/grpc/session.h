// SPDX-License-Identifier: Apache-2.0
// HTTP/2 connections of the gateway, which carry gRPC calls.
#ifndef INF_GATEWAY_GRPC_SESSION_H
#define INF_GATEWAY_GRPC_SESSION_H

#include "client/gateway/http/server.h"

// The functions that serve a connection which the HTTP server hands over because it speaks HTTP/2.
extern const struct inf_http_takeover inf_grpc_takeover;

#endif
