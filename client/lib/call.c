// SPDX-License-Identifier: Apache-2.0
// The table of requests in flight, the callbacks, and the rounds that drive both.
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "client/lib/background_thread.h"

struct inf_call *inf_call_acquire(inferd_client *client, struct inf_error *err)
{
    struct inf_call *call = client->unused_calls;
    if (call == NULL) {
        call = calloc(1, sizeof *call);
        if (call == NULL)
            inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for a request");
        return call;
    }
    client->unused_calls = call->next_in_bucket;
    inferd_memory **memories = call->memories;
    size_t memory_capacity = call->memory_capacity;
    memset(call, 0, sizeof *call);
    call->memories = memories;
    call->memory_capacity = memory_capacity;
    return call;
}

enum inf_code inf_client_may_send(const inferd_client *client, struct inf_error *err)
{
    if (client->closing)
        return inf_fail(err, INF_CANCELLED, "the client has been closed");
    if (client->failure.code != INF_OK) {
        if (err != NULL)
            *err = client->failure;
        return client->failure.code;
    }
    if (client->draining)
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_DRAINING,
                               "the daemon is shutting down and takes no new requests");
    if (client->credit == 0 || client->open_count >= client->limits.streams)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_QUOTA_REQUESTS,
                               "%u requests are in flight, as many as the daemon allows",
                               client->open_count);
    return INF_OK;
}

static struct inf_call **bucket_of(inferd_client *client, uint64_t stream)
{
    return &client->buckets[stream % INF_CLIENT_BUCKETS];
}

struct inf_call *inf_call_find(inferd_client *client, uint64_t stream)
{
    struct inf_call *call = *bucket_of(client, stream);
    while (call != NULL && call->stream != stream)
        call = call->next_in_bucket;
    return call;
}

void inf_call_send(inferd_client *client, struct inf_call *call, struct inf_outgoing *outgoing,
                   uint16_t method)
{
    call->stream = client->next_stream++;
    if (call->handle == 0)
        call->handle = call->stream;
    struct inf_call **bucket = bucket_of(client, call->stream);
    call->next_in_bucket = *bucket;
    *bucket = call;
    call->in_table = true;
    call->data_bytes = outgoing->size - INF_FRAME_HEADER_BYTES - outgoing->meta_size;
    client->bytes_in_flight += call->data_bytes;
    client->open_count++;
    if (client->credit > 0)
        client->credit--;
    if (call->guard_ns != 0 &&
        (client->next_guard_ns == 0 || call->guard_ns < client->next_guard_ns))
        client->next_guard_ns = call->guard_ns;
    struct inf_frame_header header = {
        .type = INF_FRAME_REQUEST,
        .stream_id = call->stream,
        .method = method,
    };
    struct inf_error err;
    if (inf_client_queue_request(client, outgoing, header, &err) == INF_OK)
        inf_client_flush(client);
    else
        inf_client_fail(client, &err); // half of a request may be on its way
}

void inf_call_answered(inferd_client *client, struct inf_call *call, uint32_t credit)
{
    struct inf_call **place = bucket_of(client, call->stream);
    while (*place != call)
        place = &(*place)->next_in_bucket;
    *place = call->next_in_bucket;
    call->in_table = false;
    client->bytes_in_flight -= call->data_bytes;
    client->open_count--;
    if (credit > UINT32_MAX - client->credit)
        credit = UINT32_MAX - client->credit;
    client->credit += credit;
}

void inf_call_end(inferd_client *client, struct inf_call *call, const struct inf_error *error,
                  uint32_t retry_after_ms)
{
    if (call->ended)
        return;
    call->ended = true;
    if (error != NULL) {
        inf_client_report(&call->failure, error);
        call->failure.retry_after_ms = retry_after_ms;
    }
    call->in_ended = true;
    call->next_ended = NULL;
    *client->ended_tail = call;
    client->ended_tail = &call->next_ended;
}

// Gives an unused call back.
static void recycle(inferd_client *client, struct inf_call *call)
{
    call->next_in_bucket = client->unused_calls;
    client->unused_calls = call;
}

