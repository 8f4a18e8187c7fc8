// SPDX-License-Identifier: Apache-2.0
// The bytes of one inference for bench_gateway, in the three forms that the gateway accepts.
#ifndef INF_TESTS_TOOLS_BENCH_GATEWAY_REQUESTS_H
#define INF_TESTS_TOOLS_BENCH_GATEWAY_REQUESTS_H

#include <stddef.h>
#include <stdint.h>

enum gateway_form {
    GATEWAY_BINARY, // REST with a binary tensor
    GATEWAY_JSON,   // REST with the numbers as text
    GATEWAY_GRPC,   // gRPC with raw contents
    GATEWAY_FORMS
};

// Makes a request for the model "null" with an FP32 tensor of `tensor_bytes` bytes: a whole request
// of HTTP/1.1, or a gRPC message with its prefix. The caller frees the result, and *size is its
// size.
uint8_t *gateway_request_make(enum gateway_form form, size_t tensor_bytes, size_t *size);

#endif
