// SPDX-License-Identifier: Apache-2.0
// Handles the frames from the daemon. Each frame is checked against the state of the connection. An
// answer to no call, or a frame that only clients send, is a protocol violation, so the connection
// ends.
#include "client/lib/incoming.h"

#include <string.h>

#include "client/lib/client.h"
#include "client/lib/infer/reply.h"
#include "proto/core/span.h"

static enum inf_code decode_message(inferd_client *client, enum inf_message_kind kind,
                                    const struct inf_frame *frame, struct inf_error *err)
{
    return inf_message_decode(&client->message, kind, frame->meta, client->scratch, err);
}

// Fills *status from the Status message in the frame. Returns false if it cannot be decoded.
static bool decode_status(inferd_client *client, const struct inf_frame *frame,
                          struct inf_error *status, struct inf_error *err)
{
    if (decode_message(client, INF_MESSAGE_STATUS, frame, err) != INF_OK)
        return false;
    inf_error_from_status(status, &client->message.status);
    return true;
}

static bool handle_control_answer(inferd_client *client, struct inf_client_call *call,
                                  struct inf_frame *frame, struct inf_error *err)
{
    bool final = (frame->header.flags & INF_FRAME_FINAL) != 0;
    // Before the final answer, the daemon sends only progress messages on the stream of this call.
    enum inf_message_kind kind = final ? call->reply_kind : INF_MESSAGE_LOAD_PROGRESS;
    if (decode_message(client, kind, frame, err) != INF_OK)
        return false;
    if (!final) {
        if (call->on_reply != NULL)
            (void)call->on_reply(call->reply_context, &client->message, false, err);
        return true;
    }
    struct inf_error failure = {.code = INF_OK};
    if (kind == INF_MESSAGE_METRICS_REPLY)
        client->message.metrics_reply.text =
            (struct inf_span){frame->data, frame->header.data_bytes};
    if (call->on_reply != NULL)
        (void)call->on_reply(call->reply_context, &client->message, true, &failure);
    inf_client_call_remove(client, call, 1);
    inf_client_call_end(client, call, failure.code == INF_OK ? NULL : &failure, 0);
    inf_client_call_release(client, call, true);
    return true;
}

// Handles the failure of a call: a Status of the daemon, or an answer that the assembler rejected.
static bool handle_call_failure(inferd_client *client, struct inf_client_call *call,
                                struct inf_frame *frame, struct inf_error *err)
{
    if (frame->rejected.code != INF_OK) {
        inf_client_call_remove(client, call, 1);
        inf_client_call_end(client, call, &frame->rejected, 0);
        inf_client_call_release(client, call, true);
        return true;
    }
    if (decode_message(client, INF_MESSAGE_STATUS, frame, err) != INF_OK)
        return false;
    if (call->phase != INF_CLIENT_CALL_CONTROL) {
        inf_client_reply_handle_failure(client, call);
        return true;
    }
    struct inf_error failure;
    inf_error_from_status(&failure, &client->message.status);
    inf_client_call_remove(client, call, 1);
    inf_client_call_end(client, call, &failure, client->message.status.retry_after_ms);
    inf_client_call_release(client, call, true);
    return true;
}

// Returns whether the answer of a call may have data.
static bool takes_data(const struct inf_client_call *call)
{
    return call->phase == INF_CLIENT_CALL_INFER || (call->phase == INF_CLIENT_CALL_CONTROL &&
                                                    call->reply_kind == INF_MESSAGE_METRICS_REPLY);
}

// Handles a DATA frame: a part of an answer's data, sent before the answer.
static bool handle_data(inferd_client *client, struct inf_frame *frame, struct inf_error *err)
{
    struct inf_client_call *call = inf_client_call_find(client, frame->header.stream_id);
    if (call == NULL && client->connection.draining &&
        frame->header.stream_id > client->connection.last_stream)
        return true;
    if (decode_message(client, INF_MESSAGE_DATA, frame, err) != INF_OK)
        return false;
    uint64_t total = client->message.data.total_bytes;
    if (call == NULL || !takes_data(call) || total == 0 || total > INF_LIMIT_STREAM_DATA_BYTES ||
        (call->partial_size != 0 && call->partial_size != total) ||
        !inf_range_ok(call->partial_received, frame->header.data_bytes, total)) {
        inf_fail_reason(err, INF_INTERNAL, INF_REASON_BAD_FRAME,
                        "%u bytes of data on stream %llu that no answer has room for",
                        frame->header.data_bytes, (unsigned long long)frame->header.stream_id);
        return false;
    }
    if (call->partial_size == 0)
        call->partial = inf_client_data_pool_alloc(&client->data_pool, INF_MAX((size_t)total, 1));
    call->partial_size = (size_t)total;
    // If there was no memory for `partial`, the data is dropped here, and join_data() fails later.
    if (call->partial != NULL && frame->data != NULL)
        memcpy(call->partial + call->partial_received, frame->data, frame->header.data_bytes);
    call->partial_received += frame->header.data_bytes;
    return true;
}

