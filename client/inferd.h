// SPDX-License-Identifier: Apache-2.0
// libinferd: neural network inference by the inferd daemon on this machine.
//
//   struct inferd_error err;
//   inferd_client *client;
//   if (inferd_connect(&client, NULL, &err)) ...
//   inferd_tensor in = {.name = "input", .dtype = INFERD_FP32, .rank = 4,
//                       .shape = {1, 128, 128, 3}, .data = pixels, .size = sizeof pixels};
//   inferd_result *result;
//   if (inferd_infer(client, &(inferd_request){.model = "blazeface", .inputs = &in,
//                    .input_count = 1}, &result, &err)) ...
//   for (size_t i = 0; i < inferd_result_output_count(result); i++) ...
//   inferd_result_free(result);
//   inferd_close(client);
//
// Functions return 0 or an error code of enum inferd_code and fill *err (which may be NULL). A
// client and what comes from it may be used by one thread at a time, or by any after
// inferd_start_thread(). Strings are UTF-8.
#ifndef INFERD_H
#define INFERD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define INFERD_API __attribute__((visibility("default")))
#else
#define INFERD_API
#endif

// The codes are google.rpc's.
enum inferd_code {
    INFERD_OK = 0,
    INFERD_CANCELLED = 1,
    INFERD_INVALID_ARGUMENT = 3,
    INFERD_DEADLINE_EXCEEDED = 4,
    INFERD_NOT_FOUND = 5,
    INFERD_ALREADY_EXISTS = 6,
    INFERD_PERMISSION_DENIED = 7,
    INFERD_RESOURCE_EXHAUSTED = 8,
    INFERD_FAILED_PRECONDITION = 9,
    INFERD_ABORTED = 10,
    INFERD_OUT_OF_RANGE = 11,
    INFERD_UNIMPLEMENTED = 12,
    INFERD_INTERNAL = 13,
    INFERD_UNAVAILABLE = 14
};

// What went wrong: the code, the reason ("SHAPE_MISMATCH", "QUEUE_FULL"; docs/reference/protocol.md lists
// them), a line of text, and how long to wait before trying again (0: not said).
struct inferd_error {
    int code;
    char reason[32];
    char text[1024];
    uint32_t retry_after_ms;
};

// Element types.
typedef enum inferd_dtype {
    INFERD_BOOL = 1,
    INFERD_UINT8,
    INFERD_UINT16,
    INFERD_UINT32,
    INFERD_UINT64,
    INFERD_INT8,
    INFERD_INT16,
    INFERD_INT32,
    INFERD_INT64,
    INFERD_FP16,
    INFERD_BF16,
    INFERD_FP32,
    INFERD_FP64
} inferd_dtype;

#define INFERD_RANK_MAX 8

// A connection to the daemon.
typedef struct inferd_client inferd_client;
// The answer to one inference.
typedef struct inferd_result inferd_result;
// Memory shared with the daemon: tensors in it are not copied.
typedef struct inferd_memory inferd_memory;
// Tensors that the daemon keeps between requests: the state of a recurrent model.
typedef struct inferd_session inferd_session;

// A tensor: row-major elements somewhere in memory.
typedef struct inferd_tensor {
    const char *name;
    inferd_dtype dtype;
    int rank;
    int64_t shape[INFERD_RANK_MAX];
    void *data;            // the elements; of inputs only read
    size_t size;           // bytes
    inferd_memory *memory; // where `data` lies, if in memory of inferd_memory_alloc(); else NULL
    // Of a request with a session: the input is what the session keeps under this name (dtype, shape
    // and data are not looked at), the output is kept under it and not returned. NULL: neither.
    const char *session_tensor;
} inferd_tensor;

// The name ("FP32") and the element size of a dtype; "NONE" and 0 for numbers that are none.
INFERD_API const char *inferd_dtype_name(inferd_dtype dtype);
INFERD_API size_t inferd_dtype_size(inferd_dtype dtype);
// The dtype called `name`; 0 where there is none.
INFERD_API inferd_dtype inferd_dtype_parse(const char *name);

