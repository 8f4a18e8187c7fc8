// SPDX-License-Identifier: Apache-2.0
// The unary methods of GRPCInferenceService that ask the daemon about its models, and those that
// load and unload models.
#ifndef INF_GATEWAY_GRPC_QUESTIONS_H
#define INF_GATEWAY_GRPC_QUESTIONS_H

#include "client/gateway/grpc/stream.h"

// Each of the functions below decodes the message of a call, asks the daemon, and answers the call
// when the daemon has answered.
void inf_grpc_question_model_ready(struct inf_grpc_stream *stream, struct inf_span message);
void inf_grpc_question_model(struct inf_grpc_stream *stream, struct inf_span message);
void inf_grpc_question_statistics(struct inf_grpc_stream *stream, struct inf_span message);
void inf_grpc_question_index(struct inf_grpc_stream *stream, struct inf_span message);
void inf_grpc_question_load(struct inf_grpc_stream *stream, struct inf_span message);
void inf_grpc_question_unload(struct inf_grpc_stream *stream, struct inf_span message);

// Answers with one message, and frees its `text` with free() when it was sent. If `text` is NULL,
// answers that there is no memory.
void inf_grpc_reply_text(struct inf_grpc_stream *stream, char *text, size_t size);

// Answers with a message whose field 1 is a number.
void inf_grpc_reply_number(struct inf_grpc_stream *stream, uint64_t value);

#endif