// Appends the data of the final frame to the data of the earlier DATA frames, and stores the result
// as the data of the final frame.
static bool join_data(inferd_client *client, struct inf_client_call *call, struct inf_frame *frame,
                      struct inf_error *err)
{
    uint32_t size = frame->header.data_bytes;
    if (call->partial_size - call->partial_received != size) {
        inf_fail_reason(err, INF_INTERNAL, INF_REASON_BAD_FRAME,
                        "an answer's data are %zu bytes, %zu were announced",
                        call->partial_received + size, call->partial_size);
        return false;
    }
    if (call->partial == NULL) {
        inf_fail_reason(&frame->rejected, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                        "no memory for the %zu bytes of an answer", call->partial_size);
        return true;
    }
    if (size > 0)
        memcpy(call->partial + call->partial_received, frame->data, size);
    inf_client_data_pool_free(&client->data_pool, frame->data, size);
    frame->data = call->partial;
    frame->header.data_bytes = (uint32_t)call->partial_size;
    call->partial = NULL;
    return true;
}

static bool handle_response(inferd_client *client, struct inf_frame *frame, struct inf_error *err)
{
    struct inf_client_call *call = inf_client_call_find(client, frame->header.stream_id);
    bool failed = (frame->header.flags & INF_FRAME_FLAG_ERROR) != 0;
    bool final = (frame->header.flags & INF_FRAME_FINAL) != 0;
    if (call == NULL) {
        struct inf_error refusal;
        if (failed && decode_status(client, frame, &refusal, err) &&
            inf_client_region_handle_reply(client, frame, &refusal))
            return true;
        if (client->connection.draining && frame->header.stream_id > client->connection.last_stream)
            return true; // the request was not started: the handling of GOAWAY has ended the call
        inf_fail_reason(err, INF_INTERNAL, INF_REASON_BAD_FRAME,
                        "an answer on stream %llu, which is not open",
                        (unsigned long long)frame->header.stream_id);
        return false;
    }
    if (call->partial_size != 0 && !failed && final && !join_data(client, call, frame, err))
        return false;
    if (frame->rejected.code == INF_OK && !final &&
        (failed || call->phase != INF_CLIENT_CALL_CONTROL)) {
        inf_fail_reason(err, INF_INTERNAL, INF_REASON_BAD_FRAME,
                        "%s on stream %llu without the mark of a last answer",
                        failed ? "an error" : "an inference's answer",
                        (unsigned long long)call->stream);
        return false;
    }
    if (failed || frame->rejected.code != INF_OK)
        return handle_call_failure(client, call, frame, err);
    if (call->phase == INF_CLIENT_CALL_CONTROL)
        return handle_control_answer(client, call, frame, err);
    return inf_client_reply_handle(client, call, frame, err);
}

static bool handle_hello_ack(inferd_client *client, struct inf_frame *frame, struct inf_error *err)
{
    if (client->connection.greeted) {
        inf_fail_reason(err, INF_INTERNAL, INF_REASON_BAD_FRAME, "a second HELLO_ACK");
        return false;
    }
    if (decode_message(client, INF_MESSAGE_HELLO_ACK, frame, err) != INF_OK)
        return false;
    const struct inf_hello_ack *ack = &client->message.hello_ack;
    if (ack->major != INF_PROTOCOL_MAJOR) {
        inf_fail_reason(err, INF_PRECONDITION, INF_REASON_FEATURE,
                        "the daemon speaks protocol %u.%u, this library %u.%u", ack->major,
                        ack->minor, INF_PROTOCOL_MAJOR, INF_PROTOCOL_MINOR);
        return false;
    }
    client->connection.limits = ack->limits;
    client->credit.requests = ack->credit_requests;
    client->credit.bytes = ack->credit_bytes;
    if (client->connection.epoch[0] != ack->epoch[0] ||
        client->connection.epoch[1] != ack->epoch[1])
        inf_client_metadata_cache_drop_infos(&client->metadata);
    client->connection.epoch[0] = ack->epoch[0];
    client->connection.epoch[1] = ack->epoch[1];
    client->connection.greeted = true;
    return true;
}

// Handles CREDIT, which replaces the credit. If more requests are in flight than the new credit
// allows, the client sends no request until enough of them are answered.
static bool handle_credit(inferd_client *client, struct inf_frame *frame, struct inf_error *err)
{
    if (decode_message(client, INF_MESSAGE_CREDIT, frame, err) != INF_OK)
        return false;
    uint32_t requests = client->message.credit.requests;
    client->connection.limits.streams = requests;
    if (client->message.credit.bytes != 0)
        client->credit.bytes = client->message.credit.bytes;
    client->credit.requests =
        requests > client->calls.open_count ? requests - client->calls.open_count : 0;
    return true;
}