// --- connection ---

// Connects to the daemon's socket: `path`, or $INFERD_SOCKET, or /run/inferd/inferd.sock. Blocks
// until the daemon has answered the greeting (at most 10 s).
INFERD_API int inferd_connect(inferd_client **client, const char *path, struct inferd_error *err);

// Cancels what is in flight (callbacks are not called), and frees the client, its memory and its
// results; from within a callback, as soon as the call that runs it ends. With a thread, any thread may do it: it
// waits for a callback that runs, calls of other threads end with CANCELLED, and none may begin. NULL is fine.
INFERD_API void inferd_close(inferd_client *client);

// From now on a thread of the library serves the client, until inferd_close(): it reads answers and calls
// callbacks, and connects anew as inferd_set_retry() says. Any thread may use the client, and what comes from
// it, at any time. All callbacks are called by that thread, one after the other: one that takes long holds up the
// rest. They may call anything, and signals of the program's are blocked there. Calls that wait for an answer leave
// the client to others meanwhile, but for inferd_reconnect(). Cannot be undone.
INFERD_API int inferd_start_thread(inferd_client *client, struct inferd_error *err);

// A number that is new at every start of the daemon. What it counted before is gone.
INFERD_API void inferd_epoch(const inferd_client *client, uint64_t epoch[2]);

// Connects anew to the same path, trying for `timeout_ms` until a daemon answers (while one restarts,
// there may be none). Requests in flight are waited for, as long as the old connection stands; else
// they end with UNAVAILABLE. Memory of inferd_memory_alloc() stays as it is; sessions are gone.
INFERD_API int inferd_reconnect(inferd_client *client, uint64_t timeout_ms,
                                struct inferd_error *err);

// From now on inferd_infer() sends a request again, connecting anew where it has to, if it has
// certainly not been begun: the daemon drains or had no room, the model is still loading, or the
// connection had ended before. It does so for `limit_ms`, or until the request's own timeout. What
// may have run is never sent again: that fails with UNAVAILABLE. Requests of inferd_infer_async() are
// treated the same from then on, except those with a session or an order key; for them
// inferd_process() connects anew, without blocking. 0, as at first: never.
INFERD_API void inferd_set_retry(inferd_client *client, uint64_t limit_ms);

// What requests of this client say from now on about how they are to be computed; NULL: nothing, as at first.
// `precision`: "fp32", "fp16", "bf16" or "int8", which the device has to offer; a run that is not finite in less
// than fp32 is made again in fp32: inferd_result_precision() tells. `mode`: "normal", "prod" (shadow
// verification leaves the answer out), "debug" (each node goes to the daemon's log; needs the admin
// socket). The texts are copied.
INFERD_API int inferd_set_run_options(inferd_client *client, const char *precision,
                                      const char *mode, struct inferd_error *err);

// How long requests of this client may wait from now on until they are begun, in milliseconds; 0, as at first:
// as long as their timeout lets them. One that waits longer, or would as far as can be told when it comes, ends
// with DEADLINE_EXCEEDED; one that was begun in time may take the time it takes.
INFERD_API void inferd_set_queue_timeout(inferd_client *client, uint64_t timeout_ms);

// What a client has done since inferd_connect().
typedef struct inferd_statistics {
    uint64_t requests;   // inferences asked for
    uint64_t succeeded;  // of them, whose result was handed over
    uint64_t failed;     // of them, that ended with an error
    uint64_t sent_again; // for more room, or by inferd_set_retry()
    uint64_t reconnects;
    uint64_t bytes_sent, bytes_received; // through the socket
    uint64_t memory_bytes;               // shared with the daemon now
    uint32_t in_flight;                  // inferences now
    uint32_t
        without_memory; // inferences whose tensors went through the socket since the daemon, or this
                        // machine, had no shared memory for them
} inferd_statistics;

// Reads them.
INFERD_API void inferd_client_statistics(const inferd_client *client,
                                         inferd_statistics *statistics);

