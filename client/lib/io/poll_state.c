// SPDX-License-Identifier: Apache-2.0
// The events and times that a client waits for. These functions only read the client's state, so
// any thread that holds the lock may call them.
#include "client/lib/io/poll_state.h"

#include "client/lib/client.h"
#include "client/lib/error.h"
#include "client/lib/io/credit.h"
#include "proto/core/span.h"

bool inf_client_poll_state_needs_connection(const inferd_client *client)
{
    return client->connection.failure.code != INF_OK ||
           (client->connection.draining && client->calls.open_count == 0);
}

struct pollfd inf_client_poll_state_socket(const inferd_client *client)
{
    if (client->connection.failure.code != INF_OK)
        return (struct pollfd){.fd = -1};
    return (struct pollfd){.fd = client->connection.fd,
                           .events = (short)(POLLIN | (client->output.head != NULL ? POLLOUT : 0))};
}

uint64_t inf_client_poll_state_wake_ns(const inferd_client *client)
{
    uint64_t wake_ns = client->calls.next_give_up_ns;
    for (const struct inf_client_call *call = client->retry.head; call != NULL; call = call->next) {
        uint64_t next_ns = UINT64_MAX; // without credit, retries wait for an answer, not for a time
        if (inf_client_poll_state_needs_connection(client))
            next_ns = INF_MAX(client->connection.attempt_ns, 1);
        else if (!client->connection.greeted)
            next_ns = client->connection.attempt_ns + client->answer_ns;
        else if (inf_client_credit_check_request(client, NULL) == INF_OK)
            next_ns = call->retry_at_ns;
        next_ns = INF_MIN(next_ns, call->queued_until_ns);
        wake_ns = wake_ns == 0 ? next_ns : INF_MIN(wake_ns, next_ns);
    }
    return wake_ns;
}

int inf_client_poll_state_timeout_ms(const inferd_client *client, uint64_t until_ns)
{
    uint64_t end_ns = inf_client_poll_state_wake_ns(client);
    if (until_ns != 0 && (end_ns == 0 || until_ns < end_ns))
        end_ns = until_ns;
    if (end_ns == 0)
        return -1;
    uint64_t now_ns = inf_client_now_ns();
    if (end_ns <= now_ns)
        return 0;
    uint64_t wait_ms = (end_ns - now_ns + 999999) / 1000000;
    return wait_ms > 3600000 ? 3600000 : (int)wait_ms;
}
