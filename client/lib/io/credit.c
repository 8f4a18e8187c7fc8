// SPDX-License-Identifier: Apache-2.0
// The checks before a request is sent. The counters themselves change in call.c (a request is sent
// or answered) and incoming.c (the daemon grants credit).
#include "client/lib/io/credit.h"

#include "client/lib/client.h"

enum inf_code inf_client_credit_check_request(const inferd_client *client, struct inf_error *err)
{
    if (client->closing)
        return inf_fail(err, INF_CANCELLED, "the client has been closed");
    if (client->connection.failure.code != INF_OK) {
        if (err != NULL)
            *err = client->connection.failure;
        return client->connection.failure.code;
    }
    if (client->connection.draining)
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_DRAINING,
                               "the daemon is shutting down and takes no new requests");
    if (client->credit.requests == 0 ||
        client->calls.open_count >= client->connection.limits.streams)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_QUOTA_REQUESTS,
                               "%u requests are in flight, as many as the daemon allows",
                               client->calls.open_count);
    return INF_OK;
}

enum inf_code inf_client_credit_check_bytes(const inferd_client *client, size_t bytes,
                                            struct inf_error *err)
{
    if (bytes == 0 || client->credit.bytes == 0 || client->credit.bytes_in_flight == 0 ||
        inf_range_ok(client->credit.bytes_in_flight, bytes, client->credit.bytes))
        return INF_OK;
    return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_QUOTA_BYTES,
                           "%zu bytes beside those of requests in flight are more than the daemon "
                           "allows, %llu",
                           bytes, (unsigned long long)client->credit.bytes);
}
