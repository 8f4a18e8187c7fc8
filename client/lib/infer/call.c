// SPDX-License-Identifier: Apache-2.0
// The table of calls, by stream number, and the queue of callbacks.
#include "client/lib/infer/call.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "client/lib/client.h"
#include "client/lib/error.h"

struct inf_client_call *inf_client_call_acquire(inferd_client *client, struct inf_error *err)
{
    struct inf_client_call *call = client->calls.unused;
    if (call == NULL) {
        call = calloc(1, sizeof *call);
        if (call == NULL)
            inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for a request");
        return call;
    }
    client->calls.unused = call->next;
    inferd_memory **memories = call->memories;
    size_t memory_capacity = call->memory_capacity;
    memset(call, 0, sizeof *call);
    call->memories = memories;
    call->memory_capacity = memory_capacity;
    return call;
}

static struct inf_client_call **find_bucket(inferd_client *client, uint64_t stream)
{
    return &client->calls.buckets[stream % INF_CLIENT_BUCKETS];
}

struct inf_client_call *inf_client_call_find(inferd_client *client, uint64_t stream)
{
    struct inf_client_call *call = *find_bucket(client, stream);
    while (call != NULL && call->stream != stream)
        call = call->next;
    return call;
}

void inf_client_call_send(inferd_client *client, struct inf_client_call *call,
                          struct inf_client_outgoing *outgoing, uint16_t method)
{
    call->stream = client->connection.next_stream++;
    if (call->handle == 0)
        call->handle = call->stream;
    struct inf_client_call **bucket = find_bucket(client, call->stream);
    call->next = *bucket;
    *bucket = call;
    call->in_table = true;
    call->data_bytes = outgoing->size - INF_FRAME_HEADER_BYTES - outgoing->meta_size;
    client->credit.bytes_in_flight += call->data_bytes;
    client->calls.open_count++;
    if (client->credit.requests > 0)
        client->credit.requests--;
    if (call->give_up_ns != 0 &&
        (client->calls.next_give_up_ns == 0 || call->give_up_ns < client->calls.next_give_up_ns))
        client->calls.next_give_up_ns = call->give_up_ns;
    struct inf_frame_header header = {
        .type = INF_FRAME_REQUEST,
        .stream_id = call->stream,
        .method = method,
    };
    struct inf_error err;
    if (inf_client_send_queue_push_request(client, outgoing, header, &err) == INF_OK)
        inf_client_send_queue_flush(client);
    else
        // End the connection, because some frames of this request may already be queued and others
        // are missing.
        inf_client_connection_fail(client, &err);
}

void inf_client_call_remove(inferd_client *client, struct inf_client_call *call, uint32_t credit)
{
    assert(call->in_table);
    struct inf_client_call **place = find_bucket(client, call->stream);
    while (*place != call)
        place = &(*place)->next;
    *place = call->next;
    call->in_table = false;
    client->credit.bytes_in_flight -= call->data_bytes;
    client->calls.open_count--;
    if (credit > UINT32_MAX - client->credit.requests)
        credit = UINT32_MAX - client->credit.requests;
    client->credit.requests += credit;
}

void inf_client_call_end(inferd_client *client, struct inf_client_call *call,
                         const struct inf_error *error, uint32_t retry_after_ms)
{
    if (call->ended)
        return;
    call->ended = true;
    if (error != NULL) {
        inf_client_report_error(&call->failure, error);
        call->failure.retry_after_ms = retry_after_ms;
    }
    call->in_ended = true;
    call->next_ended = NULL;
    *client->calls.ended_tail = call;
    client->calls.ended_tail = &call->next_ended;
}

void inf_client_call_recycle(inferd_client *client, struct inf_client_call *call)
{
    call->next = client->calls.unused;
    client->calls.unused = call;
}

// Drops the data that arrived in DATA frames before the answer.
static void drop_partial(inferd_client *client, struct inf_client_call *call)
{
    inf_client_data_pool_free(&client->data_pool, call->partial, call->partial_size);
    call->partial = NULL;
    call->partial_size = call->partial_received = 0;
}

void inf_client_call_release(inferd_client *client, struct inf_client_call *call, bool daemon_done)
{
    drop_partial(client, call);
    inf_client_region_unref(&call->input_region, daemon_done);
    inf_client_region_unref(&call->output_region, daemon_done);
    for (size_t i = 0; i < call->memory_count; i++)
        inf_client_region_unref(&call->memories[i], daemon_done);
    call->memory_count = 0;
    free(call->targets);
    call->targets = NULL;
    call->target_count = 0;
    inf_client_outgoing_release(client, &call->frame);
    if (!call->in_table && !call->in_ended)
        inf_client_call_recycle(client, call);
}

