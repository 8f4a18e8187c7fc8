// SPDX-License-Identifier: Apache-2.0
// Functions that connect, reconnect and close, and block meanwhile (public functions).
#include "client/lib/connect.h"

#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/inferd.h"
#include "client/lib/background_thread.h"
#include "client/lib/client.h"
#include "client/lib/client_lock.h"
#include "client/lib/error.h"
#include "client/lib/event_loop.h"
#include "client/lib/io/connection.h"
#include "proto/core/span.h"

#define DEFAULT_PATH    "/run/inferd/inferd.sock"
#define CONNECT_WAIT_MS 10

static const char *find_socket_path(const char *path)
{
    if (path != NULL)
        return path;
    path = getenv("INFERD_SOCKET");
    return path != NULL && path[0] != '\0' ? path : DEFAULT_PATH;
}

static enum inf_code exchange_greeting(inferd_client *client, const char *path, uint64_t until_ns,
                                       struct inf_error *err)
{
    uint64_t begin_ns = inf_client_now_ns();
    INF_TRY(inf_client_connection_send_hello(client, err));
    inf_client_send_queue_flush(client);
    while (!client->connection.greeted && inf_client_event_loop_wait(client, until_ns))
        ;
    if (client->connection.failure.code != INF_OK) {
        *err = client->connection.failure;
        return inf_error_prefix(err, INF_INTERNAL, "the greeting on '%s' failed", path);
    }
    if (!client->connection.greeted)
        return inf_fail(err, INF_DEADLINE,
                        "the process that listens on '%s' has not answered in %.1f s", path,
                        (double)(inf_client_now_ns() - begin_ns) / 1e9);
    return INF_OK;
}

int inferd_connect(inferd_client **out_client, const char *path, struct inferd_error *err)
{
    return inferd_connect_timeout(out_client, path, 0, err);
}

int inferd_connect_timeout(inferd_client **out_client, const char *path, uint64_t timeout_ms,
                           struct inferd_error *err)
{
    struct inf_error error = {.code = INF_OK};
    inferd_client *client = NULL;
    if (out_client == NULL) {
        inf_fail(&error, INF_INVALID, "the pointer for the client is NULL");
        return inf_client_report_error(err, &error);
    }
    *out_client = NULL;
    path = find_socket_path(path);
    if (inf_client_create(&client, path, &error) != INF_OK)
        return inf_client_report_error(err, &error);
    client->answer_ns =
        timeout_ms == 0 ? INF_CLIENT_ANSWER_NS : INF_MIN(timeout_ms, UINT32_MAX) * 1000000;
    uint64_t until_ns = inf_client_now_ns() + client->answer_ns;
    enum inf_code code = inf_client_connection_open(client, path, until_ns, &error);
    if (code == INF_OK)
        code = exchange_greeting(client, path, until_ns, &error);
    if (code != INF_OK) {
        inf_client_destroy(client);
        return inf_client_report_error(err, &error);
    }
    *out_client = client;
    return INFERD_OK;
}

static enum inf_code connect_once(inferd_client *client, uint64_t until_ns, struct inf_error *err)
{
    inf_client_connection_reset(client);
    client->connection.failure.code = INF_OK;
    client->connection.needs_registration = true;
    client->connection.attempt_ns = inf_client_now_ns();
    INF_TRY(inf_client_connection_open(client, client->connection.path, until_ns, err));
    INF_TRY(exchange_greeting(client, client->connection.path, until_ns, err));
    // A round of the event loop that reconnected may already have registered the shared-memory
    // regions, before it sent queued requests again.
    bool registered = !client->connection.needs_registration;
    client->connection.needs_registration = false;
    return registered ? INF_OK : inf_client_region_table_register(client, err);
}

enum inf_code inf_client_reconnect(inferd_client *client, uint64_t until_ns, struct inf_error *err)
{
    // First wait for requests in flight, because the daemon answers them on the old connection.
    while (client->connection.failure.code == INF_OK && client->calls.open_count > 0 &&
           inf_client_event_loop_wait(client, until_ns))
        ;
    inf_client_connection_fail(
        client, &(struct inf_error){.code = INF_UNAVAILABLE, .text = "the client reconnects"});
    client->statistics.reconnects++;
    enum inf_code code;
    while ((code = connect_once(client, until_ns, err)) != INF_OK && !client->closing &&
           inf_client_now_ns() < until_ns)
        (void)poll(NULL, 0, CONNECT_WAIT_MS);
    if (code == INF_OK)
        return INF_OK;
    client->connection.failure = *err;
    client->connection.failure.code = INF_UNAVAILABLE;
    return err->code;
}

int inferd_reconnect(inferd_client *client, uint64_t timeout_ms, struct inferd_error *err)
{
    struct inf_error error = {.code = INF_OK};
    inf_client_enter(client);
    uint64_t until_ns = inf_client_now_ns() + INF_MIN(timeout_ms, UINT32_MAX) * 1000000;
    enum inf_code code = inf_client_reconnect(client, until_ns, &error);
    inf_client_leave(client);
    return code == INF_OK ? INFERD_OK : inf_client_report_error(err, &error);
}

void inferd_close(inferd_client *client)
{
    if (client == NULL)
        return;
    if (client->lock != NULL) {
        inf_client_background_thread_close(client);
        return;
    }
    client->closing = true;
    if (client->depth == 0)
        inf_client_destroy(client);
}
