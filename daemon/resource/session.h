// SPDX-License-Identifier: Apache-2.0
// The sessions of one connection: named tensors that are kept between its requests. The requests of
// a session run one at a time, in order of arrival. When a request is done, the tensors that it
// keeps are available to the next one; if it fails, no tensor changes. A closed session is freed
// after its last request. The loop owns everything, except the `next` buffers of a running request,
// which the worker owns.
#ifndef INF_DAEMON_RESOURCE_SESSION_H
#define INF_DAEMON_RESOURCE_SESSION_H

#include "backends/base/role.h"
#include "daemon/policy/join_back_off.h"
#include "daemon/policy/model_quota.h"
#include "daemon/resource/quota.h"
#include "daemon/resource/session_buffer.h"
#include "daemon/system/counters.h"
#include "proto/wire/message.h"

struct inf_job;

// The most positions of a lag. The cache of a batch that needs more is copied whole.
#define INF_SESSION_LAG_MAX 16

// Rows in which two buffers [outer][room][row_bytes] differ: `rows` rows at each position.
struct inf_session_lag {
    size_t outer, row_bytes;
    uint32_t room, count, rows;
    uint32_t positions[INF_SESSION_LAG_MAX];
    uint32_t zeros_from; // all rows of the value from this one on are zeros; 0: not known
};

struct inf_session_tensor {
    char *name;
    bool present; // `now` contains a value, that is, a request of the session can read the tensor
    enum inf_dtype dtype;
    struct inf_shape shape;
    size_t string_bytes; // if `dtype` is BYTES: size of the strings in `now` with their lengths
    // Rows along `axis` for which `now` has memory, of which shape.dims[axis] are in use; 0: `now`
    // has exactly the elements of `shape`.
    uint32_t room;
    uint8_t axis;    // valid if `is_history`
    bool is_history; // each request appends rows along `axis`
    bool is_stale;   // unused rows may have any elements, until a run zeroes them
    bool shrinks;    // the next run moves the rows to a buffer that is no larger than needed
    // While a job that keeps this tensor runs, the worker owns the unused rows.
    struct inf_session_buffer now;
    // The worker owns `next` and `lag` while a job that keeps this tensor runs.
    struct inf_session_buffer next;
    struct inf_session_lag lag; // valid if next.lags
    uint64_t charged_bytes;     // bytes charged to the user for `now` and `next` together
    // Bytes that the worker has charged in addition, for memory that it allocates for `next`.
    uint64_t reserved_bytes;
    char *output; // output of the state pair whose input is this tensor; NULL: there is no pair
    bool shaped;  // true: the first value is zeros of shape `first_shape`
    struct inf_shape first_shape;
};

struct inf_session {
    uint64_t id;
    struct inf_session *next; // link of the connection's list of sessions
    // Number of the last use among all uses of sessions; negative: it was in an earlier process.
    int64_t last_use;
    bool is_kept;        // inf_session_choice_decide() has chosen the session
    uint32_t max_length; // most rows of a history; 0: the session sets no limit
    // One reference for each job, and one for the connection while the session is open.
    uint32_t references;
    uint32_t tensor_count;
    // Each allocated separately, so that an unused session is small and jobs may hold pointers.
    struct inf_session_tensor *tensors[INF_LIMIT_SESSION_TENSORS];
    uint64_t charged_bytes; // bytes charged to the user for the values of all tensors
    // The sum of reserved_bytes of all tensors. The worker owns it while a job of the session runs.
    uint64_t reserved_bytes;
    uint64_t fixed_bytes; // bytes charged to the user for the session itself and for names
    struct inf_quota_user *user;
    // The account of the model that used the session first; one reference. NULL: none has.
    struct inf_model_quota *model;
    struct inf_counters *counters;
    struct inf_join_back_off join_back_off;
    // `active` is the job that the scheduler has. Accepted jobs wait behind it, linked by
    // session_next.
    struct inf_job *active;
    struct inf_job *first, *last;
};

// The sessions of one connection. The struct is embedded in the connection.
struct inf_session_table {
    struct inf_session *sessions;
    uint32_t count;
    struct inf_counters *counters;
    struct inf_quota_user *user;
    // The connection is one of an earlier process, which may have had sessions that are lost.
    bool is_restored;
    uint64_t kept_bytes; // bytes of the sessions that inf_session_choice_decide() has chosen
};

// Initialises a table that is embedded in a connection. The counters and the user outlive the
// table.
void inf_session_table_init(struct inf_session_table *table, struct inf_counters *counters,
                            struct inf_quota_user *user);

// Closes every session of the connection.
void inf_session_table_fini(struct inf_session_table *table) INF_ON_LOOP;

