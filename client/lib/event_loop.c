// SPDX-License-Identifier: Apache-2.0
// The rounds that drive a client: each round reads frames, ends calls that waited too long, sends
// retries, writes to the socket and calls callbacks.
//
// Without a background thread, inferd_process() and the blocking functions run rounds on the
// caller's thread; with a background thread, that thread runs all rounds, and blocking functions
// wait for it.
#include "client/lib/event_loop.h"

#include <stddef.h>

#include "client/lib/client.h"
#include "client/lib/client_lock.h"
#include "client/lib/error.h"
#include "client/lib/infer/retry.h"
#include "client/lib/io/poll_state.h"
#include "client/lib/io/receive.h"
#include "proto/core/span.h"

bool inf_client_event_loop_dispatch(inferd_client *client)
{
    bool any = false;
    while (client->calls.ended_head != NULL && !client->closing) {
        struct inf_client_call *call = client->calls.ended_head;
        client->calls.ended_head = call->next_ended;
        if (client->calls.ended_head == NULL)
            client->calls.ended_tail = &client->calls.ended_head;
        call->in_ended = false;
        any = true;
        inferd_callback callback = call->callback;
        void *context = call->context;
        inferd_result *result = call->result;
        call->result = NULL;
        if (call->phase != INF_CLIENT_CALL_CONTROL) {
            client->calls.waiting_count--;
            if (result != NULL)
                client->statistics.succeeded++;
            else
                client->statistics.failed++;
        }
        // Copy the error of the call, because the callback may reuse the call for another request.
        struct inferd_error failure;
        if (result == NULL)
            failure = call->failure;
        bool internal_callback = call->internal_callback;
        if (!call->in_table)
            inf_client_call_recycle(client, call);
        unsigned depth = internal_callback ? 0 : inf_client_lock_begin_callback(client);
        callback(context, result, result == NULL ? &failure : &client->no_error);
        if (!internal_callback)
            inf_client_lock_end_callback(client, depth);
    }
    return any;
}

// Ends calls whose give_up_ns has passed, because the daemon seems to hang. Such a call stays in
// the table of calls until the daemon answers, so that its memory is not reused.
static void end_hung_calls(inferd_client *client)
{
    if (client->calls.next_give_up_ns == 0)
        return;
    uint64_t now_ns = inf_client_now_ns();
    if (now_ns < client->calls.next_give_up_ns)
        return;
    uint64_t next_ns = 0;
    struct inf_error err;
    inf_fail_reason(&err, INF_DEADLINE, INF_REASON_NONE, "the daemon did not answer in time");
    for (uint32_t i = 0; i < INF_CLIENT_BUCKETS; i++) {
        for (struct inf_client_call *call = client->calls.buckets[i]; call != NULL;
             call = call->next) {
            if (call->give_up_ns == 0 || call->ended)
                continue;
            if (call->give_up_ns > now_ns) {
                next_ns = next_ns == 0 ? call->give_up_ns : INF_MIN(next_ns, call->give_up_ns);
                continue;
            }
            call->on_reply = NULL;
            inf_client_call_send_cancel(client, call);
            inf_client_call_end(client, call, &err, 0);
        }
    }
    client->calls.next_give_up_ns = next_ns;
}

void inf_client_event_loop_run_once(inferd_client *client)
{
    inf_client_receive_frames(client);
    end_hung_calls(client);
    inf_client_retry_send(client);
    inf_client_send_queue_flush(client);
    (void)inf_client_event_loop_dispatch(client);
    inf_client_lock_notify(client);
}

bool inf_client_event_loop_wait(inferd_client *client, uint64_t until_ns)
{
    if (inf_client_lock_is_served_elsewhere(client))
        return inf_client_lock_wait(client, until_ns);
    if (inf_client_event_loop_dispatch(client))
        // Return true, because a callback may have received the answer that the caller waits for.
        return true;
    bool over = client->connection.failure.code != INF_OK;
    if (client->closing || (over && client->retry.head == NULL))
        return false;
    if (until_ns != 0 && inf_client_now_ns() >= until_ns)
        return false;
    inf_client_lock_poll(client, inf_client_poll_state_timeout_ms(client, until_ns));
    inf_client_event_loop_run_once(client);
    return true;
}