// Drops what has come of an answer.
static void drop_pieces(inferd_client *client, struct inf_call *call)
{
    inf_client_data_free(client, call->pieces, call->pieces_size);
    call->pieces = NULL;
    call->pieces_size = call->pieces_got = 0;
}

void inf_call_finish(inferd_client *client, struct inf_call *call, bool daemon_done)
{
    drop_pieces(client, call);
    inf_memory_unref(&call->input_block, daemon_done);
    inf_memory_unref(&call->output_block, daemon_done);
    for (size_t i = 0; i < call->memory_count; i++)
        inf_memory_unref(&call->memories[i], daemon_done);
    call->memory_count = 0;
    free(call->homes);
    call->homes = NULL;
    call->home_count = 0;
    inf_outgoing_release(client, &call->frame);
    if (!call->in_table && !call->in_ended)
        recycle(client, call);
}

void inf_call_cancel(inferd_client *client, struct inf_call *call)
{
    if (!call->in_table || client->failure.code != INF_OK)
        return;
    struct inf_frame_header header = {
        .type = INF_FRAME_CANCEL,
        .stream_id = call->stream,
    };
    struct inf_error ignored; // without memory the request goes on to its end
    if (inf_client_send(client, header, INF_MESSAGE_EMPTY, -1, &ignored) == INF_OK)
        inf_client_flush(client);
}

bool inf_client_dispatch(inferd_client *client)
{
    static const struct inferd_error no_error = {.code = INFERD_OK};
    bool any = false;
    while (client->ended_head != NULL && !client->closing) {
        struct inf_call *call = client->ended_head;
        client->ended_head = call->next_ended;
        if (client->ended_head == NULL)
            client->ended_tail = &client->ended_head;
        call->in_ended = false;
        any = true;
        inferd_callback callback = call->callback;
        void *context = call->context;
        inferd_result *result = call->result;
        call->result = NULL;
        if (call->phase != INF_CALL_CONTROL) {
            client->waiting_count--;
            if (result != NULL)
                client->statistics.succeeded++;
            else
                client->statistics.failed++;
        }
        struct inferd_error failure; // not `call`'s: the callback may use it for another request
        if (result == NULL)
            failure = call->failure;
        bool waited = call->waited;
        if (!call->in_table)
            recycle(client, call);
        unsigned held = waited ? 0 : inf_service_callback_begin(client);
        callback(context, result, result == NULL ? &failure : &no_error);
        if (!waited)
            inf_service_callback_end(client, held);
    }
    return any;
}

// --- calls that the connection ends ---

// Runs `visit` over all calls in the table; it may take its call out.
static void each_call(inferd_client *client,
                      void (*visit)(inferd_client *client, struct inf_call *call, const void *with),
                      const void *with)
{
    for (uint32_t i = 0; i < INF_CLIENT_BUCKETS; i++) {
        struct inf_call *next;
        for (struct inf_call *call = client->buckets[i]; call != NULL; call = next) {
            next = call->next_in_bucket;
            visit(client, call, with);
        }
    }
}

static void fail_call(inferd_client *client, struct inf_call *call, const void *with)
{
    inf_call_answered(client, call, 0);
    // The daemon begins what it has all of, and nothing else.
    if (call->frame != NULL && call->frame->sent < call->frame->size &&
        inf_call_park(client, call, with, 0))
        return;
    inf_call_end(client, call, with, 0);
    inf_call_finish(client, call, false);
}

void inf_client_fail(inferd_client *client, const struct inf_error *error)
{
    if (client->failure.code != INF_OK)
        return;
    client->failure = *error;
    client->failure.code = INF_UNAVAILABLE;
    if (!client->greeted)
        client->failure.code = error->code; // inferd_connect() says it as it is
    shutdown(client->fd, SHUT_RDWR);
    each_call(client, fail_call, &client->failure);
}

