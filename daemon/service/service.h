// SPDX-License-Identifier: Apache-2.0
// The methods of the protocol: one handler per method. A request is answered at once, or becomes a
// call that ends later. The service knows no connections: requests and answers are plain data. Only
// the loop calls these functions.
#ifndef INF_DAEMON_SERVICE_SERVICE_H
#define INF_DAEMON_SERVICE_SERVICE_H

#include "backends/base/role.h"
#include "backends/registry.h"
#include "daemon/observe/timeline.h"
#include "daemon/output/buffer_pool.h"
#include "daemon/resource/quota.h"
#include "daemon/resource/region.h"
#include "daemon/resource/session.h"
#include "daemon/schedule/call.h"
#include "daemon/schedule/fault.h"
#include "daemon/service/environment.h"
#include "daemon/store/store.h"
#include "daemon/system/caller.h"
#include "daemon/system/counters.h"
#include "proto/wire/message.h"

struct inf_fd_store;
struct inf_reply_writer;
struct inf_service;

// What the service needs from the daemon. All objects that the pointers refer to outlive it.
struct inf_service_options {
    struct inf_model_store *store;
    struct inf_environment *environment;
    const struct inf_log *logs; // array of logs, indexed by enum inf_log_part
    const struct inf_device_list *devices;
    struct inf_pool *pool;
    const struct inf_counters *counters;
    const char *version;
    struct inf_quota *quota;
    struct inf_memory_budget *memory_budget; // that of the store; NULL: none
    const struct inf_fd_store *fd_store;     // descriptors for the next process; NULL: none
    // Returns how many log lines were dropped because the log buffer was full. NULL: the count is
    // reported as 0.
    uint64_t (*log_lines_dropped)(void *context);
    // Starts reading the configuration again; inf_service_finish_reload() must follow.
    //
    // INF_EXHAUSTED    the system refuses a thread.
    // INF_UNAVAILABLE  (SHUTDOWN) the daemon ends.
    enum inf_code (*reload)(void *context, struct inf_error *err);
    void *context;
};

// Writes the limits of one user from the configuration to an array indexed by enum inf_quota_kind.
void inf_service_quota_limits(const struct inf_config *config, uint64_t most[INF_QUOTA_KIND_COUNT]);

// Creates the service and starts the workers. The caller destroys *out_service.
enum inf_code inf_service_create(struct inf_service **out_service,
                                 const struct inf_service_options *options,
                                 struct inf_error *err) INF_NODISCARD;

// Stops the workers after their running jobs, and frees everything. The caller must have withdrawn
// every call before. NULL is allowed.
void inf_service_destroy(struct inf_service **service) INF_ON_LOOP;

// Marks the server as draining: the status reports it, and ServerReady answers false.
void inf_service_drain(struct inf_service *service) INF_ON_LOOP;

// Continues a reload after the configuration was read again. Applies `next`: changes the live flags
// whose values in the sources changed since the last reading, and logs the other changed flags,
// which need a restart. NULL: the configuration is wrong, for the reason `why`. Then starts reading
// the repository. Returns true if that fails and an admin waits for this reload: then sets *call to
// the admin's call and *event to its answer, and the caller sends it.
bool inf_service_finish_reload(struct inf_service *service, const struct inf_config *next,
                               const struct inf_error *why, struct inf_load_event *event,
                               struct inf_call **call) INF_NODISCARD INF_ON_LOOP;

// Notes in the budget of memory what clients use: sessions, regions and requests. Call it before
// the budget is read.
void inf_service_update_memory(struct inf_service *service) INF_ON_LOOP;

