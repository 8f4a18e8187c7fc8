// SPDX-License-Identifier: Apache-2.0
// An inference request of the Open Inference Protocol, decoded to the types of libinferd.
#ifndef INF_GATEWAY_OIP_REQUEST_H
#define INF_GATEWAY_OIP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "client/inferd.h"
#include "proto/core/attributes.h"
#include "proto/core/limits.h"
#include "proto/core/span.h"
#include "proto/core/status.h"

// The names of the extensions that the gateway supports, with NULL at the end.
extern const char *const inf_oip_extensions[];

// Size of the name of a sequence with its NUL, in bytes. Triton's limit of a name is 128 bytes.
#define INF_OIP_SEQUENCE_BYTES 130u

// Zero-initialise, then decode. Names and data of the tensors are valid until
// inf_oip_request_fini(). Data of binary tensors points into the received bytes and is valid only
// as long as these bytes.
struct inf_oip_request {
    char model[INF_LIMIT_MODEL_NAME + 1];
    char version[24];                  // "": the newest version
    char id[INF_LIMIT_REQUEST_ID + 1]; // "": the request has none
    // The traceparent that the daemon gets, so that its spans belong to the client's trace. Version
    // 00 has 55 characters; "": none.
    char trace_parent[56];
    uint64_t timeout_ms; // 0: the request sets none
    inferd_priority priority;
    // Name of the sequence: '#' and a number, or '=' and a text; "": the request has none.
    char sequence[INF_OIP_SEQUENCE_BYTES];
    bool sequence_start, sequence_end;
    // Number of the bearer token of the client, to whose sequences the request belongs; 0: none.
    unsigned owner;
    size_t input_count, output_count;
    inferd_tensor inputs[INF_LIMIT_TENSORS];
    inferd_tensor outputs[INF_LIMIT_TENSORS]; // only the names are set; output_count 0: all
    bool output_is_binary[INF_LIMIT_TENSORS];
    bool all_binary; // outputs without their own setting are sent as binary data
    // Own the data decoded from JSON or typed contents, by input: memory of the process, or shared
    // memory.
    void *buffers[INF_LIMIT_TENSORS];
    inferd_memory *memories[INF_LIMIT_TENSORS];
    char *names;  // owns the names of tensors of a protobuf request
    json_t *json; // owns the names of tensors of a JSON request
};

// Decodes a request in JSON. `binary` holds the bytes behind the JSON text: the data of the inputs
// that have a binary_data_size, which then points into `binary`. binary.data is NULL if the request
// has no Inference-Header-Content-Length. The caller calls inf_oip_request_fini() even if the
// function fails.
enum inf_code inf_oip_request_decode(struct inf_oip_request *request, struct inf_span json,
                                     struct inf_span binary, struct inf_error *err) INF_NODISCARD;

// Fills *to for libinferd. It refers to the strings and tensors of `request`. Its id is `other_id`
// if the request has none; `other_id` may be NULL.
void inf_oip_request_build(const struct inf_oip_request *request, const char *other_id,
                           inferd_request *to);

// Frees what the request owns.
void inf_oip_request_fini(struct inf_oip_request *request);

// Sets the shape of a tensor, and its size in bytes from its data type; for BYTES that of empty
// strings. Fails if there are too many dimensions, if a dimension is negative or too large, or if
// the tensor is too large.
enum inf_code inf_oip_tensor_set_shape(inferd_tensor *tensor, const int64_t *dims, size_t rank,
                                       struct inf_error *err) INF_NODISCARD;

// Set the priority and the timeout of a request from parameters of the protocol. Priority 0 (the
// default) and 2 become NORMAL, 1 becomes HIGH, and larger numbers become LOW. `timeout_us` is in
// microseconds; 0 means no timeout.
void inf_oip_request_set_priority(struct inf_oip_request *request, uint64_t priority);
void inf_oip_request_set_timeout(struct inf_oip_request *request, uint64_t timeout_us);

// Set the sequence of a request from the parameter sequence_id: a number (0: no sequence) or a text
// (empty: no sequence). inf_oip_request_set_sequence_name() fails if the text is too long.
void inf_oip_request_set_sequence_number(struct inf_oip_request *request, uint64_t number);
enum inf_code inf_oip_request_set_sequence_name(struct inf_oip_request *request,
                                                struct inf_span name,
                                                struct inf_error *err) INF_NODISCARD;

// Fails if the parameter `name` is one that the protocol defines and inferd does not support.
// Accepts all other names.
enum inf_code inf_oip_parameter_check(const char *name, struct inf_error *err) INF_NODISCARD;

// Fails if the parameter `name` of a load (`is_load`) or an unload has no meaning for inferd: a
// configuration ("config") or files of a model ("file:..."), which the protocol defines and inferd
// does not support, or an unknown name. Accepts "unload_dependents": no model depends on another.
enum inf_code inf_oip_repository_parameter_check(const char *name, bool is_load,
                                                 struct inf_error *err) INF_NODISCARD;

#endif
