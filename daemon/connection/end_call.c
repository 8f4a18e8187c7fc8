// SPDX-License-Identifier: Apache-2.0
// Ends calls early: on CANCEL, at a deadline, or because the daemon stops. The client is answered
// at once, even if a worker still computes; the later result of the worker is dropped.
#include "daemon/connection/end_call.h"

#include "daemon/connection/call.h"
#include "daemon/connection/reply.h"

static void explain_end(struct inf_fault *fault, enum inf_call_end end, bool queued, bool loading)
{
    fault->phase = loading ? "load" : queued ? "queue" : "exec";
    if (end == INF_CALL_END_CANCEL)
        inf_fail_reason(&fault->err, INF_CANCELLED, INF_REASON_BY_CLIENT,
                        "cancelled by the client");
    else if (end == INF_CALL_END_ADMIN)
        inf_fail_reason(&fault->err, INF_CANCELLED, INF_REASON_BY_ADMIN, "cancelled by an admin");
    else if (end == INF_CALL_END_USER)
        inf_fail_reason(&fault->err, INF_CANCELLED, INF_REASON_BY_CLIENT,
                        "cancelled by another client of the same user");
    else if (end == INF_CALL_END_SHUTDOWN)
        inf_fail_reason(&fault->err, INF_CANCELLED, INF_REASON_SHUTDOWN,
                        "the daemon shuts down and had no more time");
    else if (loading)
        inf_fail_reason(&fault->err, INF_DEADLINE, INF_REASON_LOADING,
                        "the time given ran out while the model was being loaded");
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
    const struct inf_reply reply = inf_reply_of(call);
    bool answer = !call->answered, loading = call->kind == INF_CALL_WAIT;
    if (answer && !inf_service_claim(call)) {
        inf_connection_leave_call(connection, call, false);
        return;
    }
    inf_connection_unlink_call(connection, call);
    if (answer)
        inf_connection_mark_answered(connection, call);
    struct inf_request_end ended;
    inf_service_end_of(set->options.service, call, &ended);
    bool freed = inf_connection_withdraw_call(connection, call);
    // A worker still runs the call and returns it to the connection later. Until then the call
    // stays in the connection's list.
    if (!freed)
        inf_connection_link_call(connection, call);
    if (!answer)
        return;
    inf_fault_init(&set->fault);
    explain_end(&set->fault, end, freed, loading);
    inf_service_count_failure(set->options.service, &ended, &set->fault.err);
    inf_connection_answer(connection, &reply, NULL, &set->fault);
    inf_connection_report_released(connection);
}