// --- inference ---

// Tensors of 16 KiB and more travel through shared memory, smaller ones through the socket; those in
// inferd_memory are not copied at all. The library learns how much room a model's outputs need: the
// first request for large ones takes another round trip or two, but the model runs only once. Where the daemon refuses
// shared memory, or there is none, what would lie in it goes through the socket, at the cost of copies; the statistics
// tell. Requests with a session or an order key that are under way when the daemon refuses fail.
typedef enum inferd_priority {
    INFERD_PRIORITY_NORMAL,
    INFERD_PRIORITY_HIGH,
    INFERD_PRIORITY_LOW
} inferd_priority;

typedef struct inferd_request {
    const char *model;
    const char *version; // NULL: the newest
    const char *device;  // NULL: where the model is placed
    const char *id;      // NULL, or echoed in the result
    const inferd_tensor *inputs;
    size_t input_count;
    const inferd_tensor *outputs; // NULL: all, in memory of the library's. Else those wanted, by
    size_t output_count;          // name; with memory and data set, the daemon writes there
    uint64_t timeout_ms;          // 0: none. Covers everything from now to the answer
    inferd_priority priority;     // among the requests of this user
    inferd_session *session;      // NULL: none. Outputs of its pairs come back only where `outputs`
                                  // names them, and those that do not fit an answer need memory
    uint64_t order_key;           // not 0: answers of equal keys come in the order of the requests
} inferd_request;

// Whether a request fits its model: tensors by name, type and shape. Asks the daemon about a model once (and
// again after another version has answered, or a restart); from then on, as after
// inferd_model_describe(), requests that do not fit are refused before anything is sent.
INFERD_API int inferd_check(inferd_client *client, const inferd_request *request,
                            struct inferd_error *err);

// Runs a model and waits for the answer. *result is the caller's to free.
INFERD_API int inferd_infer(inferd_client *client, const inferd_request *request,
                            inferd_result **result, struct inferd_error *err);

// Called from inferd_process() (or from a blocking call on the same client), or from the client's thread
// where it has one, with the answer: `result`, now the callback's to free, or NULL and `err`. It may start further
// requests.
typedef void (*inferd_callback)(void *context, inferd_result *result,
                                const struct inferd_error *err);

// Sends a request and returns; the answer goes to `callback`. The inputs have been copied or are in
// shared memory (which must not be written until the answer). *stream names the request for
// inferd_cancel(); it may be NULL. Fails with RESOURCE_EXHAUSTED where the daemon's credit is used
// up: process answers first, or inferd_wait_credit().
INFERD_API int inferd_infer_async(inferd_client *client, const inferd_request *request,
                                  inferd_callback callback, void *context, uint64_t *stream,
                                  struct inferd_error *err);

// Asks for a request to be dropped. Its callback still comes: with CANCELLED, or with the answer if
// that was quicker.
INFERD_API int inferd_cancel(inferd_client *client, uint64_t stream, struct inferd_error *err);

// Waits until the daemon's credit allows another request with `bytes` of data in its frames (those in memory, and
// tensors of 16 KiB and more, do not count), `timeout_ms` at most; RESOURCE_EXHAUSTED where it does not then.
// Without a thread answers are processed meanwhile.
INFERD_API int inferd_wait_credit(inferd_client *client, size_t bytes, uint64_t timeout_ms,
                                  struct inferd_error *err);

// For a loop of your own: poll inferd_fd() for inferd_events() (POLLIN, POLLOUT), then call
// inferd_process(), which never blocks; call it after inferd_timeout() milliseconds (-1: none) in any
// case. After a failure the client is only to be closed, or connected anew. With inferd_set_retry() the
// three are to be asked for again each time: another connection may be in use. With a thread there is nothing to
// poll for (-1, 0, -1), and inferd_process() only tells whether the connection stands.
INFERD_API int inferd_fd(const inferd_client *client);
INFERD_API short inferd_events(const inferd_client *client);
INFERD_API int inferd_timeout(const inferd_client *client);
INFERD_API int inferd_process(inferd_client *client, struct inferd_error *err);