// Makes sure that there is room for `bytes` that a client wants (inf_model_store_claim_memory()).
enum inf_code inf_service_claim_memory(struct inf_service *service, uint64_t bytes,
                                       const char *what,
                                       struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// A request as it was received from a client.
struct inf_request {
    uint16_t method;
    struct inf_span meta;
    uint8_t *data; // a pool buffer; a handler that takes ownership of the buffer sets this to NULL
    uint32_t data_bytes;
    int directory_fd; // descriptor that came with the frame, owned by the caller; -1: none
    struct inf_region_table *regions;
    struct inf_session_table *sessions;
    int32_t pid;                     // process id of the client when it connected
    struct inf_caller *caller;       // the client: its user, groups and rights; borrowed
    uint32_t reply_bytes_max;        // the most bytes in the data segment of the reply
    struct inf_reply_writer *writer; // lets a worker write the reply; NULL: the loop replies
    uint64_t accepted_ns; // when the request came, if it has waited for its model; 0: now
    uint32_t *waiting;    // number of requests of the connection that wait for a model
    uint64_t client_id;   // number of the connection that sent the request
    uint64_t stream_id;
    uint32_t frame_bytes_max; // the most bytes in the data segment of one frame
    // Entry of the request in the send log of its connection, and its index plus 1. Without an
    // entry, NULL and 0.
    struct inf_pending *pending;
    uint32_t pending_plus_1;
};

// The result of a request: a message to be sent now, or a call.
struct inf_answer {
    enum inf_message_kind kind;
    // Message to be sent; owned by the service and valid until the next call of one of its
    // functions.
    const union inf_message *message;
    uint8_t *data; // data of the reply, in a pool buffer that the caller owns; NULL: none
    size_t data_bytes, data_capacity;
    uint64_t order_key; // order key of the request, set on failure too; 0: none
    // If not NULL, the answer comes later, and the caller fills in the members of the call.
    struct inf_call *call;
};

// Handles a request and fills *answer. On failure `fault` holds the error.
enum inf_code inf_service_handle(struct inf_service *service, struct inf_request *request,
                                 struct inf_answer *answer,
                                 struct inf_fault *fault) INF_NODISCARD INF_ON_LOOP;

// Returns a waiting request whose model may be loaded now; NULL if there is none. The caller must
// pass it to inf_service_try_again().
struct inf_call *inf_service_next_woken(struct inf_service *service) INF_ON_LOOP;

// Handles a waiting request again. Sets answer->call to `call` if it waits further. Otherwise the
// result is that of inf_service_handle(), and the caller must release the call.
enum inf_code inf_service_try_again(struct inf_service *service, struct inf_call *call,
                                    struct inf_answer *answer,
                                    struct inf_fault *fault) INF_NODISCARD INF_ON_LOOP;

// Withdraws a call whose answer is not wanted. Returns true if the call is over and freed. Returns
// false if a worker runs it; then inf_service_next_finished() returns the call later.
bool inf_service_withdraw(struct inf_service *service,
                          struct inf_call *call) INF_NODISCARD INF_ON_LOOP;

// Returns a descriptor that becomes readable when an inference is done and the loop has taken all
// earlier ones. The loop must watch it edge-triggered, and then call inf_service_next_finished()
// until it returns NULL.
int inf_service_finished_fd(const struct inf_service *service);
// Returns the next call that is done, which the caller must release; NULL if there is none.
struct inf_call *inf_service_next_finished(struct inf_service *service) INF_ON_LOOP;
// Returns true if the loop should poll for calls that are done instead of sleeping.
bool inf_service_poll(struct inf_service *service) INF_ON_LOOP;
// Ends polling until the next inference, because another thread needs the processor of the loop.
// Returns true if a call became done meanwhile without making inf_service_finished_fd() readable.
bool inf_service_stop_polling(struct inf_service *service) INF_ON_LOOP;
// Returns true if no inference is queued or running.
bool inf_service_idle(const struct inf_service *service) INF_ON_LOOP;
// Returns the device time of a finished call, in nanoseconds; 0 if it is not an inference.
uint64_t inf_service_device_ns(const struct inf_call *call) INF_ON_LOOP;
// Returns the run time of the inference that finished last, in nanoseconds.
uint64_t inf_service_last_run_ns(const struct inf_service *service) INF_ON_LOOP;
// Makes the answer of a call that is done. May be called at most once per call.
enum inf_code inf_service_result(struct inf_service *service, struct inf_call *call,
                                 struct inf_answer *answer,
                                 struct inf_fault *fault) INF_NODISCARD INF_ON_LOOP;
// Claims the right to answer a call for the loop. Returns false if a worker has answered the call
// or is about to; then inf_service_next_finished() returns the call later.
bool inf_service_claim(struct inf_call *call) INF_NODISCARD INF_ON_LOOP;
// Records that a worker already answered a call that is done.
void inf_service_note_answered(struct inf_service *service, struct inf_call *call) INF_ON_LOOP;
// Frees a call that is done.
void inf_service_release(struct inf_service *service, struct inf_call *call) INF_ON_LOOP;

// --- counting how requests end, for the metrics ---

// A request whose end is to be counted. A call may be freed before its end is known, so this struct
// is filled before the call is freed. Requests that are no inferences are not counted.
struct inf_request_end {
    bool counted;  // the request is an inference
    bool recorded; // `record` is set, except for the outcome
    uint32_t series;
    uint32_t uid;
    uint64_t accepted_ns; // arrival time of the request; 0: the request did not become a call
    struct inf_request_record record;
};

// Sets *end to what is to be counted about a call that is not freed yet.
void inf_service_end_of(struct inf_service *service, const struct inf_call *call,
                        struct inf_request_end *end) INF_ON_LOOP;

// Counts a call that has failed or was ended with this error, and logs it.
void inf_service_count_failure(struct inf_service *service, struct inf_request_end *end,
                               const struct inf_error *err) INF_ON_LOOP;

// Counts a request of user `uid` that failed without becoming a call. The model that `fault` names
// is counted only if it is served, so that clients cannot invent names.
void inf_service_count_refusal(struct inf_service *service, uint16_t method, uint32_t uid,
                               const struct inf_fault *fault) INF_ON_LOOP;

// Counts an inference that was answered with its result. `now_ns` is a recent time on the clock of
// inf_clock_ns().
void inf_service_count_answer(struct inf_service *service, const struct inf_call *call,
                              uint64_t now_ns) INF_ON_LOOP;

// Stops recording the timeline if a connection that has ended was its reader. Does not end the
// calls of the connection.
void inf_service_note_gone(struct inf_service *service, uint64_t client_id) INF_ON_LOOP;

// --- turns of the loop, for the metrics ---

// Begins a turn of the loop, unless a turn has begun. A turn is the work of the loop between two
// waits for events. Every callback of the loop calls this first.
void inf_service_begin_turn(struct inf_service *service) INF_ON_LOOP;

// Ends the turn that has begun, if one has, and counts its time.
void inf_service_end_turn(struct inf_service *service, uint64_t now_ns) INF_ON_LOOP;

// --- slices of the loop, for the timeline ---

// Returns the time at which a slice (one piece of work of the loop) begins; 0 if the timeline is
// not recorded.
uint64_t inf_service_begin_slice(const struct inf_service *service) INF_ON_LOOP;

// Adds a slice (one piece of work of the loop), which ends at present, to the timeline. `client_id`
// is the connection that the work was for; 0: none. Does nothing if `begin_ns` is 0.
void inf_service_note_slice(struct inf_service *service, enum inf_timeline_slice slice,
                            uint64_t client_id, uint64_t begin_ns) INF_ON_LOOP;

// Returns a descriptor that is readable while a deadline may have passed. Then the loop must call
// inf_service_next_expired() until it returns NULL.
int inf_service_timer_fd(const struct inf_service *service);
// Returns a further descriptor of this kind, for the deadlines of requests that wait for a model.
int inf_service_wait_timer_fd(const struct inf_service *service);
// Returns the next call whose deadline passed; NULL if there is none. The caller must withdraw the
// call.
struct inf_call *inf_service_next_expired(struct inf_service *service) INF_ON_LOOP;

// Returns a descriptor that is readable while events of loads are queued. Then the loop must call
// inf_service_next_load() until it returns false.
int inf_service_load_fd(const struct inf_service *service);
// Takes the next event of a load. *call is the call that waits for the load, or NULL. After a final
// event the call is done, and the caller must release it.
bool inf_service_next_load(struct inf_service *service, struct inf_load_event *event,
                           struct inf_call **call) INF_NODISCARD INF_ON_LOOP;
// Makes the answer to the client from a load event: a progress report, or the final reply.
enum inf_code inf_service_load_result(struct inf_service *service,
                                      const struct inf_load_event *event, struct inf_answer *answer,
                                      struct inf_fault *fault) INF_NODISCARD INF_ON_LOOP;

// Returns a call that waited for an event and for which an event was added; NULL if there is none.
// The caller must unlink the call, answer it with inf_service_wait_result(), and release it.
struct inf_call *inf_service_next_wait(struct inf_service *service) INF_ON_LOOP;
// Makes the answer of a call that inf_service_next_wait() returned.
enum inf_code inf_service_wait_result(struct inf_service *service, const struct inf_call *call,
                                      struct inf_answer *answer,
                                      struct inf_fault *fault) INF_NODISCARD INF_ON_LOOP;

// Returns true if a run has neither ended nor reacted to its cancellation.
bool inf_service_is_stuck(struct inf_service *service) INF_ON_LOOP;

#endif
