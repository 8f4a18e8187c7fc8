// SPDX-License-Identifier: Apache-2.0
// What the daemon can be asked: one handler a method. A request is answered at once, or becomes a
// call that ends later. Knows no connection: it takes requests and gives answers as data. All
// functions are the loop's.
#ifndef INF_DAEMON_SERVICE_SERVICE_H
#define INF_DAEMON_SERVICE_SERVICE_H

#include "backends/base/role.h"
#include "backends/registry.h"
#include "daemon/output/buffer_pool.h"
#include "daemon/resource/quota.h"
#include "daemon/resource/region.h"
#include "daemon/resource/session.h"
#include "daemon/schedule/call.h"
#include "daemon/schedule/fault.h"
#include "daemon/service/environment.h"
#include "daemon/store/store.h"
#include "daemon/system/counters.h"
#include "proto/wire/message.h"

struct inf_reply_writer;
struct inf_service;

// Everything pointed to outlives the service.
struct inf_service_options {
    struct inf_model_store *store;
    struct inf_environment *environment;
    const struct inf_log *log;
    const struct inf_device_list *devices;
    struct inf_pool *pool;
    const struct inf_counters *counters;
    const char *version;
    struct inf_quota *quota;
    uint64_t (*log_lines_dropped)(void *context); // NULL: none are
    void *context;
};

// What one user may hold, by kind.
void inf_service_quota_limits(const struct inf_config *config, uint64_t most[INF_QUOTA_KIND_COUNT]);

// Makes the service and starts the workers. *out_service is the caller's to destroy.
enum inf_code inf_service_create(struct inf_service **out_service,
                                 const struct inf_service_options *options,
                                 struct inf_error *err) INF_NODISCARD;

// Stops the workers (a run under way is waited for) and frees everything; every call was withdrawn
// before. NULL is fine.
void inf_service_destroy(struct inf_service **service) INF_ON_LOOP;

// From now on the status says "draining", and the server is not ready any more.
void inf_service_drain(struct inf_service *service) INF_ON_LOOP;

// A request as it came.
struct inf_request {
    uint16_t method;
    struct inf_span meta;
    uint8_t *data; // of the pool; whoever takes it sets it NULL
    uint32_t data_bytes;
    struct inf_region_table *regions;
    struct inf_session_table *sessions;
    uint32_t uid;                    // of the client
    bool admin;                      // it may administrate
    uint32_t reply_bytes_max;        // of a reply's data segment
    struct inf_reply_writer *writer; // through which a worker may answer; NULL: none may
    uint64_t stream_id;
    uint32_t frame_bytes_max; // of a frame's data segment
};

// What becomes of it: a message to be sent now, or a call.
struct inf_answer {
    enum inf_message_kind kind;
    const union inf_message *message; // the service's, valid until the next call on it
    uint8_t *data;                    // of the pool, now the caller's; NULL where there is none
    size_t data_bytes, data_capacity;
    uint64_t order_key;    // set on failure too; 0: none
    struct inf_call *call; // not NULL: the answer comes later; the caller fills the call's fields
};

// Handles a request. On failure `fault` says why.
enum inf_code inf_service_handle(struct inf_service *service, struct inf_request *request,
                                 struct inf_answer *answer,
                                 struct inf_fault *fault) INF_NODISCARD INF_ON_LOOP;

// Nobody wants the call's answer any more. True: it is over and freed. False: it still goes on and
// comes back through inf_service_next_finished().
bool inf_service_withdraw(struct inf_service *service,
                          struct inf_call *call) INF_NODISCARD INF_ON_LOOP;

// Becomes readable each time an inference is done and none waited: to be watched edge-triggered.
// Call inf_service_next_finished() until NULL.
int inf_service_finished_fd(const struct inf_service *service);
// The next call that is done; the caller's to release.
struct inf_call *inf_service_next_finished(struct inf_service *service) INF_ON_LOOP;
// Whether the loop had better ask for calls that are done by itself now than sleep.
bool inf_service_poll(struct inf_service *service) INF_ON_LOOP;
// Somebody else wants the loop's processor: no more of that until the next inference. True where a
// call is done that was not announced.
bool inf_service_stop_polling(struct inf_service *service) INF_ON_LOOP;
// Whether no inference is under way.
bool inf_service_idle(const struct inf_service *service) INF_ON_LOOP;
// The device time that a finished call took; 0 for what is no inference.
uint64_t inf_service_device_ns(const struct inf_call *call) INF_ON_LOOP;
// What the inference took that was done last.
uint64_t inf_service_last_run_ns(const struct inf_service *service) INF_ON_LOOP;
// The answer of a call that is done, asked for at most once.
enum inf_code inf_service_result(struct inf_service *service, struct inf_call *call,
                                 struct inf_answer *answer,
                                 struct inf_fault *fault) INF_NODISCARD INF_ON_LOOP;
// Takes it on to answer a call. False: a worker has done so, and the call comes back as done, if it
// has not yet.
bool inf_service_claim(struct inf_call *call) INF_NODISCARD INF_ON_LOOP;
// Notes that a worker has answered a call that is done.
void inf_service_note_answered(struct inf_service *service, struct inf_call *call) INF_ON_LOOP;
// Frees a call that is done.
void inf_service_release(struct inf_service *service, struct inf_call *call) INF_ON_LOOP;

// Readable while a deadline may have passed. Call next_expired until NULL.
int inf_service_timer_fd(const struct inf_service *service);
// The next call whose deadline has passed; it still has to be withdrawn. NULL where there is none.
struct inf_call *inf_service_next_expired(struct inf_service *service) INF_ON_LOOP;

// Readable while loads report. Call next_load until false.
int inf_service_load_fd(const struct inf_service *service);
// The next event of a load, and the call that waits for it: NULL where nobody does. With a final
// event the call is done, and the caller's to release.
bool inf_service_next_load(struct inf_service *service, struct inf_load_event *event,
                           struct inf_call **call) INF_NODISCARD INF_ON_LOOP;
// The answer that such an event makes for its call: progress, or the final reply.
enum inf_code inf_service_load_result(struct inf_service *service,
                                      const struct inf_load_event *event, struct inf_answer *answer,
                                      struct inf_fault *fault) INF_NODISCARD INF_ON_LOOP;

// How long the longest run that goes on now has taken so far; 0 where every worker is idle.
uint64_t inf_service_longest_run_ns(struct inf_service *service) INF_ON_LOOP;

#endif
