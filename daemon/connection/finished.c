// SPDX-License-Identifier: Apache-2.0
// Sends the replies of calls that a worker finished, that timed out, or for which the loader
// reported an event. Also writes the remaining output that a worker could not write completely.
#include <assert.h>

#include "backends/base/clock.h"
#include "daemon/connection/call.h"
#include "daemon/connection/close.h"
#include "daemon/connection/end_call.h"
#include "daemon/connection/flush.h"
#include "daemon/connection/reply.h"

// The clock is read before every eighth finished call: with short runs, reading it for each would
// take a fifth of the time that counting takes.
#define CALLS_PER_READING 8

// Sends the result of a finished call to the client, as the final reply.
static void answer_done(struct inf_connection *connection, struct inf_call *call,
                        uint64_t now_ns) INF_ON_LOOP
{
    struct inf_connections *set = connection->set;
    const struct inf_reply reply = inf_reply_of(call);
    struct inf_answer answer;
    inf_fault_init(&set->fault);
    enum inf_code code = inf_service_result(set->options.service, call, &answer, &set->fault);
    if (code != INF_OK) {
        struct inf_request_end end;
        inf_service_end_of(set->options.service, call, &end);
        inf_service_count_failure(set->options.service, &end, &set->fault.err);
    } else {
        inf_service_count_answer(set->options.service, call, now_ns);
    }
    inf_connection_answer(connection, &reply, &answer, code == INF_OK ? NULL : &set->fault);
}

// Handles a call that a worker has finished: sends the reply, unless the worker or the loop already
// did, and frees the call. `now_ns` is a recent time.
static void finish_call(struct inf_connections *connections, struct inf_call *call,
                        uint64_t now_ns) INF_ON_LOOP
{
    struct inf_connection *connection = call->connection;
    struct inf_counters *counters = connections->options.counters;
    bool by_worker = !inf_service_claim(call);
    bool open = connection != NULL;
    if (open)
        inf_connection_unlink_call(connection, call);
    bool answer = open && !call->answered;
    if (answer)
        inf_connection_mark_answered(connection, call);
    if (by_worker) {
        counters->requests_in_flight--;
        counters->requests_ok++;
        inf_service_count_answer(connections->options.service, call, now_ns);
        inf_service_note_answered(connections->options.service, call);
    } else if (answer) {
        answer_done(connection, call, now_ns);
    }
    inf_connection_release_call(connections, call);
    if (open)
        inf_connection_report_released(connection);
}

// Takes over the writing of a connection from a worker that could not write everything.
static void resume_writing(struct inf_connections *connections,
                           const struct inf_reply_writer_rest *rest) INF_ON_LOOP
{
    struct inf_connection *connection = rest->owner;
    inf_connection_mark_dirty(connection);
    if (rest->buffer != NULL &&
        inf_output_push_rest(&connection->output, &connections->output_store,
                             &(struct inf_output_item){.buffer = rest->buffer,
                                                       .capacity = rest->size_bytes,
                                                       .pending_plus_1 = rest->pending_plus_1},
                             rest->partial, NULL) != INF_OK) {
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
    struct inf_service *service = connections->options.service;
    uint64_t begin_ns = 0, now_ns = 0;
    for (uint64_t i = 0; (call = inf_service_next_finished(service)) != NULL; i++) {
        if (begin_ns == 0)
            begin_ns = inf_service_begin_slice(service);
        if (i % CALLS_PER_READING == 0)
            now_ns = inf_clock_ns();
        finish_call(connections, call, now_ns);
    }
    while (inf_reply_writer_returns_next(connections->options.returns, &rest))
        resume_writing(connections, &rest);
    inf_service_note_slice(service, INF_TIMELINE_FINISH, 0, begin_ns);
}

void inf_connections_answer_waits(struct inf_connections *connections)
{
    struct inf_call *call;
    while ((call = inf_service_next_wait(connections->options.service)) != NULL) {
        struct inf_connection *connection = call->connection;
        const struct inf_reply reply = {.stream_id = call->stream_id,
                                        .method = call->method,
                                        .pending_plus_1 = call->pending_plus_1};
        struct inf_answer answer;
        inf_fault_init(&connections->fault);
        enum inf_code code = inf_service_wait_result(connections->options.service, call, &answer,
                                                     &connections->fault);
        inf_connection_unlink_call(connection, call);
        inf_connection_mark_answered(connection, call);
        inf_connection_answer(connection, &reply, &answer,
                              code == INF_OK ? NULL : &connections->fault);
        inf_connection_release_call(connections, call);
    }
}

// Handles a request again that waited for its model. If it becomes another call, that one takes
// over what the client pays and the place in the order of replies.
static void try_again(struct inf_connections *connections, struct inf_call *call) INF_ON_LOOP
{
    struct inf_service *service = connections->options.service;
    struct inf_connection *connection = call->connection;
    struct inf_answer answer = {.call = NULL};
    inf_fault_init(&connections->fault);
    enum inf_code code = inf_service_try_again(service, call, &answer, &connections->fault);
    if (code == INF_OK && answer.call == call)
        return;
    inf_connection_unlink_call(connection, call);
    if (code == INF_OK && answer.call != NULL) {
        struct inf_call *next = answer.call;
        next->stream_id = call->stream_id;
        next->method = call->method;
        next->order_key = call->order_key;
        next->pending_plus_1 = call->pending_plus_1;
        next->payer = call->payer;
        next->paid_bytes = call->paid_bytes;
        inf_connection_link_call(connection, next);
        inf_service_release(service, call);
        return;
    }
    const struct inf_reply reply = inf_reply_of(call);
    inf_connection_mark_answered(connection, call);
    if (code != INF_OK)
        inf_service_count_refusal(service, call->method, connection->caller.uid,
                                  &connections->fault);
    inf_connection_answer(connection, &reply, &answer, code == INF_OK ? NULL : &connections->fault);
    inf_connection_release_call(connections, call);
    inf_connection_report_released(connection);
}

void inf_connections_begin_waiting(struct inf_connections *connections)
{
    struct inf_call *call;
    while ((call = inf_service_next_woken(connections->options.service)) != NULL)
        try_again(connections, call);
}

void inf_connections_expire(struct inf_connections *connections, struct inf_call *call)
{
    (void)connections;
    // The call still has a connection, because closing a connection also removes the deadlines of
    // its calls.
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
    inf_connection_unlink_call(connection, call);
    inf_connection_mark_answered(connection, call);
    struct inf_reply final = reply;
    final.pending_plus_1 = call->pending_plus_1;
    inf_connection_answer(connection, &final, &answer, code == INF_OK ? NULL : &connections->fault);
    inf_connection_release_call(connections, call);
}
