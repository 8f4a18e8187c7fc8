// SPDX-License-Identifier: Apache-2.0
// ModelStreamInfer. Each message of the request starts an inference as soon as it has arrived, so
// that several run at the same time. Responses are sent in the order of the requests: each message
// has an item, which keeps its response until all earlier responses are sent. A message that fails
// gets a response with `error_message`, and the call goes on. An error of the call itself, such as
// a message with an unknown coding, becomes the status of the call after the responses to earlier
// messages.
//
//   body --take_messages()--> item (runs) --> item (done) --load_response()--> nghttp2
#include "client/gateway/grpc/infer_stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "client/gateway/core/run.h"
#include "client/gateway/http/clock.h"
#include "client/gateway/oip/request_proto.h"
#include "client/gateway/oip/response_proto.h"

// One message and its response.
struct item {
    struct infer_stream *owner;
    TAILQ_ENTRY(item) link;
    uint8_t *bytes;                    // the message with its prefix
    size_t charged;                    // bytes of `bytes` that are charged to all bodies
    struct inf_grpc_inflater inflater; // the message, if it is compressed
    bool inflates;                     // the message is being decompressed
    struct inf_oip_request request;
    struct inf_run *run; // NULL: the inference was not started
    bool done;           // the response is ready
    char *text;
    struct iovec pieces[INF_GRPC_PIECES];
    size_t piece_count;
};

struct infer_stream {
    struct inf_grpc_stream *stream;
    TAILQ_HEAD(, item) items; // in the order of the messages
    unsigned count;           // number of items
    struct item *sending;     // the first item, if its response is being sent; NULL: none
};

static void free_item(struct item *item)
{
    struct infer_stream *owner = item->owner;
    TAILQ_REMOVE(&owner->items, item, link);
    owner->count--;
    inf_run_free(item->run);
    inf_oip_request_fini(&item->request);
    inf_grpc_inflater_fini(&item->inflater);
    inf_http_server_release(owner->stream->gateway->server, item->charged);
    free(item->bytes);
    free(item->text);
    free(item);
}

// Ends a call: after its last response, or because the client cancelled it or is gone.
static void abandon_stream(void *context)
{
    struct infer_stream *owner = context;
    while (!TAILQ_EMPTY(&owner->items))
        free_item(TAILQ_FIRST(&owner->items));
    free(owner);
}

// Determines whether the client has a response to read.
static void update_ready(struct infer_stream *owner)
{
    const struct item *first = TAILQ_FIRST(&owner->items);
    inf_grpc_stream_set_ready(owner->stream,
                              owner->stream->ended || (first != NULL && first->done));
}

// Makes the response of an item an error message.
static void set_error(struct item *item, const char *text)
{
    size_t size = 0;
    item->text = inf_oip_stream_error_encode_proto(&item->request, text, &size);
    item->pieces[0] = (struct iovec){item->text, size};
    item->piece_count = 1;
    item->done = true;
    if (item->text == NULL) {
        item->piece_count = 0;
        inf_grpc_stream_fail(item->owner->stream, INFERD_RESOURCE_EXHAUSTED,
                             "no memory for a response");
    }
}

static void set_result(struct item *item, const inferd_result *result)
{
    struct inf_error err;
    item->done = true;
    if (inf_oip_response_encode_proto(&item->request, result, true, &item->text, item->pieces,
                                      &item->piece_count, &err) != INF_OK)
        set_error(item, err.text);
}

static void handle_answer(void *context, const inferd_result *result,
                          const struct inferd_error *err)
{
    struct item *item = context;
    struct inf_grpc_stream *stream = item->owner->stream;
    if (result != NULL)
        set_result(item, result);
    else
        set_error(item, err->text);
    update_ready(item->owner);
    inf_grpc_reply_continue(stream);
}

static void start_item(struct item *item, struct inf_span message)
{
    struct inf_grpc_stream *stream = item->owner->stream;
    struct inf_error failure;
    struct inferd_error err;
    if (inf_oip_request_decode_proto(&item->request, message, &failure) != INF_OK) {
        set_error(item, failure.text);
        return;
    }
    if (stream->deadline_ms != 0) {
        uint64_t now = inf_http_clock_ms(),
                 left = stream->deadline_ms > now ? stream->deadline_ms - now : 1;
        if (item->request.timeout_ms == 0 || left < item->request.timeout_ms)
            item->request.timeout_ms = left;
    }
    item->request.owner = stream->token;
    snprintf(item->request.trace_parent, sizeof item->request.trace_parent, "%s",
             stream->trace_parent);
    if (inf_run_start(stream->gateway, &item->request, inf_grpc_stream_other_id(stream),
                      handle_answer, item, &item->run, &err) != INFERD_OK)
        set_error(item, err.text);
}

static void handle_inflated(void *context, struct inf_span message, const struct inf_error *err)
{
    struct item *item = context;
    struct inf_grpc_stream *stream = item->owner->stream;
    if (err->code != INF_OK)
        set_error(item, err->text);
    else
        start_item(item, message);
    if (!item->inflates)
        return; // the caller of take_message() continues the call
    update_ready(item->owner);
    inf_grpc_reply_continue(stream);
}

