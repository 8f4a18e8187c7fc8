// SPDX-License-Identifier: Apache-2.0
// Encodes responses of the Open Inference Protocol in JSON.
#ifndef INF_GATEWAY_OIP_RESPONSE_JSON_H
#define INF_GATEWAY_OIP_RESPONSE_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include "client/gateway/oip/request.h"
#include "client/inferd.h"
#include "proto/core/attributes.h"
#include "proto/core/status.h"

// Maximum number of elements of an output in JSON. Clients can ask for larger outputs as binary
// data.
#define INF_OIP_JSON_VALUES ((size_t)2 << 20)

// Writes the response to an inference as JSON. Zero-initialise, and set the fields of the first
// group, which must stay valid.
struct inf_oip_response_encoder {
    const struct inf_oip_request *request;
    const inferd_result *result;
    // The text so far, which belongs to the encoder unless the caller takes it and sets NULL.
    char *text;
    size_t size;
    size_t capacity; // allocated bytes of `text`, which callers charge
    // is_binary[i]: the text has no data of output i, which the caller must send behind the text.
    bool is_binary[INF_LIMIT_TENSORS];
    // Internal state.
    size_t output;  // index of the output that is being written
    size_t element; // index of its next element
    size_t offset;  // of the next element of a tensor of strings, in bytes
    bool in_data;   // the text ends within the data of an output
};

// Writes the next part of the text, with about `elements_max` elements. Sets *done to true if the
// text is complete. Fails if an output has more than INF_OIP_JSON_VALUES elements or elements of
// FP16 or BF16, or strings that are not UTF-8, and the client did not ask for binary data; or if
// there is no memory.
enum inf_code inf_oip_response_encode(struct inf_oip_response_encoder *encoder, size_t elements_max,
                                      bool *done, struct inf_error *err) INF_NODISCARD;

// Frees the text.
void inf_oip_response_encoder_fini(struct inf_oip_response_encoder *encoder);

// Return the JSON text of an error, of the server's metadata, of a model's metadata and of the list
// of models, or NULL if there is no memory. The caller frees the text with free(). `only_ready`
// leaves out models that are not ready.
char *inf_oip_error_encode(const char *message);
char *inf_oip_server_encode(const char *version);
char *inf_oip_model_encode(const inferd_model_info *info);
char *inf_oip_index_encode(const inferd_model_row *rows, size_t count, bool only_ready);

// Returns the HTTP status code for an error of libinferd or of the daemon.
int inf_oip_http_status(const struct inferd_error *err);

// Converts an error of the gateway's own functions to an error of libinferd.
void inf_oip_error_convert(struct inferd_error *to, const struct inf_error *from);

#endif
