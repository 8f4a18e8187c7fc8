// SPDX-License-Identifier: Apache-2.0
// Asynchronous requests that have certainly not been begun wait here to be sent again, on a new
// connection where the old one is over. Nothing in here blocks.
#include <string.h>

#include "client/lib/client.h"

#define CONNECT_EVERY_NS ((uint64_t)10 * 1000 * 1000)

bool inf_reason_is_unbegun(enum inf_code code, enum inf_reason reason)
{
    if (code != INF_UNAVAILABLE && code != INF_EXHAUSTED)
        return false;
    return reason == INF_REASON_DRAINING || reason == INF_REASON_QUEUE_FULL ||
           reason == INF_REASON_QUOTA_REQUESTS || reason == INF_REASON_QUOTA_TIME ||
           reason == INF_REASON_LOADING;
}

bool inf_call_park(inferd_client *client, struct inf_call *call, const struct inf_error *error,
                   uint32_t retry_after_ms)
{
    uint64_t now_ns = inf_client_now_ns();
    uint64_t wake_ns = now_ns + (uint64_t)INF_MAX(retry_after_ms, 1u) * 1000000;
    if (call->ended || call->cancelled || call->once || call->phase != INF_CALL_INFER ||
        wake_ns >= call->retry_until_ns || client->closing)
        return false;
    inf_client_report(&call->failure, error);
    call->failure.retry_after_ms = retry_after_ms;
    call->wake_ns = wake_ns;
    struct inf_call **place = &client->parked;
    while (*place != NULL)
        place = &(*place)->next_in_bucket;
    call->next_in_bucket = NULL;
    *place = call;
    return true;
}

// Ends a call that waited, with what it failed with last, or with `error`.
static void give_up(inferd_client *client, struct inf_call **place, const struct inf_error *error)
{
    struct inf_call *call = *place;
    *place = call->next_in_bucket;
    inf_call_end(client, call, error, 0);
    inf_call_finish(client, call, true);
}

bool inf_parked_cancel(inferd_client *client, uint64_t handle)
{
    struct inf_error error;
    for (struct inf_call **place = &client->parked; *place != NULL;
         place = &(*place)->next_in_bucket) {
        if ((*place)->handle != handle)
            continue;
        inf_fail_reason(&error, INF_CANCELLED, INF_REASON_BY_CLIENT, "cancelled by the client");
        give_up(client, place, &error);
        return true;
    }
    return false;
}

// Whether only another connection will take requests.
static bool is_over(const inferd_client *client)
{
    return client->failure.code != INF_OK || (client->draining && client->open_count == 0);
}

// Goes one step towards a connection that takes requests. True once there is one.
static bool is_connected(inferd_client *client, uint64_t now_ns)
{
    struct inf_error err;
    bool over = is_over(client);
    if (over && now_ns >= client->connect_ns) {
        client->connect_ns = now_ns + CONNECT_EVERY_NS;
        inf_client_fail(client, &(struct inf_error){.code = INF_UNAVAILABLE,
                                                    .text = "the connection was given up"});
        inf_client_connect_begin(client, now_ns);
        inf_client_flush(client);
        inf_client_receive(client);
    } else if (!over && client->connecting && !client->greeted &&
               now_ns >= client->connect_ns + INF_CLIENT_ANSWER_NS) {
        inf_client_fail(client, &(struct inf_error){.code = INF_UNAVAILABLE,
                                                    .text = "the daemon did not answer"});
    }
    if (client->failure.code != INF_OK || !client->greeted)
        return false;
    if (client->connecting && inf_client_memory_register(client, &err) != INF_OK)
        inf_client_fail(client, &err);
    client->connecting = false;
    return inf_client_may_send(client, NULL) == INF_OK;
}

void inf_client_retry(inferd_client *client)
{
    if (client->parked == NULL || client->closing)
        return;
    uint64_t now_ns = inf_client_now_ns();
    bool connected = is_connected(client, now_ns);
    for (struct inf_call **place = &client->parked; *place != NULL;) {
        struct inf_call *call = *place;
        struct inf_error err = {.code = INF_OK};
        if (now_ns >= call->retry_until_ns) {
            give_up(client, place, NULL);
        } else if (connected && now_ns >= call->wake_ns &&
                   inf_client_may_send(client, NULL) == INF_OK) {
            *place = call->next_in_bucket;
            if (inf_infer_resend(client, call, &err) == INF_OK)
                continue;
            inf_call_end(client, call, &err, 0);
            inf_call_finish(client, call, true);
        } else {
            place = &call->next_in_bucket;
        }
    }
}

uint64_t inf_client_wake_ns(const inferd_client *client)
{
    uint64_t wake_ns = client->next_guard_ns;
    for (const struct inf_call *call = client->parked; call != NULL; call = call->next_in_bucket) {
        uint64_t next_ns = UINT64_MAX; // an answer brings it on
        if (is_over(client))
            next_ns = INF_MAX(client->connect_ns, 1);
        else if (!client->greeted)
            next_ns = client->connect_ns + INF_CLIENT_ANSWER_NS;
        else if (inf_client_may_send(client, NULL) == INF_OK)
            next_ns = call->wake_ns;
        next_ns = INF_MIN(next_ns, call->retry_until_ns);
        wake_ns = wake_ns == 0 ? next_ns : INF_MIN(wake_ns, next_ns);
    }
    return wake_ns;
}
