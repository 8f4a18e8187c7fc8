// SPDX-License-Identifier: Apache-2.0
// Public functions by which an application runs a client: from its own poll loop, or by waiting.
#include <stddef.h>

#include "client/inferd.h"
#include "client/lib/client.h"
#include "client/lib/client_lock.h"
#include "client/lib/error.h"
#include "client/lib/event_loop.h"
#include "client/lib/io/poll_state.h"
#include "proto/core/span.h"

int inferd_fd(const inferd_client *client)
{
    return client->lock != NULL ? -1 : inf_client_poll_state_socket(client).fd;
}

short inferd_events(const inferd_client *client)
{
    return client->lock != NULL ? 0 : inf_client_poll_state_socket(client).events;
}

int inferd_timeout(const inferd_client *client)
{
    return client->lock != NULL ? -1 : inf_client_poll_state_timeout_ms(client, 0);
}

int inferd_process(inferd_client *client, struct inferd_error *err)
{
    inf_client_enter(client);
    if (client->lock == NULL)
        inf_client_event_loop_run_once(client);
    struct inf_error failure = client->connection.failure;
    bool reconnecting = client->retry.head != NULL;
    inf_client_leave(client);
    return failure.code == INF_OK || reconnecting ? INFERD_OK
                                                  : inf_client_report_error(err, &failure);
}

int inferd_wait(inferd_client *client, struct inferd_error *err)
{
    inf_client_enter(client);
    bool elsewhere = inf_client_lock_is_served_elsewhere(client);
    while (
        (client->calls.waiting_count > 0 || (elsewhere && inf_client_lock_has_callback(client))) &&
        inf_client_event_loop_wait(client, 0))
        ;
    if (!elsewhere)
        inf_client_event_loop_dispatch(client);
    struct inf_error failure = client->connection.failure;
    inf_client_leave(client);
    return failure.code == INF_OK ? INFERD_OK : inf_client_report_error(err, &failure);
}

int inferd_wait_credit(inferd_client *client, size_t bytes, uint64_t timeout_ms,
                       struct inferd_error *err)
{
    struct inf_error error = {.code = INF_OK};
    uint64_t until_ns = inf_client_now_ns() + INF_MIN(timeout_ms, UINT32_MAX) * 1000000;
    inf_client_enter(client);
    enum inf_code code;
    while (
        (code = inf_client_credit_check_request(client, &error)) == INF_EXHAUSTED ||
        (code == INF_OK && (code = inf_client_credit_check_bytes(client, bytes, &error)) != INF_OK))
        if (!inf_client_event_loop_wait(client, until_ns))
            break;
    inf_client_leave(client);
    return code == INF_OK ? INFERD_OK : inf_client_report_error(err, &error);
}
