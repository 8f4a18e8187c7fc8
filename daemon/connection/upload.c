// SPDX-License-Identifier: Apache-2.0
// Data of requests that come ahead of them, in DATA frames: collected until the REQUEST is there. An
// upload that cannot be taken is remembered as refused, so that its REQUEST gets that answer.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
#include "daemon/connection/connection_private.h"

static struct inf_upload **find(struct inf_connection *connection, uint64_t stream_id)
{
    struct inf_upload **link = &connection->uploads;
    while (*link != NULL && (*link)->stream_id != stream_id)
        link = &(*link)->next;
    return link;
}

// Gives back what an upload holds, but for itself.
static void give_up(struct inf_connection *connection, struct inf_upload *upload) INF_ON_LOOP
{
    if (upload->data == NULL)
        return;
    inf_pool_release(connection->set->options.pool, upload->data, upload->total_bytes);
    upload->data = NULL;
    inf_connection_refund(connection->user, upload->total_bytes);
    connection->bytes_in_flight -= upload->total_bytes;
}

struct inf_upload *inf_connection_take_upload(struct inf_connection *connection, uint64_t stream_id)
{
    struct inf_upload **link = find(connection, stream_id);
    struct inf_upload *upload = *link;
    if (upload == NULL)
        return NULL;
    *link = upload->next;
    connection->upload_count--;
    return upload;
}

void inf_connection_free_upload(struct inf_connection *connection, struct inf_upload *upload)
{
    give_up(connection, upload);
    free(upload);
}

void inf_connection_drop_uploads(struct inf_connection *connection)
{
    while (connection->uploads != NULL)
        inf_connection_free_upload(
            connection, inf_connection_take_upload(connection, connection->uploads->stream_id));
}

uint64_t inf_connection_uploads_due_ns(const struct inf_connection *connection)
{
    uint64_t oldest_ns = 0;
    for (const struct inf_upload *upload = connection->uploads; upload != NULL;
         upload = upload->next)
        if (oldest_ns == 0 || upload->since_ns < oldest_ns)
            oldest_ns = upload->since_ns;
    return oldest_ns == 0 ? 0 : oldest_ns + INF_LIMIT_FRAME_MS * INF_NS_PER_MS;
}

// Whether an upload may begin, and pays for it.
static enum inf_code accept(struct inf_connection *connection, uint64_t total_bytes,
                            struct inf_upload *upload) INF_ON_LOOP
{
    struct inf_connections *set = connection->set;
    struct inf_error *err = &upload->refused.err;
    if (set->draining)
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_DRAINING,
                               "the daemon shuts down and takes no more requests");
    if (total_bytes == 0 || total_bytes > INF_LIMIT_STREAM_DATA_BYTES)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_FRAME_TOO_LARGE,
                               "DATA frame: %" PRIu64 " bytes of data, wanted 1 to %u", total_bytes,
                               INF_LIMIT_STREAM_DATA_BYTES);
    INF_TRY(inf_connection_check_credit(connection, total_bytes, &upload->refused));
    INF_TRY(inf_connection_charge(connection, total_bytes, err));
    upload->data = inf_pool_acquire(set->options.pool, total_bytes);
    if (upload->data == NULL) {
        inf_connection_refund(connection->user, total_bytes);
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for the %" PRIu64 " bytes of a request", total_bytes);
    }
    upload->total_bytes = total_bytes;
    connection->bytes_in_flight += total_bytes;
    return INF_OK;
}

// The upload that a frame belongs to, begun where it is the first of its stream. NULL where the stream
// is over, or without memory.
static struct inf_upload *begin(struct inf_connection *connection, const struct inf_frame *frame,
                                uint64_t total_bytes) INF_ON_LOOP
{
    struct inf_upload *upload = *find(connection, frame->header.stream_id);
    // Of a stream that was cancelled, pieces may still be on their way.
    if (upload != NULL || frame->header.stream_id <= connection->last_stream)
        return upload;
    upload = calloc(1, sizeof *upload);
    if (upload == NULL) {
        inf_connection_close(connection);
        return NULL;
    }
    connection->last_stream = upload->stream_id = frame->header.stream_id;
    inf_fault_init(&upload->refused);
    upload->refused.phase = "frame";
    if (frame->rejected.code != INF_OK)
        upload->refused.err = frame->rejected;
    else
        (void)!accept(connection, total_bytes, upload);
    upload->next = connection->uploads;
    connection->uploads = upload;
    connection->upload_count++;
    return upload;
}

static void refuse(struct inf_connection *connection, struct inf_upload *upload,
                   const struct inf_error *err) INF_ON_LOOP
{
    give_up(connection, upload);
    upload->refused.err = *err;
}

enum inf_code inf_connection_add_data(struct inf_upload *upload, const struct inf_frame *frame,
                                      struct inf_error *err)
{
    uint64_t size = frame->header.data_bytes;
    if (!inf_range_ok(upload->got_bytes, size, upload->total_bytes))
        return inf_fail_reason(err, INF_INVALID, INF_REASON_SIZE_MISMATCH,
                               "%s frame: %" PRIu64 " bytes of data behind %" PRIu64
                               " of the %" PRIu64 " that were announced",
                               inf_frame_type_name(frame->header.type), size, upload->got_bytes,
                               upload->total_bytes);
    if (size > 0)
        memcpy(upload->data + upload->got_bytes, frame->data, size);
    upload->got_bytes += size;
    return INF_OK;
}

void inf_connection_take_data(struct inf_connection *connection, struct inf_frame *frame)
{
    struct inf_connections *set = connection->set;
    struct inf_error err = frame->rejected;
    uint64_t total_bytes = 0;
    if (err.code == INF_OK && inf_message_decode(&set->message, INF_MESSAGE_DATA, frame->meta,
                                                 set->scratch, &err) == INF_OK)
        total_bytes = set->message.data.total_bytes;
    if (err.code != INF_OK && err.code != INF_EXHAUSTED) {
        inf_connection_fail(connection, &err);
        return;
    }
    struct inf_upload *upload = begin(connection, frame, total_bytes);
    if (upload == NULL)
        return;
    upload->since_ns = inf_clock_ns();
    if (upload->refused.err.code != INF_OK)
        return;
    if (err.code == INF_OK && total_bytes != upload->total_bytes)
        inf_fail_reason(&err, INF_INVALID, INF_REASON_SIZE_MISMATCH,
                        "DATA frame: %" PRIu64 " bytes in all, the first one said %" PRIu64,
                        total_bytes, upload->total_bytes);
    if (err.code == INF_OK)
        (void)!inf_connection_add_data(upload, frame, &err);
    if (err.code != INF_OK)
        refuse(connection, upload, &err);
}
