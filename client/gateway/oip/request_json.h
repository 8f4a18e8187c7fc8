// SPDX-License-Identifier: Apache-2.0
// Decodes an inference request in JSON, a bounded number of bytes at a time.
#ifndef INF_GATEWAY_OIP_REQUEST_JSON_H
#define INF_GATEWAY_OIP_REQUEST_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include "client/gateway/oip/elements_json.h"
#include "client/gateway/oip/json_outline.h"
#include "client/gateway/oip/request.h"
#include "proto/core/attributes.h"
#include "proto/core/limits.h"
#include "proto/core/span.h"
#include "proto/core/status.h"

// Zero-initialise, and set the fields of the first group. The request must be zero-initialised and
// is to be freed with inf_oip_request_fini(), even if decoding fails.
struct inf_oip_json_decoder {
    struct inf_oip_request *request;
    // The bytes behind the JSON text: the data of the inputs that have a binary_data_size. `data`
    // is NULL if there are none. outline.text is the JSON text. Both must stay valid.
    struct inf_span binary;
    struct inf_json_outline outline;
    // Allocates shared memory for large inputs; NULL: all inputs are in memory of the process.
    inferd_client *client;
    // Called before `size` bytes are allocated for an input. Returns false if they exceed a limit;
    // then the request fails. NULL: there is no limit.
    bool (*charge)(void *context, size_t size);
    void *context;
    // Internal state.
    size_t found;                     // number of inputs whose elements are in JSON
    size_t inputs[INF_LIMIT_TENSORS]; // their indexes in the request
    size_t next;                      // how many of them are complete
    struct inf_json_elements elements;
};

// Decodes the next part of a request, which costs about as much as reading `bytes_max` bytes of
// data. Sets *done to true if the request is decoded.
enum inf_code inf_oip_json_decode(struct inf_oip_json_decoder *decoder, size_t bytes_max,
                                  bool *done, struct inf_error *err) INF_NODISCARD;

// Frees the memory of the decoder. The decoded request stays valid.
void inf_oip_json_decoder_fini(struct inf_oip_json_decoder *decoder);

#endif
