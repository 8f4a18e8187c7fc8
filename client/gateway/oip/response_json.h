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

// Writes the response to an inference as JSON. The caller frees *text with free(). is_binary[i] is
// set to true if the text has no data of output i, which the caller must then send behind the text.
enum inf_code inf_oip_response_encode(const struct inf_oip_request *request,
                                      const inferd_result *result, char **text, size_t *size,
                                      bool is_binary[INF_LIMIT_TENSORS],
                                      struct inf_error *err) INF_NODISCARD;

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