static void fail_unstarted(inferd_client *client, struct inf_call *call, const void *with)
{
    (void)with;
    if (call->stream <= client->last_stream)
        return;
    struct inf_error err;
    inf_fail_reason(&err, INF_UNAVAILABLE, INF_REASON_DRAINING,
                    "the daemon is shutting down; the request was not started");
    inf_call_answered(client, call, 1);
    if (inf_call_park(client, call, &err, 0))
        return;
    inf_call_end(client, call, &err, 0);
    inf_call_finish(client, call, true);
}

void inf_client_drain(inferd_client *client, uint64_t last_stream)
{
    client->draining = true;
    client->last_stream = last_stream;
    each_call(client, fail_unstarted, NULL);
}

// --- rounds ---

// Ends calls whose guard has passed: the daemon hangs. They stay in the table.
static void expire(inferd_client *client)
{
    if (client->next_guard_ns == 0)
        return;
    uint64_t now_ns = inf_client_now_ns();
    if (now_ns < client->next_guard_ns)
        return;
    uint64_t next_ns = 0;
    struct inf_error err;
    inf_fail_reason(&err, INF_DEADLINE, INF_REASON_NONE, "the daemon did not answer in time");
    for (uint32_t i = 0; i < INF_CLIENT_BUCKETS; i++) {
        for (struct inf_call *call = client->buckets[i]; call != NULL;
             call = call->next_in_bucket) {
            if (call->guard_ns == 0 || call->ended)
                continue;
            if (call->guard_ns > now_ns) {
                next_ns = next_ns == 0 ? call->guard_ns : INF_MIN(next_ns, call->guard_ns);
                continue;
            }
            call->take = NULL;
            inf_call_cancel(client, call);
            inf_call_end(client, call, &err, 0);
        }
    }
    client->next_guard_ns = next_ns;
}

void inf_client_process(inferd_client *client)
{
    inf_client_receive(client);
    expire(client);
    inf_client_retry(client);
    inf_client_flush(client);
    (void)inf_client_dispatch(client);
    inf_service_changed(client);
}

struct pollfd inf_client_pollfd(const inferd_client *client)
{
    if (client->failure.code != INF_OK)
        return (struct pollfd){.fd = -1};
    return (struct pollfd){.fd = client->fd,
                           .events = (short)(POLLIN | (client->out_head != NULL ? POLLOUT : 0))};
}

int inf_client_poll_ms(const inferd_client *client, uint64_t until_ns)
{
    uint64_t end_ns = inf_client_wake_ns(client);
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

bool inf_client_wait(inferd_client *client, uint64_t until_ns)
{
    if (inf_service_is_elsewhere(client))
        return inf_service_wait(client, until_ns);
    if (inf_client_dispatch(client))
        return true; // callbacks may have brought what the caller waits for
    bool over = client->failure.code != INF_OK;
    if (client->closing || (over && client->parked == NULL))
        return false;
    if (until_ns != 0 && inf_client_now_ns() >= until_ns)
        return false;
    inf_service_poll(client, inf_client_poll_ms(client, until_ns));
    inf_client_process(client);
    return true;
}

static void free_call(inferd_client *client, struct inf_call *call)
{
    inf_outgoing_release(client, &call->frame);
    drop_pieces(client, call);
    free(call->homes);
    free(call->memories);
    free(call);
}

void inf_client_calls_fini(inferd_client *client)
{
    // A call may be in the list, in the table, or in both.
    for (struct inf_call *call = client->ended_head; call != NULL;) {
        struct inf_call *next = call->next_ended;
        call->in_ended = false;
        if (!call->in_table)
            free_call(client, call);
        call = next;
    }
    for (uint32_t i = 0; i < INF_CLIENT_BUCKETS + 2; i++) {
        struct inf_call *call = i < INF_CLIENT_BUCKETS    ? client->buckets[i]
                                : i == INF_CLIENT_BUCKETS ? client->unused_calls
                                                          : client->parked;
        while (call != NULL) {
            struct inf_call *next = call->next_in_bucket;
            free_call(client, call);
            call = next;
        }
    }
}
