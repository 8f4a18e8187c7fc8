// SPDX-License-Identifier: Apache-2.0
// Decodes requests of the Open Inference Protocol in protobuf.
#ifndef INF_GATEWAY_OIP_REQUEST_PROTO_H
#define INF_GATEWAY_OIP_REQUEST_PROTO_H

#include "client/gateway/oip/request.h"

// Decodes a ModelInferRequest. The data of inputs with raw contents points into `message`. The
// caller calls inf_oip_request_fini() even if the function fails.
enum inf_code inf_oip_request_decode_proto(struct inf_oip_request *request, struct inf_span message,
                                           struct inf_error *err) INF_NODISCARD;

// Decodes a RepositoryIndexRequest. *only_ready is set to its field `ready`.
enum inf_code inf_oip_index_decode_proto(struct inf_span message, bool *only_ready,
                                         struct inf_error *err) INF_NODISCARD;

// Decodes a RepositoryModelLoadRequest (`is_load`) or a RepositoryModelUnloadRequest. Fails if it
// has a parameter that inf_oip_repository_parameter_check() refuses.
enum inf_code inf_oip_repository_decode_proto(struct inf_span message, bool is_load,
                                              char model[INF_LIMIT_MODEL_NAME + 1],
                                              struct inf_error *err) INF_NODISCARD;

// Decodes a message in which field 1 is the name of a model and field 2 its version. A string is
// empty if its field is absent.
enum inf_code inf_oip_name_decode_proto(struct inf_span message,
                                        char model[INF_LIMIT_MODEL_NAME + 1], char version[24],
                                        struct inf_error *err) INF_NODISCARD;

#endif
