// SPDX-License-Identifier: Apache-2.0
// Encodes responses of the Open Inference Protocol in protobuf, with the prefix of a gRPC message.
#ifndef INF_GATEWAY_OIP_RESPONSE_PROTO_H
#define INF_GATEWAY_OIP_RESPONSE_PROTO_H

#include <stddef.h>
#include <sys/uio.h>

#include "client/gateway/oip/request.h"
#include "client/gateway/oip/statistics.h"

// Maximum number of pieces of a response: one for the fields before the tensors' data, and for each
// output one for its protobuf tag and one for its data.
#define INF_OIP_PROTO_PIECES (1 + 2 * INF_LIMIT_TENSORS)

// Writes the ModelInferResponse for a result as pieces or, if `in_stream`, the
// ModelStreamInferResponse that contains it. Pieces point into *text, or into `result`
// for the data of tensors. The caller frees *text with free() and keeps `result` until the pieces
// are sent.
enum inf_code inf_oip_response_encode_proto(const struct inf_oip_request *request,
                                            const inferd_result *result, bool in_stream,
                                            char **text, struct iovec pieces[INF_OIP_PROTO_PIECES],
                                            size_t *piece_count,
                                            struct inf_error *err) INF_NODISCARD;

// Returns a ModelStreamInferResponse with an error message and the name of the model and the id of
// the request, like the functions below.
char *inf_oip_stream_error_encode_proto(const struct inf_oip_request *request, const char *message,
                                        size_t *size);

// Return a message with its prefix, or NULL if there is no memory: a message whose field `field` is
// a number, ServerMetadataResponse, and ModelMetadataResponse. *size is its size in bytes. The
// caller frees the message with free().
char *inf_oip_number_encode_proto(unsigned field, uint64_t value, size_t *size);
char *inf_oip_server_encode_proto(const char *version, size_t *size);
char *inf_oip_model_encode_proto(const inferd_model_info *info, size_t *size);

// Like the functions above: an empty message, RepositoryIndexResponse and ModelStatisticsResponse.
// `only_ready` leaves out models that are not ready.
char *inf_oip_empty_encode_proto(size_t *size);
char *inf_oip_index_encode_proto(const inferd_model_row *rows, size_t count, bool only_ready,
                                 size_t *size);
char *inf_oip_statistics_encode_proto(const struct inf_oip_statistics *statistics, size_t *size);

#endif
