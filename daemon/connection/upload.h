// SPDX-License-Identifier: Apache-2.0
// Uploads: data of large requests, which arrives in DATA frames before the REQUEST frame.
#ifndef INF_DAEMON_CONNECTION_UPLOAD_H
#define INF_DAEMON_CONNECTION_UPLOAD_H

#include "daemon/connection/state.h"

// Returns the upload of a stream; NULL if there is none.
struct inf_upload *inf_connection_find_upload(const struct inf_connection *connection,
                                              uint64_t stream_id) INF_ON_LOOP;

// Starts the upload of a stream. A quota error does not fail this call: the upload is then marked
// as refused, and the error is kept as the answer to its REQUEST. If this function fails, the
// caller must end the connection.
//
// INF_EXHAUSTED  (QUOTA_REQUESTS) the connection already has as many uploads, including refused
//                ones, as HELLO granted it requests in flight; (HOST_OOM) memory is exhausted.
enum inf_code inf_connection_start_upload(struct inf_connection *connection,
                                          const struct inf_frame *frame, uint64_t total_bytes,
                                          struct inf_upload **out_upload,
                                          struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Records that a DATA frame of the upload arrived, which restarts the upload's timeout.
void inf_connection_touch_upload(struct inf_connection *connection,
                                 struct inf_upload *upload) INF_ON_LOOP;

// Adds the data of a frame to an upload that is not refused.
//
// INF_INVALID  (SIZE_MISMATCH) there is more data than was announced.
enum inf_code inf_connection_add_data(struct inf_upload *upload, const struct inf_frame *frame,
                                      struct inf_error *err) INF_NODISCARD;

// Refuses an upload: frees its data, and keeps the error as the answer to its REQUEST. If this
// function fails, the caller must end the connection.
//
// INF_EXHAUSTED  (HOST_OOM) memory is exhausted.
enum inf_code inf_connection_refuse_upload(struct inf_connection *connection,
                                           struct inf_upload *upload,
                                           const struct inf_error *reason, uint32_t retry_after_ms,
                                           struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Removes the upload of a stream from the connection's table and returns it; the caller frees it.
// Returns NULL if the stream has no upload.
struct inf_upload *inf_connection_take_upload(struct inf_connection *connection,
                                              uint64_t stream_id) INF_ON_LOOP;

// Frees an upload and refunds its remaining charges to the user.
void inf_connection_free_upload(struct inf_connection *connection,
                                struct inf_upload *upload) INF_ON_LOOP;

// Frees all uploads of the connection.
void inf_connection_drop_uploads(struct inf_connection *connection) INF_ON_LOOP;

// Returns the time at which the first upload of the connection times out; 0: it has no uploads.
uint64_t inf_connection_uploads_due_ns(const struct inf_connection *connection);

#endif