// Makes an item of the message of `size` bytes at *offset of the body, and moves *offset behind it.
// Returns false, and fails the call, if there is no memory.
static bool take_message(struct infer_stream *owner, size_t *offset, size_t size, bool compressed)
{
    struct inf_grpc_stream *stream = owner->stream;
    struct item *item = calloc(1, sizeof *item);
    if (item == NULL || !inf_grpc_stream_take(stream, offset, size, &item->bytes, &item->charged)) {
        free(item);
        inf_grpc_stream_fail(stream, INFERD_RESOURCE_EXHAUSTED,
                             "the messages of other calls need all memory");
        return false;
    }
    item->owner = owner;
    TAILQ_INSERT_TAIL(&owner->items, item, link);
    owner->count++;
    struct inf_span message = {item->bytes + INF_GRPC_PREFIX_BYTES, size - INF_GRPC_PREFIX_BYTES};
    if (!compressed) {
        start_item(item, message);
        return true;
    }
    inf_grpc_inflate(&item->inflater, stream->gateway, stream->coding, message, handle_inflated,
                     item);
    item->inflates = item->inflater.task.queued;
    return true;
}

// Takes the complete messages of the body while fewer than INF_GRPC_OUTSTANDING_MAX are
// outstanding. Fails the call if the prefix of a message is invalid.
static void take_messages(struct infer_stream *owner)
{
    struct inf_grpc_stream *stream = owner->stream;
    size_t max = inf_http_server_limits(stream->gateway->server)->body_bytes_max;
    size_t offset = 0, size = 0;
    while (owner->count < INF_GRPC_OUTSTANDING_MAX && stream->end_code == INFERD_OK) {
        struct inf_span left = {stream->body + offset, stream->body_size - offset};
        bool compressed;
        struct inf_error err;
        if (left.size == 0 || !inf_grpc_prefix_read(left, &size, &compressed))
            break;
        if (inf_grpc_stream_check_coding(stream, compressed, &err) != INF_OK)
            inf_grpc_stream_fail(stream, (int)err.code, err.text);
        else if (size + INF_GRPC_PREFIX_BYTES > max)
            inf_grpc_stream_fail(stream, INFERD_RESOURCE_EXHAUSTED, "the message is too large");
        else if (left.size < size + INF_GRPC_PREFIX_BYTES ||
                 !take_message(owner, &offset, size + INF_GRPC_PREFIX_BYTES, compressed))
            break;
    }
    if (stream->end_code == INFERD_OK && offset > 0) {
        inf_grpc_stream_discard(stream, offset);
        stream->begin_ms = inf_http_clock_ms();
    }
}

// Takes messages, and determines whether the call is stalled and whether it has ended.
static void advance_stream(struct infer_stream *owner)
{
    struct inf_grpc_stream *stream = owner->stream;
    bool was_stalled = stream->stalled;
    take_messages(owner);
    stream->stalled = owner->count == INF_GRPC_OUTSTANDING_MAX && stream->end_code == INFERD_OK;
    if (was_stalled && !stream->stalled)
        stream->begin_ms =
            inf_http_clock_ms(); // the client could not send while the call was stalled
    if (stream->complete && !stream->stalled && stream->body_size > 0)
        inf_grpc_stream_fail(stream, INFERD_INVALID_ARGUMENT, "the call ends within a message");
    bool last = stream->complete && stream->body_size == 0 && owner->count == 0;
    if (last && stream->deadline_ms != 0 && inf_http_clock_ms() >= stream->deadline_ms)
        inf_grpc_stream_fail(stream, INFERD_DEADLINE_EXCEEDED, "the call's deadline passed");
    stream->ended = last || (stream->end_code != INFERD_OK && owner->count == 0);
    update_ready(owner);
}

static void receive_messages(struct inf_grpc_stream *stream)
{
    advance_stream(stream->user);
    inf_grpc_reply_continue(stream);
}

static bool load_response(struct inf_grpc_stream *stream)
{
    struct infer_stream *owner = stream->user;
    if (owner->sending != NULL)
        free_item(owner->sending);
    owner->sending = NULL;
    stream->piece_next = stream->piece_count = 0;
    advance_stream(owner);
    struct item *first = TAILQ_FIRST(&owner->items);
    if (first == NULL || !first->done)
        return false;
    memcpy(stream->pieces, first->pieces, first->piece_count * sizeof first->pieces[0]);
    stream->piece_count = first->piece_count;
    owner->sending = first;
    return true;
}

void inf_grpc_infer_stream_begin(struct inf_grpc_stream *stream)
{
    static const struct inf_grpc_streaming functions = {receive_messages, load_response};
    struct infer_stream *owner = calloc(1, sizeof *owner);
    if (owner == NULL) {
        inf_grpc_reply_error(stream, INFERD_RESOURCE_EXHAUSTED, "no memory for the call");
        return;
    }
    owner->stream = stream;
    TAILQ_INIT(&owner->items);
    inf_grpc_reply_begin(stream, &functions, owner, abandon_stream);
}
