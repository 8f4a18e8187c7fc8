// SPDX-License-Identifier: Apache-2.0
// What goes out: frames, final replies, and the end of calls. A call gets exactly one final reply:
// `answered` goes from false to true once, and only here.
#include <assert.h>

#include "daemon/connection/connection_private.h"

static void mark_dirty(struct inf_connection *connection)
{
    if (connection->dirty)
        return;
    connection->dirty = true;
    connection->next_dirty = connection->set->dirty;
    connection->set->dirty = connection;
}

// Encodes the metadata behind the room for the header.
static enum inf_code encode(struct inf_connections *set, enum inf_message_kind kind,
                            const union inf_message *message, size_t *out_size,
                            struct inf_error *err)
{
    return inf_message_encode(message, kind, set->head + INF_FRAME_HEADER_BYTES,
                              INF_LIMIT_META_BYTES, out_size, set->scratch, err);
}

static void queue(struct inf_connection *connection, const struct inf_reply *reply,
                  size_t meta_bytes) INF_ON_LOOP
{
    struct inf_connections *set = connection->set;
    const struct inf_frame_header header = {.meta_bytes = (uint32_t)meta_bytes,
                                            .data_bytes = (uint32_t)reply->data.size,
                                            .stream_id = reply->stream_id,
                                            .type = reply->type,
                                            .fd_count = reply->fd_plus_1 != 0,
                                            .flags = reply->flags,
                                            .method = reply->method};
    inf_frame_header_encode(&header, set->head);
    const struct inf_output_item item = {.head = {set->head, INF_FRAME_HEADER_BYTES + meta_bytes},
                                         .data = reply->data,
                                         .buffer = reply->buffer,
                                         .capacity = reply->capacity,
                                         .fd_plus_1 = reply->fd_plus_1};
    struct inf_output *output = &connection->output;
    if (reply->order_key != 0)
        output = inf_connection_order_place(connection, reply->stream_id);
    if (inf_output_push(output, &set->output_store, &item, NULL) != INF_OK) {
        inf_connection_close(connection);
        return;
    }
    if (reply->order_key != 0 && (reply->flags & INF_FRAME_FINAL) != 0)
        inf_connection_order_end(connection, reply->stream_id);
    mark_dirty(connection);
}

void inf_connection_send_fault(struct inf_connection *connection, const struct inf_reply *reply,
                               const struct inf_fault *fault)
{
    struct inf_connections *set = connection->set;
    if (connection->state == INF_CONNECTION_OVER) {
        inf_pool_release(set->options.pool, reply->buffer, reply->capacity);
        return;
    }
    union inf_message message;
    size_t meta_bytes = 0;
    inf_fault_status(fault, &message.status);
    // A Status is far below any limit, so nothing but a bug can keep it from being encoded.
    enum inf_code code = encode(set, INF_MESSAGE_STATUS, &message, &meta_bytes, NULL);
    assert(code == INF_OK);
    (void)code;
    struct inf_reply failure = *reply;
    failure.flags |= INF_FRAME_FLAG_ERROR;
    // The buffer goes along all the same: pieces of it may be on their way.
    failure.data = (struct inf_span){NULL, 0};
    queue(connection, &failure, meta_bytes);
}

void inf_connection_send(struct inf_connection *connection, const struct inf_reply *reply,
                         enum inf_message_kind kind, const union inf_message *message)
{
    struct inf_connections *set = connection->set;
    size_t meta_bytes = 0;
    struct inf_fault fault;
    if (connection->state == INF_CONNECTION_OVER) {
        inf_pool_release(set->options.pool, reply->buffer, reply->capacity);
        return;
    }
    if (encode(set, kind, message, &meta_bytes, &set->fault.err) == INF_OK) {
        queue(connection, reply, meta_bytes);
        return;
    }
    inf_fault_init(&fault);
    fault.err = set->fault.err;
    inf_connection_send_fault(connection, reply, &fault);
}

// Sends what does not fit the final reply ahead of it, and returns the rest.
static struct inf_span send_pieces(struct inf_connection *connection, const struct inf_reply *final,
                                   struct inf_span data) INF_ON_LOOP
{
    const union inf_message message = {.data = {.total_bytes = data.size}};
    struct inf_reply piece = {.type = INF_FRAME_DATA,
                              .method = final->method,
                              .stream_id = final->stream_id,
                              .order_key = final->order_key};
    while (data.size > connection->limits.data_bytes) {
        piece.data = (struct inf_span){data.data, connection->limits.data_bytes};
        data.data += piece.data.size;
        data.size -= piece.data.size;
        inf_connection_send(connection, &piece, INF_MESSAGE_DATA, &message);
    }
    return data;
}