// Opens a session. If message->fork_of is set, the session begins with the pairs and tensors of
// that one. Both share memory until one of them changes; each is charged for all of it.
//
// INF_EXISTS     (SESSION_EXISTS) there is a session with this id already.
// INF_ABORTED    (SESSION_LOST) there is no session fork_of.
// INF_PRECONDITION  (BAD_PARAMETER) a request of the session fork_of is running or waits.
// INF_EXHAUSTED  (QUOTA_REQUESTS) the connection has INF_LIMIT_SESSIONS sessions; (QUOTA_BYTES) the
//                user has too many bytes of sessions; (HOST_OOM) memory is exhausted.
enum inf_code inf_session_open(struct inf_session_table *table,
                               const struct inf_session_message *message,
                               struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Forgets all rows of the history but the first `length`, in all tensors that have one. If
// `release` is true, their memory is given back: at once if no row stays, else with the next
// request.
//
// INF_PRECONDITION  (BAD_PARAMETER) a request of the session is running or waits, or the session
//                   keeps no history.
// INF_INVALID       (BAD_PARAMETER) a history is shorter.
enum inf_code inf_session_rewind(struct inf_session *session, uint64_t length, bool release,
                                 struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Closes a session. Its id may be used again. Requests that were already accepted still run.
//
// INF_ABORTED  (SESSION_LOST) there is no session with this id.
enum inf_code inf_session_close(struct inf_session_table *table, uint64_t id,
                                struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Finds the session with this id. The result is borrowed. The errors are those of
// inf_session_close().
enum inf_code inf_session_find(struct inf_session_table *table, uint64_t id,
                               struct inf_session **out_session,
                               struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Charges a session from now on to the account of a model too, with what it holds. Does nothing if
// the session belongs to an account already: that of the model that used it first.
//
// INF_EXHAUSTED  (QUOTA_BYTES) the sessions of the model would have too much memory.
enum inf_code inf_session_bind_model(struct inf_session *session, struct inf_model_quota *model,
                                     struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Returns the most rows of a history of the session if the model allows `rows_max`. 0 stands for no
// limit.
uint32_t inf_session_max_length(const struct inf_session *session, uint32_t rows_max);

// Records that a session is used now, so that a restart keeps it rather than older ones.
void inf_session_note_use(struct inf_session *session) INF_ON_LOOP;

// Takes another reference to a session.
struct inf_session *inf_session_ref(struct inf_session *session) INF_NODISCARD INF_ON_LOOP;

// Drops a reference and sets the pointer to NULL. Dropping the last reference frees the session.
// NULL is allowed.
void inf_session_unref(struct inf_session **session) INF_ON_LOOP;

// Returns the index of the tensor called `name`. If there is none, creates it without a value.
//
// INF_EXHAUSTED  (QUOTA_BYTES) the session has INF_LIMIT_SESSION_TENSORS tensors, or the user has
//                too many bytes of sessions; (HOST_OOM) memory is exhausted.
enum inf_code inf_session_obtain_tensor(struct inf_session *session, const char *name,
                                        uint32_t *out_index,
                                        struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Sets the first value of a tensor in a state pair to zeros, or to empty strings. The shape is the
// one that the session was opened with, or else `wanted`.
//
// INF_INVALID    (TENSOR_MISSING) the tensor belongs to no pair, or its shape is not known.
// INF_EXHAUSTED  (QUOTA_BYTES, HOST_OOM)
enum inf_code inf_session_init_tensor(struct inf_session *session, uint32_t index,
                                      enum inf_dtype dtype, const struct inf_shape *wanted,
                                      struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Sets the value of a tensor to a copy of the `size_bytes` of `data`. If `dtype` is BYTES, these
// are strings with their lengths, and the caller need not check them.
//
// INF_INVALID    (BAD_PARAMETER) a tensor of this shape has another size.
// INF_EXHAUSTED  (QUOTA_BYTES, HOST_OOM)
enum inf_code inf_session_set_tensor(struct inf_session *session, uint32_t index,
                                     enum inf_dtype dtype, const struct inf_shape *shape,
                                     const void *data, size_t size_bytes,
                                     struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Charges the user for a next value of `size_bytes` of a tensor of the session. The worker that
// runs the active job of the session calls this before inf_session_buffer_reserve() for
// tensor->next. When the job has ended, inf_session_commit() or inf_session_charge_next() makes the
// present size of both buffers the charge.
//
// INF_EXHAUSTED  (QUOTA_BYTES) the session, its user or its model would have too many bytes.
enum inf_code inf_session_reserve_bytes(struct inf_session *session,
                                        struct inf_session_tensor *tensor, size_t size_bytes,
                                        struct inf_error *err) INF_NODISCARD;

// Accounts for the next-value buffer of a tensor after a job that may have reserved it: charges the
// user, or frees the buffer if the charge fails.
void inf_session_charge_next(struct inf_session *session, uint32_t index) INF_ON_LOOP;

// Connects an input or output of a model to the session tensor that provides or receives its value.
struct inf_session_port {
    uint8_t port, tensor;
};

// Data type and shape of a tensor that a job keeps in its session.
struct inf_session_kept {
    uint32_t index;
    enum inf_dtype dtype;
    struct inf_shape shape;
    size_t string_bytes; // as in struct inf_session_tensor
    uint32_t room;       // as in struct inf_session_tensor
    uint8_t axis;        // valid if `is_history`
    bool is_history;     // as in struct inf_session_tensor
    bool is_extended;    // the job wrote new rows into the present buffer, not a next value
    bool lags;           // the next value is the present one, but for the rows of the tensor's lag
    uint32_t rows_max;   // most rows of a history; 0: no limit
};

// Makes the next values of these tensors their present values: either of all tensors or of none.
//
// INF_EXHAUSTED  (QUOTA_BYTES) the session, or its user, would have too many bytes.
// INF_RANGE      (BAD_PARAMETER) a history would have more than `rows_max` rows.
enum inf_code inf_session_commit(struct inf_session *session, const struct inf_session_kept *kept,
                                 uint32_t count, struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

#endif