// Processes until no request is in flight; with a thread, waits until that is so and no callback runs.
INFERD_API int inferd_wait(inferd_client *client, struct inferd_error *err);

// --- results ---

typedef struct inferd_timing {
    uint64_t queue_ns, input_ns, compute_ns, output_ns; // as the daemon measured
    uint64_t total_ns;                                  // from call to answer, as the client did
} inferd_timing;

// The outputs, in the model's order or that of the request. Valid until the result is freed.
INFERD_API size_t inferd_result_output_count(const inferd_result *result);
INFERD_API const inferd_tensor *inferd_result_output(const inferd_result *result, size_t index);
// The output called `name`; NULL where there is none.
INFERD_API const inferd_tensor *inferd_result_find(const inferd_result *result, const char *name);
INFERD_API const char *inferd_result_model_version(const inferd_result *result);
INFERD_API const char *inferd_result_device(const inferd_result *result);
INFERD_API const char *inferd_result_precision(const inferd_result *result);
INFERD_API const char *inferd_result_id(const inferd_result *result);
INFERD_API inferd_timing inferd_result_timing(const inferd_result *result);
// The rows that ran together, those of other requests counted; 1 for a model that runs its requests one by one.
INFERD_API unsigned inferd_result_batch_size(const inferd_result *result);
// The rows that were computed, padding and all, where some were nobody's; else as above.
INFERD_API unsigned inferd_result_padded_size(const inferd_result *result);
// How a request was computed.
enum inferd_result_flag {
    INFERD_PADDED = 1,     // beside rows that are nobody's, since that size is quicker
    INFERD_SPLIT = 2,      // its rows in several runs
    INFERD_RECOMPUTED = 4, // once more in fp32: what came in less was not finite
    INFERD_MOVED = 8       // on another device, since the first failed
};
// Bits of enum inferd_result_flag; others may come with later daemons.
INFERD_API unsigned inferd_result_flags(const inferd_result *result);
// Frees the result. NULL is fine.
INFERD_API void inferd_result_free(inferd_result *result);

// --- shared memory ---

// `size` bytes of memory that the daemon can read and write in place, aligned to a page. Tensors in
// it start at multiples of 64 bytes. Freed memory goes to a pool of the client's and is used again.
// After DEADLINE_EXCEEDED or CANCELLED a device may be at the request's memory for a while yet: free
// it rather than use it again (a region in doubt does not go to the pool).
INFERD_API int inferd_memory_alloc(inferd_client *client, size_t size, inferd_memory **memory,
                                   struct inferd_error *err);
INFERD_API void *inferd_memory_data(const inferd_memory *memory);
INFERD_API size_t inferd_memory_size(const inferd_memory *memory);
// Gives the memory back; requests in flight that use it may still go on. NULL is fine.
INFERD_API void inferd_memory_free(inferd_memory *memory);

// --- sessions ---

// A model's output that its next request takes as an input, without travelling here and back:
//
//   inferd_session_state state = {.output = "stateN", .input = "state", .rank = 3,
//                                 .shape = {2, 1, 128}};
//   inferd_session *session;
//   if (inferd_session_open(client, &state, 1, &session, &err)) ...
//   while (more audio) inferd_infer(client, &(inferd_request){.model = "silero_vad",
//       .inputs = audio_and_rate, .input_count = 2, .session = session}, &result, &err);
//
// The first request takes zeros of this shape, or sends the input itself: as any later one may, to
// begin anew.
typedef struct inferd_session_state {
    const char *output, *input;
    int rank; // -1: the shape is the model's, where that is known
    int64_t shape[INFERD_RANK_MAX];
} inferd_session_state;

// Opens a session with these pairs (there may be none: see inferd_tensor.session_tensor). Requests
// of one session run one after the other, as they were sent; one that fails keeps nothing. A session
// ends with its connection. Blocks until the daemon has answered, 10 s at most.
INFERD_API int inferd_session_open(inferd_client *client, const inferd_session_state *states,
                                   size_t count, inferd_session **session,
                                   struct inferd_error *err);

