// SPDX-License-Identifier: Apache-2.0
// The bookkeeping of calls. A call has three owners in turn: first the connection (which links it
// in `connection->calls`), then the scheduler or a worker (reached through the service), and at the
// end again the connection, which frees the call. `answered` changes from false to true exactly
// once. If the connection abandons a call while a worker runs it, call->connection is NULL when the
// worker returns the call.
#include "daemon/connection/call.h"

#include <assert.h>
#include <inttypes.h>

void inf_connection_link_call(struct inf_connection *connection, struct inf_call *call)
{
    call->connection = connection;
    call->previous = NULL;
    call->next = connection->calls;
    if (call->next != NULL)
        call->next->previous = call;
    connection->calls = call;
    connection->call_count++;
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

void inf_connection_unlink_call(struct inf_connection *connection, struct inf_call *call)
{
    if (call->previous != NULL)
        call->previous->next = call->next;
    else
        connection->calls = call->next;
    if (call->next != NULL)
        call->next->previous = call->previous;
    call->previous = call->next = NULL;
    connection->call_count--;
}

void inf_connection_mark_answered(struct inf_connection *connection, struct inf_call *call)
{
    assert(!call->answered && "a second final reply");
    assert(connection->in_flight > 0);
    call->answered = true;
    connection->in_flight--;
    connection->bytes_in_flight -= call->paid_bytes;
}

enum inf_code inf_connection_check_credit(const struct inf_connection *connection, uint64_t bytes,
                                          struct inf_fault *fault)
{
    uint32_t in_flight = connection->in_flight + connection->stashed + connection->upload_count;
    fault->retry_after_ms = INF_CONNECTION_RETRY_MS;
    if (in_flight >= connection->limits.streams)
        return inf_fail_reason(&fault->err, INF_EXHAUSTED, INF_REASON_QUOTA_REQUESTS,
                               "%" PRIu32 " requests are in flight already, which is the credit",
                               in_flight);
    if (bytes > 0 && !inf_range_ok(connection->bytes_in_flight, bytes, connection->credit_bytes))
        return inf_fail_reason(&fault->err, INF_EXHAUSTED, INF_REASON_QUOTA_BYTES,
                               "%" PRIu64 " bytes of data beside %" PRIu64
                               " in flight, the credit is %" PRIu64,
                               bytes, connection->bytes_in_flight, connection->credit_bytes);
    fault->retry_after_ms = 0;
    return INF_OK;
}

void inf_connection_release_call(struct inf_connections *connections, struct inf_call *call)
{
    inf_connection_refund(call->payer, call->paid_bytes);
    inf_quota_spend(call->payer, inf_service_device_ns(call));
    inf_quota_unref(&call->payer);
    inf_service_release(connections->options.service, call);
}

void inf_connection_leave_call(struct inf_connection *connection, struct inf_call *call,
                               bool abandon)
{
    bool queued = inf_service_withdraw(connection->set->options.service, call);
    assert(!queued && "a worker has the call");
    (void)queued;
    if (!abandon)
        return;
    inf_connection_unlink_call(connection, call);
    inf_connection_mark_answered(connection, call);
    call->connection = NULL;
}

bool inf_connection_withdraw_call(struct inf_connection *connection, struct inf_call *call)
{
    struct inf_quota_user *payer = call->payer;
    uint64_t paid_bytes = call->paid_bytes;
    bool freed = inf_service_withdraw(connection->set->options.service, call);
    if (freed) {
        inf_connection_refund(payer, paid_bytes);
        inf_quota_unref(&payer);
    }
    return freed;
}

static void abandon_call(struct inf_connection *connection, struct inf_call *call) INF_ON_LOOP
{
    struct inf_counters *counters = connection->set->options.counters;
    bool answer = !call->answered;
    if (answer && !inf_service_claim(call)) {
        inf_connection_leave_call(connection, call, true);
        return;
    }
    inf_connection_unlink_call(connection, call);
    if (answer)
        inf_connection_mark_answered(connection, call);
    struct inf_request_end end;
    inf_service_end_of(connection->set->options.service, call, &end);
    if (!inf_connection_withdraw_call(connection, call))
        call->connection = NULL;
    if (!answer)
        return;
    const struct inf_error gone = {.code = INF_CANCELLED, .reason = INF_REASON_DISCONNECT};
    inf_service_count_failure(connection->set->options.service, &end, &gone);
    counters->requests_in_flight--;
    counters->requests_failed++;
}

void inf_connection_abandon_calls(struct inf_connection *connection)
{
    while (connection->calls != NULL)
        abandon_call(connection, connection->calls);
}
