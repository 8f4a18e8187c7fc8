// SPDX-License-Identifier: Apache-2.0
// The sessions of one connection: tensors that are kept between its requests, by name. One request of
// a session runs at a time, in the order they came; what it keeps is there for the next one as soon
// as it is done, all of it or, where it fails, nothing. A session that is closed, or whose
// connection is, goes with its last request. The loop's, but for the buffers of a request that runs.
#ifndef INF_DAEMON_RESOURCE_SESSION_H
#define INF_DAEMON_RESOURCE_SESSION_H

#include "backends/base/role.h"
#include "daemon/resource/quota.h"
#include "daemon/system/counters.h"
#include "proto/wire/message.h"

struct inf_job;

// Memory for one value of a tensor; as all from the daemon, it can be read a little beyond its end.
struct inf_session_buffer {
    uint8_t *data;
    size_t capacity;
};

struct inf_session_tensor {
    char *name;
    bool present; // `now` holds a value
    enum inf_dtype dtype;
    struct inf_shape shape;
    struct inf_session_buffer now;
    struct inf_session_buffer next; // the worker's while a job runs that keeps something here
    uint64_t charged_bytes;         // for both
    char *output;                   // of a pair: what the model gives as this; NULL: no pair
    bool shaped;                    // the first value is zeros of first_shape
    struct inf_shape first_shape;
};

struct inf_session {
    uint64_t id;
    struct inf_session *next; // in the table
    uint32_t references;      // jobs, and the table while it is open
    uint32_t tensor_count;
    struct inf_session_tensor tensors[INF_LIMIT_SESSION_TENSORS];
    uint64_t charged_bytes; // for all of them
    struct inf_quota_user *user;
    struct inf_counters *counters;
    // Jobs that were accepted: the one whose turn it is, and those behind it, linked by
    // session_next.
    struct inf_job *active;
    struct inf_job *first, *last;
};

// Embedded in a connection.
struct inf_session_table {
    struct inf_session *sessions;
    uint32_t count;
    struct inf_counters *counters;
    struct inf_quota_user *user;
};

// Prepares an embedded table. Counters and user outlive it.
void inf_session_table_init(struct inf_session_table *table, struct inf_counters *counters,
                            struct inf_quota_user *user);

// Closes every session.
void inf_session_table_fini(struct inf_session_table *table) INF_ON_LOOP;

// Opens a session.
//
// INF_EXISTS     (SESSION_EXISTS)
// INF_EXHAUSTED  (QUOTA_REQUESTS) the connection has INF_LIMIT_SESSIONS; (HOST_OOM)
enum inf_code inf_session_open(struct inf_session_table *table,
                               const struct inf_session_message *message,
                               struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Closes a session: the id is free, what was asked before still runs.
//
// INF_ABORTED  (SESSION_LOST) there is none of this id.
enum inf_code inf_session_close(struct inf_session_table *table, uint64_t id,
                                struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// The session of this id, borrowed. Fails as inf_session_close().
enum inf_code inf_session_find(struct inf_session_table *table, uint64_t id,
                               struct inf_session **out_session,
                               struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Another reference.
struct inf_session *inf_session_ref(struct inf_session *session) INF_NODISCARD INF_ON_LOOP;

// Drops a reference and sets the pointer NULL. The last one frees. NULL is fine.
void inf_session_unref(struct inf_session **session) INF_ON_LOOP;

// The index of the tensor called `name`, made without a value where there is none.
//
// INF_EXHAUSTED  (QUOTA_BYTES) there are INF_LIMIT_SESSION_TENSORS; (HOST_OOM)
enum inf_code inf_session_tensor(struct inf_session *session, const char *name, uint32_t *out_index,
                                 struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Gives a tensor of a pair its first value, zeros: of the shape it was opened with, or else of
// `wanted`.
//
// INF_INVALID    (TENSOR_MISSING) it has none, and neither shape is known.
// INF_EXHAUSTED  (QUOTA_BYTES, HOST_OOM)
enum inf_code inf_session_begin(struct inf_session *session, uint32_t index, enum inf_dtype dtype,
                                const struct inf_shape *wanted,
                                struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Gets room for the next value of a tensor. Any thread, one at a time.
//
// INF_EXHAUSTED  (QUOTA_BYTES) more than INF_LIMIT_SESSION_BYTES; (HOST_OOM)
enum inf_code inf_session_buffer_reserve(struct inf_session_buffer *buffer, size_t size_bytes,
                                         struct inf_error *err) INF_NODISCARD;

// A job that reserved room for the next value of a tensor is over, whatever came of it: the room is
// paid for from now on, or given up.
void inf_session_settle(struct inf_session *session, uint32_t index) INF_ON_LOOP;

// An input or an output of a model, and the tensor of a session it comes from or goes to.
struct inf_session_port {
    uint8_t port, tensor;
};

// What a job keeps of one tensor.
struct inf_session_kept {
    uint32_t index;
    enum inf_dtype dtype;
    struct inf_shape shape;
};

// Makes the next values of these tensors those that they have. On failure they stay as they were.
//
// INF_EXHAUSTED  (QUOTA_BYTES) the session, or its user, would have too many bytes.
enum inf_code inf_session_commit(struct inf_session *session, const struct inf_session_kept *kept,
                                 uint32_t count, struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

#endif