void inf_connection_answer(struct inf_connection *connection, const struct inf_reply *reply,
                           const struct inf_answer *answer, const struct inf_fault *fault)
{
    struct inf_counters *counters = connection->set->options.counters;
    struct inf_reply final = *reply;
    final.type = INF_FRAME_RESPONSE;
    final.flags = INF_FRAME_FINAL;
    assert(counters->requests_in_flight > 0);
    counters->requests_in_flight--;
    if (fault != NULL) {
        counters->requests_failed++;
        inf_connection_send_fault(connection, &final, fault);
        return;
    }
    counters->requests_ok++;
    final.data = (struct inf_span){answer->data, answer->data_bytes};
    final.buffer = answer->data;
    final.capacity = answer->data_capacity;
    if (final.data.size > connection->limits.data_bytes)
        final.data = send_pieces(connection, &final, final.data);
    inf_connection_send(connection, &final, answer->kind, answer->message);
}

void inf_connection_link_call(struct inf_connection *connection, struct inf_call *call)
{
    call->connection = connection;
    call->previous = NULL;
    call->next = connection->calls;
    if (call->next != NULL)
        call->next->previous = call;
    connection->calls = call;
}

enum inf_code inf_connection_charge(struct inf_connection *connection, uint64_t bytes,
                                    struct inf_error *err)
{
    INF_TRY(inf_quota_charge(connection->user, INF_QUOTA_REQUESTS, 1, err));
    enum inf_code code = inf_quota_charge(connection->user, INF_QUOTA_REQUEST_BYTES, bytes, err);
    if (code != INF_OK)
        inf_quota_refund(connection->user, INF_QUOTA_REQUESTS, 1);
    return code;
}

void inf_connection_refund(struct inf_quota_user *payer, uint64_t bytes)
{
    inf_quota_refund(payer, INF_QUOTA_REQUESTS, 1);
    inf_quota_refund(payer, INF_QUOTA_REQUEST_BYTES, bytes);
}

// Frees a call that is done: so is what its client paid for it.
static void release_call(struct inf_connections *set, struct inf_call *call) INF_ON_LOOP
{
    inf_connection_refund(call->payer, call->paid_bytes);
    inf_quota_spend(call->payer, inf_service_device_ns(call));
    inf_quota_unref(&call->payer);
    inf_service_release(set->options.service, call);
}

static void unlink_call(struct inf_connection *connection, struct inf_call *call)
{
    if (call->previous != NULL)
        call->previous->next = call->next;
    else
        connection->calls = call->next;
    if (call->next != NULL)
        call->next->previous = call->previous;
    call->previous = call->next = NULL;
}

// Notes that the call's final reply is on its way.
static void mark_answered(struct inf_connection *connection, struct inf_call *call)
{
    assert(!call->answered && "a second final reply");
    assert(connection->in_flight > 0);
    call->answered = true;
    connection->in_flight--;
    connection->bytes_in_flight -= call->paid_bytes;
}

// A worker has answered a call, or is about to: it comes back as done.
static void leave_to_worker(struct inf_connection *connection, struct inf_call *call,
                            enum inf_call_end end) INF_ON_LOOP
{
    bool queued = inf_service_withdraw(connection->set->options.service, call);
    assert(!queued);
    (void)queued;
    if (end != INF_CALL_END_DISCONNECT)
        return;
    unlink_call(connection, call);
    mark_answered(connection, call);
    call->connection = NULL;
}

static void explain_end(struct inf_fault *fault, enum inf_call_end end, bool queued)
{
    fault->phase = queued ? "queue" : "exec";
    if (end == INF_CALL_END_CANCEL)
        inf_fail_reason(&fault->err, INF_CANCELLED, INF_REASON_BY_CLIENT,
                        "cancelled by the client");
    else if (end == INF_CALL_END_SHUTDOWN)
        inf_fail_reason(&fault->err, INF_CANCELLED, INF_REASON_SHUTDOWN,
                        "the daemon shuts down and had no more time");
    else if (queued)
        inf_fail_reason(&fault->err, INF_DEADLINE, INF_REASON_IN_QUEUE,
                        "the time given ran out before the request was begun");
    else
        inf_fail_reason(&fault->err, INF_DEADLINE, INF_REASON_IN_EXEC,
                        "the time given ran out while the model ran");
}

