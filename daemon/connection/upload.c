// SPDX-License-Identifier: Apache-2.0
// Uploads: data of large requests, collected until the REQUEST frame arrives. An upload that is not
// allowed stays in the list as refused, so that its REQUEST is answered with that error.
#include "daemon/connection/upload.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
#include "daemon/connection/call.h"

static struct inf_upload **find_link(struct inf_connection *connection, uint64_t stream_id)
{
    struct inf_upload **link = &connection->uploads;
    while (*link != NULL && (*link)->stream_id != stream_id)
        link = &(*link)->next;
    return link;
}

// Frees the data of an upload and refunds it; the upload itself stays.
static void release_data(struct inf_connection *connection, struct inf_upload *upload) INF_ON_LOOP
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
    struct inf_upload **link = find_link(connection, stream_id);
    struct inf_upload *upload = *link;
    if (upload == NULL)
        return NULL;
    *link = upload->next;
    connection->upload_count--;
    return upload;
}

void inf_connection_free_upload(struct inf_connection *connection, struct inf_upload *upload)
{
    release_data(connection, upload);
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

// Checks that an upload is allowed, charges the user for it and allocates its data.
static enum inf_code reserve_upload(struct inf_connection *connection, uint64_t total_bytes,
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

struct inf_upload *inf_connection_find_upload(const struct inf_connection *connection,
                                              uint64_t stream_id)
{
    struct inf_upload *upload = connection->uploads;
    while (upload != NULL && upload->stream_id != stream_id)
        upload = upload->next;
    return upload;
}

struct inf_upload *inf_connection_start_upload(struct inf_connection *connection,
                                               const struct inf_frame *frame, uint64_t total_bytes)
{
    assert(frame->header.stream_id > connection->last_stream);
    struct inf_upload *upload = calloc(1, sizeof *upload);
    if (upload == NULL)
        return NULL;
    connection->last_stream = upload->stream_id = frame->header.stream_id;
    inf_fault_init(&upload->refused);
    upload->refused.phase = "frame";
    if (frame->rejected.code != INF_OK)
        upload->refused.err = frame->rejected;
    else
        (void)!reserve_upload(connection, total_bytes, upload);
    upload->next = connection->uploads;
    connection->uploads = upload;
    connection->upload_count++;
    return upload;
}

enum inf_code inf_connection_add_data(struct inf_upload *upload, const struct inf_frame *frame,
                                      struct inf_error *err)
{
    assert(upload->refused.err.code == INF_OK);
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

void inf_connection_refuse_upload(struct inf_connection *connection, struct inf_upload *upload,
                                  const struct inf_error *err)
{
    release_data(connection, upload);
    upload->refused.err = *err;
}
