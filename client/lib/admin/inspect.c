// SPDX-License-Identifier: Apache-2.0
// Inspecting a model node by node (public function).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/inferd.h"
#include "client/lib/admin/question.h"
#include "client/lib/client.h"
#include "client/lib/client_lock.h"
#include "client/lib/error.h"
#include "proto/core/span.h"

struct listener {
    inferd_client *client;
    inferd_node_callback callback;
    void *context;
};

static void copy_node(inferd_node *to, const struct inf_node_entry *from)
{
    INF_COPY_TEXT(to->name, from->name);
    INF_COPY_TEXT(to->op, from->op);
    INF_COPY_TEXT(to->kernel, from->kernel);
    INF_COPY_TEXT(to->device, from->device);
    INF_COPY_TEXT(to->shape, from->shape);
    INF_COPY_TEXT(to->inputs, from->inputs);
    INF_COPY_TEXT(to->verdict, from->verdict);
    to->start_ns = from->start_ns;
    to->time_ns = from->time_ns;
    to->macs = from->macs;
    to->bytes = from->bytes;
    to->nan_count = from->nan_count;
    to->inf_count = from->inf_count;
    to->min = from->min;
    to->max = from->max;
    to->max_abs = from->max_abs;
    to->max_rel = from->max_rel;
    to->threads = from->threads;
    to->dot_share = from->dot_share;
}

static enum inf_code handle_nodes(void *context, const union inf_message *message, bool final,
                                  struct inf_error *err)
{
    (void)err;
    const struct listener *listener = context;
    const struct inf_load_progress *progress = &message->load_progress;
    if (final)
        return INF_OK;
    // Copy the nodes, because the callback may call functions of the library, and these overwrite
    // client->message, which owns the nodes.
    inferd_node *nodes = calloc(INF_MAX(progress->node_count, 1u), sizeof *nodes);
    uint32_t count = progress->node_count;
    if (nodes == NULL)
        return inf_client_question_fail_memory(err);
    for (uint32_t i = 0; i < count; i++)
        copy_node(&nodes[i], &progress->nodes[i]);
    unsigned depth = inf_client_lock_begin_callback(listener->client);
    for (uint32_t i = 0; i < count; i++)
        listener->callback(listener->context, &nodes[i]);
    inf_client_lock_end_callback(listener->client, depth);
    free(nodes);
    return INF_OK;
}

// Fills the inputs of an inspect request, and their offsets in the data segment. Returns the size
// of the data segment.
static size_t describe_inputs(struct inf_infer_request *infer,
                              const inferd_inspect_request *request)
{
    size_t used = 0;
    infer->input_count = (uint32_t)request->input_count;
    for (size_t i = 0; i < request->input_count; i++) {
        const inferd_tensor *tensor = &request->inputs[i];
        struct inf_tensor_entry *entry = &infer->inputs[i];
        entry->name = tensor->name;
        entry->dtype = (enum inf_dtype)tensor->dtype;
        entry->shape.rank = (int32_t)tensor->rank;
        memcpy(entry->shape.dims, tensor->shape, sizeof entry->shape.dims);
        used = (used + INF_FRAME_DATA_ALIGNMENT - 1) / INF_FRAME_DATA_ALIGNMENT *
               INF_FRAME_DATA_ALIGNMENT;
        entry->location =
            (struct inf_location){.present = true, .offset = used, .length = tensor->size};
        used += tensor->size;
    }
    return used;
}

static int send_request(inferd_client *client, const inferd_inspect_request *request,
                        struct inf_infer_request *infer, struct listener *listener,
                        struct inferd_error *err)
{
    size_t data_bytes = describe_inputs(infer, request);
    if (data_bytes > INF_LIMIT_DATA_BYTES)
        return inf_client_report_error(
            err, &(struct inf_error){.code = INF_EXHAUSTED,
                                     .reason = INF_REASON_FRAME_TOO_LARGE,
                                     .text = "inputs of more than 1 MiB cannot be looked into"});
    char *data = calloc(1, INF_MAX(data_bytes, (size_t)1));
    if (data == NULL)
        return inf_client_report_error(
            err, &(struct inf_error){.code = INF_EXHAUSTED, .text = "no memory for the inputs"});
    for (size_t i = 0; i < request->input_count; i++)
        if (request->inputs[i].size > 0)
            memcpy(data + infer->inputs[i].location.offset, request->inputs[i].data,
                   request->inputs[i].size);
    const struct inf_client_question question = {
        .method = INF_METHOD_MODEL_INSPECT,
        .kind = INF_MESSAGE_INFER_REQUEST,
        .infer = infer,
        .data = data,
        .data_bytes = data_bytes,
        .reply_kind = INF_MESSAGE_EMPTY,
        .on_reply = handle_nodes,
        .context = listener,
    };
    int code = inf_client_question_ask(client, &question, err);
    free(data);
    return code;
}

int inferd_inspect(inferd_client *client, const inferd_inspect_request *request,
                   inferd_node_callback callback, void *context, struct inferd_error *err)
{
    struct listener listener = {client, callback, context};
    if (request->model == NULL || !inf_model_reference_valid(request->model))
        return inf_client_question_refuse_name(err, request->model);
    if (request->input_count > INF_LIMIT_TENSORS)
        return inf_client_report_error(
            err, &(struct inf_error){.code = INF_INVALID, .text = "more than 64 inputs"});
    struct inf_infer_request *infer = calloc(1, sizeof *infer);
    if (infer == NULL)
        return inf_client_report_error(
            err, &(struct inf_error){.code = INF_EXHAUSTED, .text = "no memory for the request"});
    infer->model_name = request->model;
    infer->model_version = request->version;
    infer->device = request->device;
    infer->mode = request->mode;
    infer->against = request->against;
    infer->precision = request->precision;
    infer->tolerance = request->tolerance;
    int code = send_request(client, request, infer, &listener, err);
    free(infer);
    return code;
}
