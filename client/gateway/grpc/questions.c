// SPDX-License-Identifier: Apache-2.0
// gRPC methods that ask the daemon a question. The thread of a question queue asks the question,
// and the answer is sent as the response. If the call ends before, the answer is dropped.
#include "client/gateway/grpc/questions.h"

#include <stdlib.h>

#include "client/gateway/oip/request_proto.h"
#include "client/gateway/oip/response_proto.h"

struct call {
    struct inf_grpc_stream *stream;
    struct inf_question *question;
    bool only_ready; // list only models that are ready
};

void inf_grpc_reply_text(struct inf_grpc_stream *stream, char *text, size_t size)
{
    if (text == NULL) {
        inf_grpc_reply_error(stream, INFERD_RESOURCE_EXHAUSTED, "no memory for the answer");
        return;
    }
    stream->pieces[0] = (struct iovec){text, size};
    stream->piece_count = 1;
    inf_grpc_reply(stream, free, text);
}

void inf_grpc_reply_number(struct inf_grpc_stream *stream, uint64_t value)
{
    size_t size = 0;
    char *text = inf_oip_number_encode_proto(1, value, &size);
    inf_grpc_reply_text(stream, text, size);
}

static void abandon_call(void *context)
{
    struct call *call = context;
    inf_question_forget(call->question);
    free(call);
}

// Returns the response to a question that was answered without an error.
static char *encode_answer(const struct call *call, const struct inf_question *question,
                           size_t *size)
{
    switch (question->kind) {
    case INF_QUESTION_READY:
        return inf_oip_number_encode_proto(1, question->ready, size);
    case INF_QUESTION_DESCRIBE:
        return inf_oip_model_encode_proto(question->info, size);
    case INF_QUESTION_STATISTICS:
        return inf_oip_statistics_encode_proto(&question->statistics, size);
    case INF_QUESTION_MODELS:
        return inf_oip_index_encode_proto(question->rows, question->row_count, call->only_ready,
                                          size);
    default:
        return inf_oip_empty_encode_proto(size);
    }
}

static void handle_answer(void *context, struct inf_question *question)
{
    struct call *call = context;
    if (call != NULL) {
        struct inf_grpc_stream *stream = call->stream;
        size_t size = 0;
        stream->user = NULL;
        if (question->err.code != INFERD_OK) {
            inf_grpc_reply_error(stream, question->err.code, question->err.text);
        } else {
            char *text = encode_answer(call, question, &size);
            inf_grpc_reply_text(stream, text, size);
        }
        free(call);
    }
    inf_question_free(question);
}

// Decodes the message of a call to `question`.
static enum inf_code decode_question(struct call *call, struct inf_question *question,
                                     struct inf_span message, struct inf_error *err)
{
    bool is_load = question->kind == INF_QUESTION_LOAD;
    if (question->kind == INF_QUESTION_MODELS)
        return inf_oip_index_decode_proto(message, &call->only_ready, err);
    if (is_load || question->kind == INF_QUESTION_UNLOAD)
        return inf_oip_repository_decode_proto(message, is_load, question->model, err);
    return inf_oip_name_decode_proto(message, question->model, question->version, err);
}

static void ask_daemon(struct inf_grpc_stream *stream, struct inf_span message,
                       enum inf_question_kind kind)
{
    struct inf_gateway *gateway = stream->gateway;
    struct inf_question_queue *queue =
        kind >= INF_QUESTION_LOAD ? gateway->administration : gateway->questions;
    struct call *call = calloc(1, sizeof *call);
    struct inf_question *question = calloc(1, sizeof *question);
    struct inf_error err = {.code = INF_EXHAUSTED, .text = "too many questions wait"};
    if (call != NULL && question != NULL) {
        *call = (struct call){.stream = stream, .question = question};
        *question = (struct inf_question){.kind = kind, .callback = handle_answer, .context = call};
        if (decode_question(call, question, message, &err) == INF_OK &&
            inf_question_ask(queue, question)) {
            stream->user = call;
            stream->abandon = abandon_call;
            return;
        }
    }
    free(question);
    free(call);
    inf_grpc_reply_error(stream, (int)err.code, err.text);
}

void inf_grpc_question_model_ready(struct inf_grpc_stream *stream, struct inf_span message)
{
    ask_daemon(stream, message, INF_QUESTION_READY);
}

void inf_grpc_question_model(struct inf_grpc_stream *stream, struct inf_span message)
{
    ask_daemon(stream, message, INF_QUESTION_DESCRIBE);
}

void inf_grpc_question_statistics(struct inf_grpc_stream *stream, struct inf_span message)
{
    ask_daemon(stream, message, INF_QUESTION_STATISTICS);
}

void inf_grpc_question_index(struct inf_grpc_stream *stream, struct inf_span message)
{
    ask_daemon(stream, message, INF_QUESTION_MODELS);
}

void inf_grpc_question_load(struct inf_grpc_stream *stream, struct inf_span message)
{
    ask_daemon(stream, message, INF_QUESTION_LOAD);
}

void inf_grpc_question_unload(struct inf_grpc_stream *stream, struct inf_span message)
{
    ask_daemon(stream, message, INF_QUESTION_UNLOAD);
}