// As above, with the pairs of a model: those that its file tells (session_pairs), or its tensors' names.
INFERD_API int inferd_session_open_model(inferd_client *client, const char *model,
                                         const char *version, inferd_session **session,
                                         struct inferd_error *err);

// Closes it; what was sent before goes on. NULL is fine. Blocks as inferd_session_open() does.
INFERD_API void inferd_session_close(inferd_session *session);

// --- models and daemon ---

typedef struct inferd_model_info {
    char name[65], version[24], platform[48];
    size_t input_count, output_count;
    inferd_tensor *inputs, *outputs; // name, dtype, shape (-1: any); no data
} inferd_model_info;

// What a model takes and gives. Free with inferd_model_info_free(). The functions from here on block
// until the daemon has answered (10 s at most; loading and unloading take as long as they take).
INFERD_API int inferd_model_describe(inferd_client *client, const char *name, const char *version,
                                     inferd_model_info **info, struct inferd_error *err);
// Frees it. NULL is fine.
INFERD_API void inferd_model_info_free(inferd_model_info *info);

// Whether a model can answer now.
INFERD_API int inferd_model_ready(inferd_client *client, const char *name, const char *version,
                                  bool *ready, struct inferd_error *err);

typedef struct inferd_model_row {
    char name[65], version[24], state[16], reason[256], device[32], platform[48];
    uint64_t memory_bytes, requests, macs;
} inferd_model_row;

// The models the daemon knows. *rows is the caller's to free().
INFERD_API int inferd_models(inferd_client *client, inferd_model_row **rows, size_t *count,
                             struct inferd_error *err);

typedef void (*inferd_progress)(void *context, const char *stage, unsigned percent);

// Loads (or reloads) a model and waits until it is ready or has failed. `path` (NULL: the daemon's
// repository) names a model file or directory that the daemon can read; `device` NULL is the
// default. `progress` may be NULL. Needs the admin socket.
INFERD_API int inferd_load(inferd_client *client, const char *name, const char *path,
                           const char *device, inferd_progress progress, void *context,
                           struct inferd_error *err);

// Unloads a model; `version` NULL: every version. Needs the admin socket.
INFERD_API int inferd_unload(inferd_client *client, const char *name, const char *version,
                             struct inferd_error *err);

typedef struct inferd_device_row {
    char name[32], backend[16], kind[16], description[128], health[16];
    int priority;
    unsigned slots, threads, queue_depth, queue_limit;
    uint64_t requests, busy_ns, memory_bytes;
} inferd_device_row;

// The devices the daemon uses. *rows is the caller's to free().
INFERD_API int inferd_devices(inferd_client *client, inferd_device_row **rows, size_t *count,
                              struct inferd_error *err);

// A limit that can be changed while the daemon runs: a setting of inferd(8), or
// requests_per_connection_max.
typedef struct inferd_limit {
    char name[48];
    uint64_t value;
    uint64_t least, most; // what it may be set to
} inferd_limit;

// Sets limits by name and value (`set` may be NULL), all of them or none, and tells all there are. *rows
// is the caller's to free(). Needs the admin socket.
INFERD_API int inferd_limits(inferd_client *client, const inferd_limit *set, size_t set_count,
                             inferd_limit **rows, size_t *count, struct inferd_error *err);

typedef struct inferd_server_status {
    char version[32], state[16];
    uint64_t uptime_ns;
    unsigned connections, requests_in_flight, regions, models_ready;
    uint64_t connections_total, requests_accepted, requests_ok, requests_failed;
    uint64_t region_bytes, resident_bytes, log_lines_dropped;
} inferd_server_status;

