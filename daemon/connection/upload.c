// SPDX-License-Identifier: Apache-2.0
// Uploads: data of large requests, collected until the REQUEST frame arrives. An upload that is not
// allowed stays in the table as refused, without data, so that its REQUEST is answered with the
// same error. A connection may have only as many uploads, including refused ones, as HELLO granted
// it requests. A client that keeps to its credit never needs more; the daemon closes the connection
// of a client that starts another upload. Every operation takes constant time: a hash table finds
// an upload by its stream, and a list ordered by the last DATA frames starts with the upload that
// times out first.
#include "daemon/connection/upload.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
#include "daemon/connection/call.h"
#include "daemon/connection/kept.h"

// 2^64 divided by the golden ratio. Multiplying by this constant spreads consecutive stream numbers
// over the buckets.
#define HASH_FACTOR 0x9e3779b97f4a7c15u

static size_t find_bucket(uint64_t stream_id)
{
    return (size_t)((stream_id * HASH_FACTOR) >> 32) % INF_CONNECTION_UPLOAD_BUCKETS;
}

static struct inf_upload **find_link(struct inf_connection *connection, uint64_t stream_id)
{
    struct inf_upload **link = &connection->upload_buckets[find_bucket(stream_id)];
    while (*link != NULL && (*link)->stream_id != stream_id)
        link = &(*link)->next;
    return link;
}

static void append_newest(struct inf_connection *connection, struct inf_upload *upload)
{
    upload->newer = NULL;
    upload->older = connection->newest_upload;
    if (upload->older != NULL)
        upload->older->newer = upload;
    else
        connection->oldest_upload = upload;
    connection->newest_upload = upload;
}

static void unlink_by_age(struct inf_connection *connection, struct inf_upload *upload)
{
    if (upload->older != NULL)
        upload->older->newer = upload->newer;
    else
        connection->oldest_upload = upload->newer;
    if (upload->newer != NULL)
        upload->newer->older = upload->older;
    else
        connection->newest_upload = upload->older;
}

// Frees the data of an upload and refunds it to the user; the upload stays in the table of uploads.
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
    unlink_by_age(connection, upload);
    connection->upload_count--;
    return upload;
}

void inf_connection_free_upload(struct inf_connection *connection, struct inf_upload *upload)
{
    release_data(connection, upload);
    inf_connection_drop_pending(connection, upload->pending_plus_1);
    free(upload->refusal);
    free(upload);
}

void inf_connection_drop_uploads(struct inf_connection *connection)
{
    struct inf_upload *oldest;
    while ((oldest = connection->oldest_upload) != NULL)
        inf_connection_free_upload(connection,
                                   inf_connection_take_upload(connection, oldest->stream_id));
}

uint64_t inf_connection_uploads_due_ns(const struct inf_connection *connection)
{
    if (connection->oldest_upload == NULL)
        return 0;
    return connection->oldest_upload->since_ns + INF_LIMIT_FRAME_MS * INF_NS_PER_MS;
}

// Checks that an upload is allowed, charges the user for it and allocates its data.
static enum inf_code reserve_upload(struct inf_connection *connection, uint64_t total_bytes,
                                    struct inf_upload *upload, struct inf_fault *fault) INF_ON_LOOP
{
    struct inf_connections *set = connection->set;
    struct inf_error *err = &fault->err;
    if (set->draining && !inf_connection_is_kept(connection))
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_DRAINING,
                               "the daemon shuts down and takes no more requests");
    if (total_bytes == 0 || total_bytes > INF_LIMIT_STREAM_DATA_BYTES)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_FRAME_TOO_LARGE,
                               "DATA frame: %" PRIu64 " bytes of data, wanted 1 to %u", total_bytes,
                               INF_LIMIT_STREAM_DATA_BYTES);
    INF_TRY(inf_connection_check_credit(connection, total_bytes, fault));
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
    struct inf_upload *upload = connection->upload_buckets[find_bucket(stream_id)];
    while (upload != NULL && upload->stream_id != stream_id)
        upload = upload->next;
    return upload;
}

void inf_connection_touch_upload(struct inf_connection *connection, struct inf_upload *upload)
{
    upload->since_ns = inf_clock_ns();
    unlink_by_age(connection, upload);
    append_newest(connection, upload);
}

enum inf_code inf_connection_refuse_upload(struct inf_connection *connection,
                                           struct inf_upload *upload,
                                           const struct inf_error *reason, uint32_t retry_after_ms,
                                           struct inf_error *err)
{
    assert(upload->refusal == NULL);
    release_data(connection, upload);
    upload->refusal = malloc(sizeof *upload->refusal);
    if (upload->refusal == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for the data of a request");
    *upload->refusal = (struct inf_upload_refusal){
        .code = reason->code, .reason = reason->reason, .retry_after_ms = retry_after_ms};
    snprintf(upload->refusal->text, sizeof upload->refusal->text, "%.199s", reason->text);
    return INF_OK;
}

static enum inf_code create_upload(struct inf_connection *connection, uint64_t stream_id,
                                   struct inf_upload **out_upload, struct inf_error *err)
{
    if (connection->upload_count >= connection->streams_granted)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_QUOTA_REQUESTS,
                               "DATA frame: the data of %" PRIu32
                               " requests came without the requests, which are as many as were "
                               "granted",
                               connection->upload_count);
    struct inf_upload *upload = calloc(1, sizeof *upload);
    if (upload == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for the data of a request");
    upload->stream_id = stream_id;
    *out_upload = upload;
    return INF_OK;
}

static void insert_upload(struct inf_connection *connection, struct inf_upload *upload) INF_ON_LOOP
{
    struct inf_upload **bucket = &connection->upload_buckets[find_bucket(upload->stream_id)];
    upload->next = *bucket;
    *bucket = upload;
    upload->since_ns = inf_clock_ns();
    append_newest(connection, upload);
    connection->upload_count++;
    connection->last_stream = upload->stream_id;
    inf_connection_note_stream(connection);
    upload->pending_plus_1 = connection->frame_pending_plus_1;
}

enum inf_code inf_connection_start_upload(struct inf_connection *connection,
                                          const struct inf_frame *frame, uint64_t total_bytes,
                                          struct inf_upload **out_upload, struct inf_error *err)
{
    assert(frame->header.stream_id > connection->last_stream);
    struct inf_fault *fault = &connection->set->fault;
    INF_TRY(create_upload(connection, frame->header.stream_id, out_upload, err));
    inf_fault_init(fault);
    if (frame->rejected.code != INF_OK)
        fault->err = frame->rejected;
    else
        (void)!reserve_upload(connection, total_bytes, *out_upload, fault);
    insert_upload(connection, *out_upload);
    if (fault->err.code == INF_OK)
        return INF_OK;
    return inf_connection_refuse_upload(connection, *out_upload, &fault->err, fault->retry_after_ms,
                                        err);
}

enum inf_code inf_connection_add_data(struct inf_upload *upload, const struct inf_frame *frame,
                                      struct inf_error *err)
{
    assert(upload->refusal == NULL);
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