void inf_client_call_send_cancel(inferd_client *client, struct inf_client_call *call)
{
    if (!call->in_table || client->connection.failure.code != INF_OK)
        return;
    struct inf_frame_header header = {
        .type = INF_FRAME_CANCEL,
        .stream_id = call->stream,
    };
    struct inf_error ignored; // if CANCEL cannot be sent, the request runs to its end
    if (inf_client_send_queue_push_control(client, header, INF_MESSAGE_EMPTY, -1, &ignored) ==
        INF_OK)
        inf_client_send_queue_flush(client);
}

void inf_client_call_table_visit(inferd_client *client,
                                 void (*visit)(inferd_client *client, struct inf_client_call *call,
                                               const void *context),
                                 const void *context)
{
    for (uint32_t i = 0; i < INF_CLIENT_BUCKETS; i++) {
        struct inf_client_call *next;
        for (struct inf_client_call *call = client->calls.buckets[i]; call != NULL; call = next) {
            next = call->next;
            visit(client, call, context);
        }
    }
}

// --- the end of a connection ---
//
// A request may be retried only if the daemon cannot have started it. The daemon starts a request
// when it has received all of its bytes; with GOAWAY it names the last stream that it will start.

static void fail_call(inferd_client *client, struct inf_client_call *call, const void *context)
{
    inf_client_call_remove(client, call, 0);
    // A request whose frame was not sent completely cannot have been started by the daemon.
    if (call->frame != NULL && call->frame->sent < call->frame->size &&
        inf_client_retry_queue_push(client, call, context, 0))
        return;
    inf_client_call_end(client, call, context, 0);
    inf_client_call_release(client, call, false);
}

void inf_client_connection_fail(inferd_client *client, const struct inf_error *error)
{
    if (client->connection.failure.code != INF_OK)
        return;
    client->connection.failure = *error;
    client->connection.failure.code = INF_UNAVAILABLE;
    if (!client->connection.greeted)
        client->connection.failure.code = error->code; // inferd_connect() reports the original code
    shutdown(client->connection.fd, SHUT_RDWR);
    inf_client_call_table_visit(client, fail_call, &client->connection.failure);
}

static void fail_unstarted_call(inferd_client *client, struct inf_client_call *call,
                                const void *context)
{
    (void)context;
    if (call->stream <= client->connection.last_stream)
        return;
    struct inf_error err;
    inf_fail_reason(&err, INF_UNAVAILABLE, INF_REASON_DRAINING,
                    "the daemon is shutting down; the request was not started");
    inf_client_call_remove(client, call, 1);
    if (inf_client_retry_queue_push(client, call, &err, 0))
        return;
    inf_client_call_end(client, call, &err, 0);
    inf_client_call_release(client, call, true);
}

void inf_client_connection_drain(inferd_client *client, uint64_t last_stream)
{
    client->connection.draining = true;
    client->connection.last_stream = last_stream;
    inf_client_call_table_visit(client, fail_unstarted_call, NULL);
}

// --- freeing calls and their table ---

static void free_call(inferd_client *client, struct inf_client_call *call)
{
    inf_client_outgoing_release(client, &call->frame);
    drop_partial(client, call);
    free(call->targets);
    free(call->memories);
    free(call);
}

void inf_client_call_table_fini(inferd_client *client)
{
    // A call may be in the queue of callbacks, in the table of calls, or in both, but it must be
    // freed only once.
    for (struct inf_client_call *call = client->calls.ended_head; call != NULL;) {
        struct inf_client_call *next = call->next_ended;
        call->in_ended = false;
        if (!call->in_table)
            free_call(client, call);
        call = next;
    }
    for (uint32_t i = 0; i < INF_CLIENT_BUCKETS + 2; i++) {
        struct inf_client_call *call = i < INF_CLIENT_BUCKETS    ? client->calls.buckets[i]
                                       : i == INF_CLIENT_BUCKETS ? client->calls.unused
                                                                 : client->retry.head;
        while (call != NULL) {
            struct inf_client_call *next = call->next;
            free_call(client, call);
            call = next;
        }
    }
}