// Memory of one device, counted as tf.memory() of TensorFlow.js does.
typedef struct inferd_memory_row {
    char device[32];
    unsigned num_tensors;      // constants of the models placed on it
    unsigned num_data_buffers; // allocations: constants, packed weights, arenas
    uint64_t num_bytes;        // of all three, which are:
    uint64_t constant_bytes, weight_bytes, buffer_bytes;
    uint64_t budget_bytes; // what the device has; 0: what the host has
    uint64_t peak_bytes;   // the most that num_bytes was
} inferd_memory_row;

typedef struct inferd_memory_total {
    uint64_t region_bytes;   // memory shared by all clients
    uint64_t resident_bytes; // of the daemon
    uint64_t session_bytes;  // kept in sessions of all clients
    unsigned sessions;
} inferd_memory_total;

// What each device holds. *rows is the caller's to free(); `total` may be NULL.
INFERD_API int inferd_memory_info(inferd_client *client, inferd_memory_row **rows, size_t *count,
                                  inferd_memory_total *total, struct inferd_error *err);

// How the daemon fares.
INFERD_API int inferd_status(inferd_client *client, inferd_server_status *status,
                             struct inferd_error *err);

// What the daemon has found out about its own answers since it started.
typedef struct inferd_checks {
    uint64_t answers_checked;   // that the plainest device computed once more
    uint64_t answers_drifted;   // of them: it found something else
    uint64_t answers_unchecked; // that there was no room for
    uint64_t models_demoted;    // put into fp32, since answers in less were not finite
} inferd_checks;

// Reads them.
INFERD_API int inferd_status_checks(inferd_client *client, inferd_checks *checks,
                                    struct inferd_error *err);

// --- placement ---

// A device that could have been chosen. Times in ns, 0: not known.
typedef struct inferd_candidate {
    char device[32], backend[16], kind[16], precision[8];
    char verdict[16];   // "chosen", "slower", "wrong", "refused", "left out", "not asked"
    char reason[192];   // what speaks against it
    unsigned runs;      // timed ones
    uint64_t prior_ns;  // what the device's speed promises
    uint64_t first_ns;  // of the first run, which compiles
    uint64_t median_ns; // of a race
    uint64_t memory_bytes;
    unsigned threads; // that a run uses
} inferd_candidate;

// An operator that the chosen device does not run.
typedef struct inferd_declined {
    char op[32];
    unsigned nodes;
    char device[32]; // who runs them
    char reason[192];
} inferd_declined;

// What a model was told, by its file or by admins: "device", "cpu", "model".
typedef struct inferd_setting {
    char name[48], value[256];
    char origin[16];                // "default", "model" (its file), "admin"
    char initial[256], wanted[128]; // the default, and what it may be
} inferd_setting;

// Where a model runs, and why.
typedef struct inferd_placement {
    char name[65], version[24], device[32], backend[16], precision[8], precision_reason[192];
    char policy[16]; // "latency", "throughput", "stability", "memory"
    char source[16]; // "pinned", "rule", "race", "memory": a race at an earlier start
    char reason[192];
    char rule_device[32], rule_reason[192]; // what the rule of thumb says
    uint64_t macs, const_bytes;
    unsigned steps, interpreted;
    unsigned small_ops_webgl, small_ops_webgpu; // inputs below 128, and 1000, elements
    size_t candidate_count, declined_count;
    inferd_candidate *candidates;
    inferd_declined *declined;
    size_t setting_count;
    inferd_setting *settings;
    // Answers that the plainest device computed once more, those that it found to be wrong, and those that
    // there was no room for; and answers that were not finite, and computed again in fp32.
    uint64_t shadow_checked, shadow_drifted, shadow_dropped, recomputed;
    char shadow_alarm[384]; // what was wrong with the first; "": nothing
} inferd_placement;

// Tells where a model runs, and why. Free with inferd_placement_free().
INFERD_API int inferd_explain(inferd_client *client, const char *name, const char *version,
                              inferd_placement **placement, struct inferd_error *err);
// Frees it. NULL is fine.
INFERD_API void inferd_placement_free(inferd_placement *placement);

