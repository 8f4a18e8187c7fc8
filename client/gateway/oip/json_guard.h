// SPDX-License-Identifier: Apache-2.0
// Parses small JSON texts of clients within bounds on their size and depth.
#ifndef INF_GATEWAY_OIP_JSON_GUARD_H
#define INF_GATEWAY_OIP_JSON_GUARD_H

#include <jansson.h>

#include "proto/core/attributes.h"
#include "proto/core/span.h"
#include "proto/core/status.h"

// Maximum size of the JSON text of an inference request in bytes. Clients can send larger tensors
// as binary data.
#define INF_OIP_JSON_BYTES ((size_t)16 << 20)
// Maximum size of what jansson parses: a request without the data of its inputs. A text of this
// size takes at most about 1 ms, in which the gateway serves no other client, and 1 MiB of memory.
#define INF_OIP_JSON_OUTLINE_BYTES ((size_t)16 << 10)
// Maximum depth of nested arrays and objects. A tensor needs one array per dimension, inside the
// arrays and objects of the request.
#define INF_OIP_JSON_DEPTH 16u

// Parses a JSON text. Fails if the text exceeds INF_OIP_JSON_OUTLINE_BYTES or INF_OIP_JSON_DEPTH,
// if an object has two members of the same name, or if an integer does not fit 64 bits with a sign.
// The caller frees *json with json_decref().
enum inf_code inf_oip_json_parse(struct inf_span text, json_t **json,
                                 struct inf_error *err) INF_NODISCARD;

#endif