void inf_connection_end_call(struct inf_connection *connection, struct inf_call *call,
                             enum inf_call_end end)
{
    struct inf_connections *set = connection->set;
    const struct inf_reply reply = {
        .stream_id = call->stream_id, .method = call->method, .order_key = call->order_key};
    bool answer = !call->answered;
    if (answer && !inf_service_claim(call)) {
        leave_to_worker(connection, call, end);
        return;
    }
    unlink_call(connection, call);
    if (answer)
        mark_answered(connection, call);
    struct inf_quota_user *payer = call->payer;
    uint64_t paid_bytes = call->paid_bytes;
    bool queued = inf_service_withdraw(set->options.service, call);
    if (queued) {
        inf_connection_refund(payer, paid_bytes);
        inf_quota_unref(&payer);
    }
    // One that a worker has comes back; until then the connection keeps it in sight.
    if (!queued && end != INF_CALL_END_DISCONNECT)
        inf_connection_link_call(connection, call);
    else if (!queued)
        call->connection = NULL;
    if (!answer)
        return;
    if (end == INF_CALL_END_DISCONNECT) {
        set->options.counters->requests_in_flight--;
        set->options.counters->requests_failed++;
        return;
    }
    inf_fault_init(&set->fault);
    explain_end(&set->fault, end, queued);
    inf_connection_answer(connection, &reply, NULL, &set->fault);
    inf_connection_report_released(connection);
}

// Answers a call that is done, unless it has been answered.
static void answer_done(struct inf_connection *connection, struct inf_call *call) INF_ON_LOOP
{
    struct inf_connections *set = connection->set;
    const struct inf_reply reply = {
        .stream_id = call->stream_id, .method = call->method, .order_key = call->order_key};
    struct inf_answer answer;
    inf_fault_init(&set->fault);
    enum inf_code code = inf_service_result(set->options.service, call, &answer, &set->fault);
    inf_connection_answer(connection, &reply, &answer, code == INF_OK ? NULL : &set->fault);
}

// A call is done: it is answered, unless it was, and released.
static void finish(struct inf_connections *connections, struct inf_call *call) INF_ON_LOOP
{
    struct inf_connection *connection = call->connection;
    struct inf_counters *counters = connections->options.counters;
    bool by_worker = !inf_service_claim(call);
    bool open = connection != NULL;
    if (open)
        unlink_call(connection, call);
    bool answer = open && !call->answered;
    if (answer)
        mark_answered(connection, call);
    if (by_worker) {
        counters->requests_in_flight--;
        counters->requests_ok++;
        inf_service_note_answered(connections->options.service, call);
    } else if (answer) {
        answer_done(connection, call);
    }
    release_call(connections, call);
    if (open)
        inf_connection_report_released(connection);
}

// Goes on where a worker has left a connection.
static void resume(struct inf_connections *connections,
                   const struct inf_reply_writer_rest *rest) INF_ON_LOOP
{
    struct inf_connection *connection = rest->owner;
    mark_dirty(connection);
    if (rest->buffer != NULL &&
        inf_output_push_rest(&connection->output, &connections->output_store, rest->buffer,
                             rest->size_bytes, NULL) != INF_OK) {
        inf_connection_close(connection);
        return;
    }
    if (connection->output.first == NULL)
        inf_reply_writer_leave_loop(connection->writer);
}

void inf_connections_take_done(struct inf_connections *connections)
{
    struct inf_call *call;
    struct inf_reply_writer_rest rest;
    while ((call = inf_service_next_finished(connections->options.service)) != NULL)
        finish(connections, call);
    while (inf_reply_writer_returns_next(connections->options.returns, &rest))
        resume(connections, &rest);
}

void inf_connections_expire(struct inf_connections *connections, struct inf_call *call)
{
    (void)connections;
    // A call of a client that is gone was withdrawn, and its deadline with it.
    assert(call->connection != NULL && !call->answered);
    inf_connection_end_call(call->connection, call, INF_CALL_END_DEADLINE);
}

void inf_connections_report(struct inf_connections *connections, struct inf_call *call,
                            const struct inf_load_event *event)
{
    struct inf_connection *connection = call->connection;
    struct inf_answer answer;
    inf_fault_init(&connections->fault);
    enum inf_code code =
        inf_service_load_result(connections->options.service, event, &answer, &connections->fault);
    const struct inf_reply reply = {
        .type = INF_FRAME_RESPONSE, .stream_id = call->stream_id, .method = call->method};
    if (!event->final) {
        inf_connection_send(connection, &reply, answer.kind, answer.message);
        return;
    }
    unlink_call(connection, call);
    mark_answered(connection, call);
    inf_connection_answer(connection, &reply, &answer, code == INF_OK ? NULL : &connections->fault);
    release_call(connections, call);
}

void inf_connection_report_released(struct inf_connection *connection)
{
    union inf_message message;
    uint64_t stream_id;
    while (inf_region_table_next_released(&connection->regions, &message.region.region_id,
                                          &stream_id)) {
        const struct inf_reply reply = {
            .type = INF_FRAME_MEM_RELEASED, .flags = INF_FRAME_FINAL, .stream_id = stream_id};
        message.region.size = 0;
        message.region.writable = false;
        inf_connection_send(connection, &reply, INF_MESSAGE_REGION_RELEASED, &message);
    }
}