typedef struct inferd_place_order {
    const char *model, *version; // version NULL: the one there is
    const char *device;          // a device's name, or "auto"; NULL: as it is
    const char *policy;          // NULL: as it is
    const char *precision;       // NULL: as it is
    const char *mode;            // "normal", "debug", "prod"; NULL: as it is
} inferd_place_order;

// Moves a model: the old executable serves until the new one is warm, and no request fails for it.
// Blocks until then. `progress` may be NULL. Needs the admin socket.
INFERD_API int inferd_place(inferd_client *client, const inferd_place_order *order,
                            inferd_progress progress, void *context, struct inferd_error *err);

// Compiles a model for further shapes before anybody asks for them, without running it: "x=1x3x224x224",
// with blanks between inputs and ; between sets; NULL: the model's own, with 1 where it leaves them open.
// `version` NULL: the one there is; `device` NULL: where the model is placed. Blocks until it is done.
// `progress` may be NULL. Needs the admin socket.
INFERD_API int inferd_precompile(inferd_client *client, const char *name, const char *version,
                                 const char *device, const char *shapes, inferd_progress progress,
                                 void *context, struct inferd_error *err);

// --- looking into a model ---

// One node, in the order of the model's graph.
typedef struct inferd_node {
    char name[128], op[32], device[32];
    char kernel[48];             // "": it has no step of its own
    char shape[96], inputs[256]; // "FP32 [1,8]", with commas between
    uint64_t start_ns, time_ns, macs, bytes;
    uint64_t nan_count, inf_count; // of its elements
    double least, largest;         // of those that are finite
    double max_abs, max_rel;       // diff: how far the devices are apart
    // debug: "made here", "came in" (numbers that are not finite); diff: "ok", "first" (to differ),
    // "differs"; "": nothing to say
    char verdict[16];
} inferd_node;

typedef void (*inferd_node_callback)(void *context, const inferd_node *node);

typedef struct inferd_inspect_request {
    const char *model, *version; // version NULL: the one there is
    const char *device;          // NULL: where the model is placed
    const char *mode;    // "profile": times; "debug": every value looked at; "diff": compared
    const char *against; // diff: the other device; NULL: the plainest
    double tolerance;    // diff: how far elements may be apart; 0: 0.001
    const inferd_tensor *inputs; // all of them, at most 1 MiB together; NULL: generated
    size_t input_count;
    const char *precision; // on `device`; NULL: as the model is placed
} inferd_inspect_request;

// Runs a model apart from all requests, and calls `callback` for each node. With "debug" and "diff"
// every value is kept, so that nothing is fused. Needs the admin socket.
INFERD_API int inferd_inspect(inferd_client *client, const inferd_inspect_request *request,
                              inferd_node_callback callback, void *context,
                              struct inferd_error *err);

// --- environment ---

// What the daemon found: "cpu.isa", "avx2 fma".
typedef struct inferd_fact {
    char name[64], value[192];
} inferd_fact;

// What the daemon was told.
typedef struct inferd_flag {
    char name[48], value[256], initial[256];
    char type[8];    // "bool", "int", "real", "string", "enum"
    char origin[16]; // "default", "facts", "derived", "file", "drop-in", "environment", "argument",
                     // "admin"
    char stability[16]; // "public", "internal"
    bool live;          // inferd_flag_set() changes it
    char wanted[128];   // what it may be
    char help[192];
} inferd_flag;

typedef struct inferd_environment {
    size_t fact_count, flag_count;
    inferd_fact *facts;
    inferd_flag *flags;
} inferd_environment;

// Reads facts and flags. Free with inferd_environment_free().
INFERD_API int inferd_environment_read(inferd_client *client, inferd_environment **environment,
                                       struct inferd_error *err);
// Frees them. NULL is fine.
INFERD_API void inferd_environment_free(inferd_environment *environment);

// Changes a flag until the daemon ends. Needs the admin socket.
INFERD_API int inferd_flag_set(inferd_client *client, const char *name, const char *value,
                               struct inferd_error *err);

#ifdef __cplusplus
}
#endif

#endif
