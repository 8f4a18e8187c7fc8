// SPDX-License-Identifier: Apache-2.0
// Buffers of frames to the daemon. Unused buffers are kept for reuse, up to INF_CLIENT_POOL_BYTES.
// A buffer grows to the size of the largest frame that it has held.
#include "client/lib/io/outgoing.h"

#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/lib/client.h"

enum inf_code inf_client_outgoing_acquire(inferd_client *client, size_t capacity,
                                          struct inf_client_outgoing **out_outgoing,
                                          struct inf_error *err)
{
    struct inf_client_outgoing *outgoing = client->frames.unused;
    if (outgoing != NULL) {
        client->frames.unused = outgoing->next;
        client->frames.unused_bytes -= outgoing->capacity;
    } else {
        outgoing = calloc(1, sizeof *outgoing);
        if (outgoing == NULL)
            return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                                   "no memory for a frame");
    }
    if (outgoing->capacity < capacity) {
        free(outgoing->bytes);
        outgoing->capacity = inf_size_align(capacity, 4096);
        outgoing->bytes = malloc(outgoing->capacity);
        if (outgoing->bytes == NULL) {
            free(outgoing);
            return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                                   "no memory for a frame of %zu bytes", capacity);
        }
    }
    outgoing->next = NULL;
    outgoing->size = outgoing->sent = outgoing->meta_size = 0;
    outgoing->whole = NULL;
    outgoing->slice = NULL;
    outgoing->slice_size = outgoing->whole_bytes = 0;
    outgoing->fd = -1;
    outgoing->references = 1;
    *out_outgoing = outgoing;
    return INF_OK;
}

void inf_client_outgoing_release(inferd_client *client, struct inf_client_outgoing **outgoing)
{
    struct inf_client_outgoing *frame = *outgoing;
    *outgoing = NULL;
    if (frame == NULL)
        return;
    assert(frame->references > 0);
    if (--frame->references > 0)
        return;
    if (frame->fd >= 0)
        close(frame->fd);
    inf_client_outgoing_release(client, &frame->whole);
    if (client->frames.unused_bytes + frame->capacity > INF_CLIENT_POOL_BYTES) {
        free(frame->bytes);
        free(frame);
        return;
    }
    frame->next = client->frames.unused;
    client->frames.unused = frame;
    client->frames.unused_bytes += frame->capacity;
}

enum inf_code inf_client_outgoing_encode(inferd_client *client,
                                         struct inf_client_outgoing *outgoing,
                                         const union inf_message *message,
                                         enum inf_message_kind kind, struct inf_error *err)
{
    size_t room = INF_MIN(outgoing->capacity - INF_FRAME_HEADER_BYTES, INF_LIMIT_META_BYTES);
    if (client->connection.limits.meta_bytes != 0)
        room = INF_MIN(room, client->connection.limits.meta_bytes);
    INF_TRY(inf_message_encode(message, kind, outgoing->bytes + INF_FRAME_HEADER_BYTES, room,
                               &outgoing->meta_size, client->scratch, err));
    outgoing->size = INF_FRAME_HEADER_BYTES + outgoing->meta_size;
    return INF_OK;
}

size_t inf_client_outgoing_data_size(const struct inf_client_outgoing *frame)
{
    return frame->size - INF_FRAME_HEADER_BYTES - frame->meta_size;
}

uint8_t *inf_client_outgoing_data(const struct inf_client_outgoing *outgoing)
{
    return outgoing->bytes + INF_FRAME_HEADER_BYTES + outgoing->meta_size;
}

void inf_client_outgoing_pool_fini(inferd_client *client)
{
    while (client->frames.unused != NULL) {
        struct inf_client_outgoing *outgoing = client->frames.unused;
        client->frames.unused = outgoing->next;
        free(outgoing->bytes);
        free(outgoing);
    }
}
