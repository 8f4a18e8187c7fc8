// SPDX-License-Identifier: Apache-2.0
// Parses JSON texts of clients within bounds on their size, depth and number of values.
#ifndef INF_GATEWAY_OIP_JSON_GUARD_H
#define INF_GATEWAY_OIP_JSON_GUARD_H

#include <jansson.h>

#include "proto/core/attributes.h"
#include "proto/core/span.h"
#include "proto/core/status.h"

// Maximum size of a JSON text in bytes. Parsing a text of this size takes about 0.1 s. During this
// time the gateway serves no other client. Clients can send larger tensors as binary data.
#define INF_OIP_JSON_BYTES ((size_t)16 << 20)
// Maximum depth of nested arrays and objects. A tensor needs one array per dimension, inside the
// arrays and objects of the request.
#define INF_OIP_JSON_DEPTH 16u
// Maximum number of arrays and objects in a text. Each takes 128 bytes of memory.
#define INF_OIP_JSON_CONTAINERS ((size_t)256 << 10)
// Maximum number of values in a text. Each takes 40 bytes of memory.
#define INF_OIP_JSON_VALUES ((size_t)2 << 20)

// Parses a JSON text. Fails if the text exceeds a limit, if an object has two members of the same
// name, or if an integer does not fit 64 bits with a sign. The caller frees *json with
// json_decref().
enum inf_code inf_oip_json_parse(struct inf_span text, json_t **json,
                                 struct inf_error *err) INF_NODISCARD;

#endif