static bool handle_goaway(inferd_client *client, struct inf_frame *frame, struct inf_error *err)
{
    if (decode_message(client, INF_MESSAGE_GOAWAY, frame, err) != INF_OK)
        return false;
    inf_client_connection_drain(client, client->message.goaway.last_stream);
    return true;
}

// Handles ERROR: the daemon closes the connection because of a fault of this client.
static bool handle_error(inferd_client *client, struct inf_frame *frame, struct inf_error *err)
{
    struct inf_error failure;
    if (!decode_status(client, frame, &failure, err))
        return false;
    inf_error_prefix(&failure, INF_INTERNAL, "the daemon ended the connection");
    inf_client_connection_fail(client, &failure);
    return true;
}

static bool handle_ping(inferd_client *client, struct inf_frame *frame, struct inf_error *err)
{
    struct inf_frame_header header = {
        .type = INF_FRAME_PONG,
        .stream_id = frame->header.stream_id,
    };
    return inf_client_send_queue_push_control(client, header, INF_MESSAGE_EMPTY, -1, err) == INF_OK;
}

static bool handle_region(inferd_client *client, struct inf_frame *frame, struct inf_error *err)
{
    struct inf_error refusal;
    bool failed = (frame->header.flags & INF_FRAME_FLAG_ERROR) != 0;
    if (failed && !decode_status(client, frame, &refusal, err))
        return false;
    if (!failed) {
        enum inf_message_kind kind = frame->header.type == INF_FRAME_MEM_REGISTERED
                                         ? INF_MESSAGE_REGION_REGISTERED
                                         : INF_MESSAGE_REGION_RELEASED;
        if (decode_message(client, kind, frame, err) != INF_OK)
            return false;
    }
    if (inf_client_region_handle_reply(client, frame, failed ? &refusal : NULL))
        return true;
    inf_fail_reason(err, INF_INTERNAL, INF_REASON_BAD_FRAME, "%s for a region that is not known",
                    inf_frame_type_name(frame->header.type));
    return false;
}

static bool handle_frame(inferd_client *client, struct inf_frame *frame, struct inf_error *err)
{
    uint8_t type = frame->header.type;
    if (!client->connection.greeted && type != INF_FRAME_HELLO_ACK && type != INF_FRAME_ERROR) {
        inf_fail_reason(err, INF_INTERNAL, INF_REASON_BAD_FRAME, "%s before HELLO_ACK",
                        inf_frame_type_name(type));
        return false;
    }
    if (type != INF_FRAME_RESPONSE && frame->rejected.code != INF_OK) {
        *err = frame->rejected;
        return false;
    }
    switch (type) {
    case INF_FRAME_HELLO_ACK:
        return handle_hello_ack(client, frame, err);
    case INF_FRAME_RESPONSE:
        return handle_response(client, frame, err);
    case INF_FRAME_DATA:
        return handle_data(client, frame, err);
    case INF_FRAME_MEM_REGISTERED:
    case INF_FRAME_MEM_RELEASED:
        return handle_region(client, frame, err);
    case INF_FRAME_PING:
        return handle_ping(client, frame, err);
    case INF_FRAME_PONG:
        return true;
    case INF_FRAME_CREDIT:
        return handle_credit(client, frame, err);
    case INF_FRAME_GOAWAY:
        return handle_goaway(client, frame, err);
    case INF_FRAME_ERROR:
        return handle_error(client, frame, err);
    case INF_FRAME_HELLO:
    case INF_FRAME_REQUEST:
    case INF_FRAME_CANCEL:
    case INF_FRAME_MEM_REGISTER:
    case INF_FRAME_MEM_UNREGISTER:
    case INF_FRAME_MEM_ALLOC:
        inf_fail_reason(err, INF_INTERNAL, INF_REASON_BAD_FRAME, "%s, which is a client's",
                        inf_frame_type_name(type));
        return false;
    default:
        // Ignore a frame whose type only later versions know; the assembler refuses critical ones.
        return true;
    }
}

void inf_client_incoming_handle_frame(inferd_client *client, struct inf_frame *frame)
{
    struct inf_error err = {.code = INF_OK};
    if (!handle_frame(client, frame, &err)) {
        if (client->connection.greeted)
            inf_error_prefix(&err, INF_INTERNAL, "the daemon broke the protocol");
        inf_client_connection_fail(client, &err);
    }
    inf_client_data_pool_free(&client->data_pool, frame->data,
                              // NULL if a result has taken ownership of the data, so that there is
                              // nothing to free
                              frame->header.data_bytes);
}
