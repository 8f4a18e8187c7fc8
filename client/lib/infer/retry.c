// SPDX-License-Identifier: Apache-2.0
// Sending queued requests again, on a new connection if the old one has failed.
//
// The queue has only requests that were certainly not started (retry_queue.c). Each round of the
// event loop does one step: open a socket, wait for the greeting, register the regions again, send.
// If a step fails, the next attempt begins CONNECT_EVERY_NS later. A request that has no time left
// ends with its last error.
#include "client/lib/infer/retry.h"

#include <stddef.h>

#include "client/lib/client.h"
#include "client/lib/error.h"
#include "client/lib/infer/infer.h"
#include "client/lib/io/credit.h"
#include "client/lib/io/poll_state.h"
#include "client/lib/io/receive.h"
#include "proto/core/span.h"

#define CONNECT_EVERY_NS ((uint64_t)10 * 1000 * 1000)

// Removes a call from the retry queue and ends it, with `error` or, if `error` is NULL, with the
// last failure of the call.
static void end_queued(inferd_client *client, struct inf_client_call **place,
                       const struct inf_error *error)
{
    struct inf_client_call *call = *place;
    *place = call->next;
    inf_client_call_end(client, call, error, 0);
    inf_client_call_release(client, call, true);
}

bool inf_client_retry_cancel(inferd_client *client, uint64_t handle)
{
    struct inf_error error;
    for (struct inf_client_call **place = &client->retry.head; *place != NULL;
         place = &(*place)->next) {
        if ((*place)->handle != handle)
            continue;
        inf_fail_reason(&error, INF_CANCELLED, INF_REASON_BY_CLIENT, "cancelled by the client");
        end_queued(client, place, &error);
        return true;
    }
    return false;
}

// Does one step towards a connection that accepts requests. Returns whether there is such a
// connection.
static bool advance_connection(inferd_client *client, uint64_t now_ns)
{
    struct inf_error err;
    bool over = inf_client_poll_state_needs_connection(client);
    if (over && now_ns >= client->connection.attempt_ns) {
        client->connection.attempt_ns = now_ns + CONNECT_EVERY_NS;
        inf_client_connection_fail(
            client,
            &(struct inf_error){.code = INF_UNAVAILABLE, .text = "the connection was given up"});
        inf_client_connection_begin(client, now_ns);
        inf_client_send_queue_flush(client);
        inf_client_receive_frames(client);
    } else if (!over && client->connection.needs_registration && !client->connection.greeted &&
               now_ns >= client->connection.attempt_ns + client->answer_ns) {
        inf_client_connection_fail(
            client,
            &(struct inf_error){.code = INF_UNAVAILABLE, .text = "the daemon did not answer"});
    }
    if (client->connection.failure.code != INF_OK || !client->connection.greeted)
        return false;
    if (client->connection.needs_registration &&
        inf_client_region_table_register(client, &err) != INF_OK)
        inf_client_connection_fail(client, &err);
    client->connection.needs_registration = false;
    return inf_client_credit_check_request(client, NULL) == INF_OK;
}

// Called if the connection has failed. Ends each call that waits for its model to load, unless
// inferd_set_retry() covers the call.
static void end_uncovered(inferd_client *client, uint64_t now_ns)
{
    for (struct inf_client_call **place = &client->retry.head; *place != NULL;) {
        if (now_ns >= (*place)->retry_until_ns)
            end_queued(client, place, NULL);
        else
            place = &(*place)->next;
    }
}

void inf_client_retry_send(inferd_client *client)
{
    uint64_t now_ns = inf_client_now_ns();
    if (client->closing)
        return;
    if (inf_client_poll_state_needs_connection(client))
        end_uncovered(client, now_ns);
    if (client->retry.head == NULL)
        return;
    bool connected = advance_connection(client, now_ns);
    for (struct inf_client_call **place = &client->retry.head; *place != NULL;) {
        struct inf_client_call *call = *place;
        struct inf_error err = {.code = INF_OK};
        if (now_ns >= call->queued_until_ns) {
            end_queued(client, place, NULL);
        } else if (connected && now_ns >= call->retry_at_ns &&
                   inf_client_credit_check_request(client, NULL) == INF_OK) {
            *place = call->next;
            if (inf_client_infer_resend(client, call, &err) == INF_OK)
                continue;
            inf_client_call_end(client, call, &err, 0);
            inf_client_call_release(client, call, true);
        } else {
            place = &call->next;
        }
    }
}
