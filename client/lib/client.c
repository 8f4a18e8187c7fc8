// SPDX-License-Identifier: Apache-2.0
// The client object: creating and destroying it, its lock, and its settings.
#include "client/lib/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/lib/client_lock.h"
#include "client/lib/error.h"
#include "client/lib/io/poll_state.h"
#include "proto/core/span.h"
#include "proto/wire/scratch.h"

static void free_sessions(inferd_client *client)
{
    while (client->sessions.head != NULL) {
        inferd_session *session = client->sessions.head;
        client->sessions.head = session->next;
        free(session);
    }
}

void inf_client_destroy(inferd_client *client)
{
    inf_client_lock_destroy(client);
    if (client->connection.fd >= 0)
        close(client->connection.fd);
    // Release results before the regions and data that they refer to.
    inf_client_result_pool_fini(client);
    inf_client_call_table_fini(client);
    inf_client_region_table_fini(client);
    inf_client_metadata_cache_fini(&client->metadata);
    free_sessions(client);
    inf_client_send_queue_reset(client);
    inf_client_outgoing_pool_fini(client);
    inf_assembler_fini(&client->input.assembler);
    inf_client_data_pool_fini(&client->data_pool);
    inf_scratch_destroy(&client->scratch);
    free(client->connection.path);
    free(client);
}

enum inf_code inf_client_create(inferd_client **out_client, const char *path, struct inf_error *err)
{
    inferd_client *client = calloc(1, sizeof *client);
    if (client == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for a client");
    client->connection.fd = -1;
    client->connection.next_stream = 1;
    client->regions.from_bytes = INF_CLIENT_REGION_FROM_BYTES;
    client->calls.ended_tail = &client->calls.ended_head;
    client->output.tail = &client->output.head;
    const struct inf_assembler_limits limits = {
        .meta_bytes = INF_LIMIT_META_BYTES,
        .data_bytes = INF_LIMIT_DATA_BYTES,
    };
    const struct inf_assembler_memory memory = {
        .alloc = inf_client_data_pool_alloc,
        .free = inf_client_data_pool_free,
        .context = &client->data_pool,
    };
    inf_assembler_init(&client->input.assembler, &limits, &memory);
    client->connection.path = strdup(path);
    enum inf_code code = inf_scratch_create(&client->scratch, err);
    if (code == INF_OK && client->connection.path == NULL)
        code = inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for a client");
    if (code == INF_OK)
        *out_client = client;
    else
        inf_client_destroy(client);
    return code;
}

void inf_client_enter(inferd_client *client)
{
    inf_client_lock_enter(client);
    client->depth++;
}

void inf_client_leave(inferd_client *client)
{
    client->depth--;
    if (client->lock != NULL)
        inf_client_lock_leave(client);
    else if (client->depth == 0 && client->closing)
        inf_client_destroy(client);
}

void inferd_set_retry(inferd_client *client, uint64_t limit_ms)
{
    inf_client_enter(client);
    client->retry.limit_ns = INF_MIN(limit_ms, UINT32_MAX) * 1000000;
    inf_client_leave(client);
}

void inferd_set_queue_timeout(inferd_client *client, uint64_t timeout_ms)
{
    uint64_t timeout_ns;
    if (__builtin_mul_overflow(timeout_ms, (uint64_t)1000000, &timeout_ns))
        timeout_ns = 0; // more than 500 years counts as no limit
    inf_client_enter(client);
    client->options.queue_timeout_ns = timeout_ns;
    inf_client_leave(client);
}

int inferd_set_run_options(inferd_client *client, const char *precision, const char *mode,
                           struct inferd_error *err)
{
    const char *texts[] = {precision, mode};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(texts); i++)
        if (texts[i] != NULL && strlen(texts[i]) >= sizeof client->options.mode) {
            struct inf_error why = {0};
            (void)inf_fail_reason(&why, INF_INVALID, INF_REASON_BAD_PARAMETER, "'%.32s' is no %s",
                                  texts[i], i == 0 ? "precision" : "mode");
            return inf_client_report_error(err, &why);
        }
    inf_client_enter(client);
    snprintf(client->options.precision, sizeof client->options.precision, "%s",
             precision != NULL ? precision : "");
    snprintf(client->options.mode, sizeof client->options.mode, "%s", mode != NULL ? mode : "");
    inf_client_leave(client);
    return INFERD_OK;
}

void inferd_set_trace_context(inferd_client *client, const char *traceparent,
                              const char *tracestate)
{
    inf_client_enter(client);
    snprintf(client->options.traceparent, sizeof client->options.traceparent, "%s",
             traceparent != NULL ? traceparent : "");
    snprintf(client->options.tracestate, sizeof client->options.tracestate, "%s",
             tracestate != NULL ? tracestate : "");
    inf_client_leave(client);
}

// Takes the lock to read a client that is const for the caller. The const is cast away, because
// taking the lock changes the lock.
static void enter_to_read(const inferd_client *client)
{
    inf_client_enter((inferd_client *)client);
}

static void leave_from_reading(const inferd_client *client)
{
    inf_client_leave((inferd_client *)client);
}

void inferd_epoch(const inferd_client *client, uint64_t epoch[2])
{
    enter_to_read(client);
    epoch[0] = client->connection.epoch[0];
    epoch[1] = client->connection.epoch[1];
    leave_from_reading(client);
}

void inferd_client_statistics(const inferd_client *client, inferd_statistics *statistics)
{
    enter_to_read(client);
    *statistics = client->statistics;
    statistics->memory_bytes = client->regions.bytes;
    statistics->in_flight = client->calls.waiting_count;
    leave_from_reading(client);
}
