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
// Errors: functions that can fail return 0 (INFERD_OK) or a code of enum inferd_code. On failure
// they fill *err; `err` may be NULL.
//
// Threads: a client and everything that belongs to it (results, memory, sessions) may be used by
// one thread at a time. After inferd_start_thread() any thread may use them at any time.
//
// Strings are UTF-8 and end with NUL. A string that is passed to a function need not outlive the
// call. Fixed arrays of characters are truncated if the text is longer.
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

// The class of a failure. The numbers are those of google.rpc.Code.
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

// Describes a failure.
struct inferd_error {
    int code; // enum inferd_code
    // The reason, for programs: "SHAPE_MISMATCH", "QUEUE_FULL", ... All reasons are listed in
    // docs/reference/protocol.md.
    char reason[32];
    char text[1024];         // one line, for people
    uint32_t retry_after_ms; // suggested delay before trying again, in milliseconds; 0: unknown
};

// Element types of tensors.
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
    INFERD_FP64,
    INFERD_BYTES // strings: see "tensors of strings" below
} inferd_dtype;

#define INFERD_RANK_MAX 8

// A connection to the daemon.
typedef struct inferd_client inferd_client;
// The answer to one inference.
typedef struct inferd_result inferd_result;
// Memory shared with the daemon. Tensors in it are not copied.
typedef struct inferd_memory inferd_memory;
// Tensors that the daemon keeps between two requests of one client: the state of a recurrent model.
typedef struct inferd_session inferd_session;

// A tensor: its elements are contiguous, in row-major order.
typedef struct inferd_tensor {
    const char *name;
    inferd_dtype dtype;
    int rank;
    int64_t shape[INFERD_RANK_MAX];
    void *data;  // the elements; the library does not write to inputs
    size_t size; // size of the elements in bytes
    // The shared memory that `data` points into; NULL: `data` is other memory.
    inferd_memory *memory;
    // Used only in a request with a session. For an input: the daemon reads the tensor that the
    // session keeps under this name, and ignores dtype, shape and data. For an output: the session
    // keeps the tensor under this name, and the result does not contain it. NULL: the session is
    // not used.
    const char *session_tensor;
} inferd_tensor;

// Returns the name of a dtype ("FP32"), or "NONE" if the number is no dtype.
INFERD_API const char *inferd_dtype_name(inferd_dtype dtype);
// Returns the size of one element in bytes, or 0 if the number is no dtype.
INFERD_API size_t inferd_dtype_size(inferd_dtype dtype);
// Returns the dtype with this name, or 0 if there is none. `name` may be NULL.
INFERD_API inferd_dtype inferd_dtype_parse(const char *name);

// --- tensors of strings ---

// The data of a tensor of INFERD_BYTES are its strings, one after another: for each a length in 4
// bytes (little-endian), and then that many bytes, any of which may be 0. `size` of the tensor is
// their sum. The functions below write and read this form.

// One string. It is not terminated.
typedef struct inferd_string {
    const void *data; // may be NULL if `size` is 0
    size_t size;
} inferd_string;

// Writes `count` strings to `buffer` of `size` bytes. Returns the bytes that they take, and writes
// nothing if these are more than `size`: with a size of 0, it only measures. `buffer` may then be
// NULL. Returns SIZE_MAX if a string is 4 GiB or longer.
INFERD_API size_t inferd_strings_write(const inferd_string *strings, size_t count, void *buffer,
                                       size_t size);

// Reads the string at byte *offset of a tensor of INFERD_BYTES, which begins at 0, and moves
// *offset behind it. *string points into the tensor. Returns 1; or 0 if there is no further string,
// or the tensor's data end within it.
INFERD_API int inferd_string_next(const inferd_tensor *tensor, size_t *offset,
                                  inferd_string *string);

// --- connecting, and settings of a connection ---

// Connects to the daemon's socket: `path` or, if that is NULL, $INFERD_SOCKET or
// /run/inferd/inferd.sock. Blocks until the daemon has answered the greeting, at most 10 s. *client
// is closed with inferd_close().
INFERD_API int inferd_connect(inferd_client **client, const char *path, struct inferd_error *err);

// Connects like inferd_connect(), but waits at most `timeout_ms` milliseconds for the daemon's
// greeting (0: 10 s, as inferd_connect() does). Later questions of this client about models,
// devices and settings also wait at most that long for their answers. If the client connects again
// after a failure, it also waits at most that long for the greeting.
INFERD_API int inferd_connect_timeout(inferd_client **client, const char *path, uint64_t timeout_ms,
                                      struct inferd_error *err);

// Closes the connection and frees the client, its memory and its results. Requests in flight are
// cancelled, and their callbacks are not called. NULL is allowed.
//
// A callback may close its client: then the client is freed when the library function that ran the
// callback returns. If the client has a thread (inferd_start_thread()), any thread may close the
// client. inferd_close() then waits for a running callback, and calls of other threads end with
// CANCELLED. No further call may begin.
INFERD_API void inferd_close(inferd_client *client);

// Starts a thread that serves the client until inferd_close(): it reads answers, calls callbacks,
// and reconnects if inferd_set_retry() allows it. Any thread may then use the client, and
// everything that belongs to it, at any time.
//
// All callbacks run on this thread, one after the other, so a slow callback delays the others.
// Callbacks may call any function. The application's signals are blocked on the thread. Other
// threads can use the client while a call waits for an answer, except while inferd_reconnect()
// waits. The thread cannot be stopped without closing the client.
INFERD_API int inferd_start_thread(inferd_client *client, struct inferd_error *err);

// Copies to epoch[] the number that the daemon chooses at each start. If the number has changed
// since the last call, the daemon has restarted, and its counters began again with 0.
INFERD_API void inferd_epoch(const inferd_client *client, uint64_t epoch[2]);

// Closes the connection and connects to the same path again. Blocks until a daemon answers, at most
// `timeout_ms`, because no daemon may be running during a restart. If the old connection works, the
// function first waits for the requests in flight; otherwise they end with UNAVAILABLE. Memory of
// inferd_memory_alloc() keeps its contents. Sessions are lost.
INFERD_API int inferd_reconnect(inferd_client *client, uint64_t timeout_ms,
                                struct inferd_error *err);

// Sets for how many milliseconds the library sends a failed request or question again. With 0, the
// default, the library never does.
//
// A request is sent again only if it was certainly not started: the daemon was shutting down or had
// no room for it, or the connection had failed before. The client reconnects if necessary. Retrying
// ends after `limit_ms`, or after the request's own timeout. A request that may have been started
// fails with UNAVAILABLE.
//
// The setting applies to inferd_infer(), for all functions that ask the daemon and wait for its
// answer, and for inferd_infer_async() except for requests with a session or an order key. For
// asynchronous requests inferd_process() reconnects, without blocking.
//
// Calls wait for a model that is still loading even without this setting: a request waits until its
// timeout, a question waits 10 s or `limit_ms`.
INFERD_API void inferd_set_retry(inferd_client *client, uint64_t limit_ms);

// Sets how later requests of this client are computed; NULL, the default, stands for the options of
// the model's placement. The strings are copied.
//
// `precision`: "fp32", "fp16", "bf16" or "int8", which the device must support. If a reduced
// precision gives non-finite values, the daemon computes the answer again in fp32;
// inferd_result_precision() reports that.
//
// `mode`: "normal"; "prod" (answers are not checked on the reference device); "debug" (the daemon
// logs each node; needs the admin socket).
INFERD_API int inferd_set_run_options(inferd_client *client, const char *precision,
                                      const char *mode, struct inferd_error *err);

// Sets how long later requests of this client may wait in the daemon before they start, in
// milliseconds; 0, the default, stands for the whole timeout of the request. A request that waits
// longer, or is expected to wait longer when it arrives, fails with DEADLINE_EXCEEDED. A request
// that has started in time may take as long as its timeout allows.
INFERD_API void inferd_set_queue_timeout(inferd_client *client, uint64_t timeout_ms);

// Sets the W3C Trace Context that later inferences of this client carry: `traceparent` and
// `tracestate` as in the HTTP headers of these names; NULL, the default: none. The strings are
// copied. A program that serves others calls this function before each inferd_infer() or
// inferd_infer_async(), in the same thread. If the daemon writes traces, the spans of the inference
// then belong to the trace of the caller, and the caller decides whether they are written. A
// traceparent is cut after 128 bytes, and a tracestate after 512. A malformed traceparent is
// ignored, as the standard demands.
INFERD_API void inferd_set_trace_context(inferd_client *client, const char *traceparent,
                                         const char *tracestate);

// Counters of a client since inferd_connect().
typedef struct inferd_statistics {
    uint64_t requests;  // inferences that the application started
    uint64_t succeeded; // started inferences that ended with a result
    uint64_t failed;    // started inferences that ended with an error
    // Inferences sent again, with more room for outputs or because of inferd_set_retry().
    uint64_t resent;
    uint64_t reconnects;     // attempts to reconnect
    uint64_t bytes_sent;     // bytes written to the socket
    uint64_t bytes_received; // bytes read from the socket
    uint64_t memory_bytes;   // memory that is shared with the daemon at present
    uint32_t in_flight;      // inferences in flight at present
    // Inferences whose large tensors went through the socket, because no shared memory was
    // available here or in the daemon.
    uint32_t without_shared_memory;
} inferd_statistics;

// Copies the statistics of the client.
INFERD_API void inferd_client_statistics(const inferd_client *client,
                                         inferd_statistics *statistics);

// --- running models (inference) ---

// Tensors of 16 KiB and more are sent through shared memory, smaller tensors through the socket.
// Tensors in inferd_memory are not copied at all.
//
// The names of tensors may have or lack the ":0" that TensorFlow adds, whichever the model has.
//
// The library learns how much room the outputs of a model need. The first request with large
// outputs takes one or two more round trips; the model still runs only once.
//
// If the daemon refuses shared memory, or no shared memory is available, the library copies tensors
// through the socket, and inferd_statistics.without_shared_memory counts the request. A request
// with a session or an order key that is in flight when the daemon refuses its memory fails.

// Requests of the same user start in the order of their priorities.
typedef enum inferd_priority {
    INFERD_PRIORITY_NORMAL,
    INFERD_PRIORITY_HIGH,
    INFERD_PRIORITY_LOW
} inferd_priority;

// One inference. Zero-initialise, then set the fields that are needed.
typedef struct inferd_request {
    const char *model;   // NAME, or NAME:SIGNATURE for a further signature of the model file
    const char *version; // NULL: the newest version
    const char *device;  // NULL: the device on which the model is placed
    const char *id;      // any text, which inferd_result_id() returns; NULL: none
    const inferd_tensor *inputs;
    size_t input_count;
    // The names of the outputs to return. If `memory` and `data` of an output are set, the daemon
    // writes the output there; otherwise the library provides the memory. NULL: all outputs, in
    // memory of the library.
    const inferd_tensor *outputs;
    size_t output_count;
    uint64_t timeout_ms; // from the call to the answer; 0: no timeout
    inferd_priority priority;
    // Session of the request; NULL: none. Outputs that belong to a pair of the session are returned
    // only if `outputs` names them, and need `memory` if they do not fit an answer.
    inferd_session *session;
    uint64_t
        // Requests of this client with the same key are answered in the order in which they were
        // sent; 0: the request has no key, so later requests may be answered first.
        order_key;
} inferd_request;

// Checks whether a request fits its model: the names, types and shapes of its tensors. At the first
// call, after another version has answered, and after a restart of the daemon, the function asks
// the daemon for a description of the model, which blocks for at most 10 s. Once the library has a
// description (also from inferd_model_describe()), requests that do not fit the model fail before
// they are sent.
INFERD_API int inferd_check(inferd_client *client, const inferd_request *request,
                            struct inferd_error *err);

// Runs a model and blocks until the answer has arrived. The caller frees *result with
// inferd_result_free().
INFERD_API int inferd_infer(inferd_client *client, const inferd_request *request,
                            inferd_result **result, struct inferd_error *err);

// Receives the answer to an asynchronous request: `result`, which the callback must free, or NULL
// and `err`. Runs in inferd_process(), in a blocking function with the same client or, if the
// client has a thread, on that thread. The callback may call any function.
typedef void (*inferd_callback)(void *context, inferd_result *result,
                                const struct inferd_error *err);

// Sends a request and returns at once; `callback` receives the answer. Inputs outside of shared
// memory have been copied when the function returns. The caller must not write to inputs in shared
// memory until the answer has arrived. *stream identifies the request for inferd_cancel(); `stream`
// may be NULL.
//
// Fails with RESOURCE_EXHAUSTED if the daemon allows no further request in flight; the caller then
// processes answers or calls inferd_wait_credit(). If the function fails, the callback is not
// called.
INFERD_API int inferd_infer_async(inferd_client *client, const inferd_request *request,
                                  inferd_callback callback, void *context, uint64_t *stream,
                                  struct inferd_error *err);

// Cancels an asynchronous request. The callback is still called: with the answer if the answer
// arrived before the cancellation, otherwise with CANCELLED.
INFERD_API int inferd_cancel(inferd_client *client, uint64_t stream, struct inferd_error *err);

// Blocks until the daemon allows another request with `bytes` of data in its frames, at most
// `timeout_ms`; then fails with RESOURCE_EXHAUSTED. Tensors in shared memory, and tensors of 16 KiB
// and more, do not count as data. Without a thread, answers are processed meanwhile.
INFERD_API int inferd_wait_credit(inferd_client *client, size_t bytes, uint64_t timeout_ms,
                                  struct inferd_error *err);

// For an event loop of the application: poll inferd_fd() for inferd_events() (POLLIN, POLLOUT) for
// at most inferd_timeout() milliseconds (-1: no limit), then call inferd_process(), which never
// blocks.
//
// After inferd_process() has failed, the client can only be closed or reconnected. With
// inferd_set_retry(), call the first three functions before each poll, because the client may have
// opened a new connection. If the client has a thread, the application has nothing to poll for, so
// the three functions return -1, 0 and -1, and inferd_process() only reports whether the connection
// works.
INFERD_API int inferd_fd(const inferd_client *client);
INFERD_API short inferd_events(const inferd_client *client);
INFERD_API int inferd_timeout(const inferd_client *client);
INFERD_API int inferd_process(inferd_client *client, struct inferd_error *err);

// Blocks until no request is in flight and, if the client has a thread, no callback is running.
// Without a thread, the call processes answers.
INFERD_API int inferd_wait(inferd_client *client, struct inferd_error *err);

// --- results of inferences ---

// Times of one inference in nanoseconds.
typedef struct inferd_timing {
    uint64_t queue_ns;   // how long the request waited in the daemon's queue
    uint64_t input_ns;   // how long the daemon prepared the inputs
    uint64_t compute_ns; // how long the model ran
    uint64_t output_ns;  // how long the daemon wrote the outputs
    uint64_t total_ns;   // from the call to the answer, measured by the library
} inferd_timing;

// Strings and tensors that the functions below return stay valid until the result is freed.

// Returns the number of outputs.
INFERD_API size_t inferd_result_output_count(const inferd_result *result);
// Returns the output with this index, or NULL if `index` is too large. The outputs are in the order
// of the request if the request names outputs, otherwise in the order of the model.
INFERD_API const inferd_tensor *inferd_result_output(const inferd_result *result, size_t index);
// Returns the output with this name, or NULL if there is none.
INFERD_API const inferd_tensor *inferd_result_find(const inferd_result *result, const char *name);
// Returns the version of the model that answered.
INFERD_API const char *inferd_result_model_version(const inferd_result *result);
// Returns the device that computed the answer.
INFERD_API const char *inferd_result_device(const inferd_result *result);
// Returns the precision that the answer was computed in: "fp32", "fp16", "bf16" or "int8".
INFERD_API const char *inferd_result_precision(const inferd_result *result);
// Returns the id that the request contained; "" if it had none.
INFERD_API const char *inferd_result_id(const inferd_result *result);
// Returns the times of the inference.
INFERD_API inferd_timing inferd_result_timing(const inferd_result *result);
// Returns the most threads of the daemon that computed the answer at once. A run that is alone has
// more threads than runs at the same time.
INFERD_API unsigned inferd_result_threads(const inferd_result *result);
// Returns the processor cores' time of the run in nanoseconds: `compute_ns` of the timing, plus the
// time for which helper threads worked for the run. On a GPU it is `compute_ns`.
INFERD_API uint64_t inferd_result_core_ns(const inferd_result *result);
// Returns how many rows the daemon computed together with the rows of this request, these included.
// Returns 1 for a model whose requests are not batched.
INFERD_API unsigned inferd_result_batch_size(const inferd_result *result);
// Returns how many rows the daemon computed, counting rows of padding; at least
// inferd_result_batch_size().
INFERD_API unsigned inferd_result_padded_size(const inferd_result *result);
// How the daemon computed a request. The flags can be combined.
enum inferd_result_flag {
    INFERD_PADDED = 1, // padding rows were added, because the larger batch size is faster
    INFERD_SPLIT = 2,  // the rows were computed in several runs
    // The answer was computed again in fp32, because the reduced precision gave non-finite values.
    INFERD_RECOMPUTED = 4,
    INFERD_MOVED = 8 // the request ran on another device, because the first device failed
};
// Returns a combination of bits of enum inferd_result_flag. Later daemons may set other bits.
INFERD_API unsigned inferd_result_flags(const inferd_result *result);
// Frees the result. NULL is allowed.
INFERD_API void inferd_result_free(inferd_result *result);

// --- shared memory ---

// Allocates `size` bytes of memory that the daemon reads and writes without copies. The memory is
// aligned to a page; tensors in it must start at multiples of 64 bytes. The function never waits
// for the daemon. The caller frees *memory with inferd_memory_free(); inferd_close() frees memory
// that is left.
INFERD_API int inferd_memory_alloc(inferd_client *client, size_t size, inferd_memory **memory,
                                   struct inferd_error *err);
// Returns the address of the first byte.
INFERD_API void *inferd_memory_data(const inferd_memory *memory);
// Returns the size in bytes that was passed to inferd_memory_alloc().
INFERD_API size_t inferd_memory_size(const inferd_memory *memory);
// Gives the memory back to the client, which reuses it. Requests in flight may still use it. NULL
// is allowed.
//
// After a request has failed with DEADLINE_EXCEEDED or CANCELLED, a device may still write to its
// memory for a while. The caller should free that memory and not use it again; the library does not
// reuse it either.
INFERD_API void inferd_memory_free(inferd_memory *memory);

// --- sessions ---

// A state pair of a session: the value of the output `output` becomes the input `input` of the
// session's next request. The value stays in the daemon.
//
//   inferd_session_state state = {.output = "stateN", .input = "state", .rank = 3,
//                                 .shape = {2, 1, 128}};
//   inferd_session *session;
//   if (inferd_session_open(client, &state, 1, &session, &err)) ...
//   while (more audio) inferd_infer(client, &(inferd_request){.model = "silero_vad",
//       .inputs = audio_and_rate, .input_count = 2, .session = session}, &result, &err);
//
// In the first request the input is zeros of this shape. To start from other values, a request may
// send the input itself.
typedef struct inferd_session_state {
    const char *output, *input;
    int rank; // rank of the input; -1: use the shape that the model declares, if it is known
    int64_t shape[INFERD_RANK_MAX];
} inferd_session_state;

// Opens a session with `count` state pairs. A session without pairs is useful with
// inferd_tensor.session_tensor. Requests of a session run one after the other, in the order in
// which they were sent. A request that fails changes nothing in the session. A session ends with
// its connection. Blocks until the daemon has answered, at most 10 s. The caller closes *session
// with inferd_session_close().
INFERD_API int inferd_session_open(inferd_client *client, const inferd_session_state *states,
                                   size_t count, inferd_session **session,
                                   struct inferd_error *err);

// Opens a session as inferd_session_open() does, but with the pairs that belong to a model. The
// pairs are listed in the model's file (session_pairs), or follow from the names of its tensors.
INFERD_API int inferd_session_open_model(inferd_client *client, const char *model,
                                         const char *version, inferd_session **session,
                                         struct inferd_error *err);

// How a session begins. Zero-initialise it; members that are 0 or NULL are not set.
typedef struct inferd_session_options {
    const char *model, *version; // the pairs of this model, or those of `states`
    const inferd_session_state *states;
    size_t count;
    // Most rows of a history, such as the keys and values of a decoder. The daemon makes room for
    // them at the first request, and a request that needs more fails. If the model has such a limit
    // too, the smaller one counts. 0: no limit of the session.
    unsigned max_length;
} inferd_session_options;

// Opens a session as inferd_session_open() or inferd_session_open_model() does, with options.
INFERD_API int inferd_session_open_with(inferd_client *client,
                                        const inferd_session_options *options,
                                        inferd_session **session, struct inferd_error *err);

// Opens a session that begins with the tensors of `session`, for example to continue a text in two
// ways. Both share memory until one of them changes. All requests of `session` must have been
// answered (else INFERD_FAILED_PRECONDITION). Blocks until the daemon has answered, at most 10 s.
// The caller closes *fork with inferd_session_close().
INFERD_API int inferd_session_fork(inferd_session *session, inferd_session **fork,
                                   struct inferd_error *err);

// Forgets all rows of the session's history but the first `length`, as if the requests that made
// them had not been sent. A history is a state pair to which each request appends rows: the keys
// and values of a decoder. Fails if the history is shorter, and if requests of the session are not
// answered yet. The memory stays, for the next rows. Blocks until the daemon has answered, at most
// 10 s.
INFERD_API int inferd_session_rewind(inferd_session *session, uint64_t length,
                                     struct inferd_error *err);

// Does the same as inferd_session_rewind(), and gives back the memory of the forgotten rows: at
// once if `length` is 0, else with the next request.
INFERD_API int inferd_session_truncate(inferd_session *session, uint64_t length,
                                       struct inferd_error *err);

// Closes the session. Requests that were sent before still run. Blocks until the daemon has
// answered, at most 10 s. NULL is allowed.
INFERD_API void inferd_session_close(inferd_session *session);

// --- models and daemon ---

// The functions from here on block until the daemon has answered, at most 10 s unless they say
// otherwise. `version` NULL stands for the newest version.

// The inputs and outputs of a model.
typedef struct inferd_model_info {
    char name[65], version[24];
    char platform[48]; // format of the model file
    size_t input_count, output_count;
    inferd_tensor *inputs, *outputs; // only name, dtype and shape are set; a size of -1: any size
} inferd_model_info;

// Returns the description of a model. Free it with inferd_model_info_free().
INFERD_API int inferd_model_describe(inferd_client *client, const char *name, const char *version,
                                     inferd_model_info **info, struct inferd_error *err);
// Frees the description. NULL is allowed.
INFERD_API void inferd_model_info_free(inferd_model_info *info);

// Sets *ready to whether the model can answer requests. An idle model can, and stays idle.
INFERD_API int inferd_model_ready(inferd_client *client, const char *name, const char *version,
                                  bool *ready, struct inferd_error *err);

// One row of the list of models.
typedef struct inferd_model_row {
    char name[65], version[24];
    char state[16];    // "LOADING", "WARMING", "READY", "UNLOADING", "IDLE" or "UNAVAILABLE"
    char reason[256];  // why the model is not ready; "": the model is ready
    char device[32];   // the device on which the model is placed
    char platform[48]; // format of the model file
    uint64_t memory_bytes;
    uint64_t requests; // inferences since the model was loaded
    uint64_t macs;     // multiply-adds of one inference; 0: unknown
    char labels[256];  // labels of this version, separated by commas
} inferd_model_row;

// Lists the models of the daemon. The caller frees *rows with free().
INFERD_API int inferd_models(inferd_client *client, inferd_model_row **rows, size_t *count,
                             struct inferd_error *err);

// Reports the progress of a load: `stage` names the current step, and `percent` is the finished
// part of the load.
typedef void (*inferd_progress)(void *context, const char *stage, unsigned percent);

// Loads or reloads a model, and blocks until it is ready or has failed, without a limit. `path` is
// a model file, or a directory laid out as in a repository; if `path` is NULL, the daemon searches
// its repository. The daemon receives a descriptor of the directory, so that directories that are
// hidden from it, such as those below /home and /tmp, can be used; but its user must be able to
// read the files. If `device` is NULL, the daemon chooses its default device. `progress` may be
// NULL. Needs the admin socket.
INFERD_API int inferd_load(inferd_client *client, const char *name, const char *path,
                           const char *device, inferd_progress progress, void *context,
                           struct inferd_error *err);

// Copies a model into the daemon's repository and loads it from there, so that the next start of
// the daemon loads it too. A model that is there already gets its next version. The copy appears as
// a whole, and is removed if the model cannot be loaded. `path` is a model file that needs no other
// files, or a directory. Otherwise like inferd_load().
INFERD_API int inferd_save(inferd_client *client, const char *name, const char *path,
                           const char *device, inferd_progress progress, void *context,
                           struct inferd_error *err);

// Unloads a model; if `version` is NULL, every version. Blocks until its requests in flight have
// ended, at most 120 s. Needs the admin socket.
INFERD_API int inferd_unload(inferd_client *client, const char *name, const char *version,
                             struct inferd_error *err);

// Unloads one version of a model, and removes the files that inferd_save() has put into the
// repository for it; files that others put there stay. If `version` is NULL, the repository must
// have one version of the model. Models that came by path or were copied into the repository by
// hand are refused. Needs the admin socket.
INFERD_API int inferd_delete(inferd_client *client, const char *name, const char *version,
                             struct inferd_error *err);

// What a reload does with one model of the repository.
typedef struct inferd_reload_row {
    char model[65];
    // "refused", "loading", "removed" (the repository no longer has it), "unchanged"
    char outcome[16];
    char reason[256]; // why it is refused, or what becomes of a removed one; else empty
} inferd_reload_row;

// What a reload does, as the daemon knows it before the models are loaded.
typedef struct inferd_reload_report {
    inferd_reload_row *rows; // sorted by outcome, in the order of the list above, and by name
    size_t count;
    size_t left_out; // number of rows for which the answer had no room
    // Names of changed settings of the daemon, with commas between. Those in restart_settings take
    // effect after a restart.
    char changed_settings[256], restart_settings[256];
    char config_error[256]; // why the configuration was not applied; empty: it was
} inferd_reload_report;

// Has the daemon read its configuration and its repository again, as SIGHUP does. Changed settings
// take effect if they can without a restart. Models are loaded if they are new, have changed or
// could not be loaded before. Returns when it is known what will be done; inferd_wait() or
// inferd_models() tell how loads end. The caller frees *report with inferd_reload_report_free().
// Needs the admin socket.
INFERD_API int inferd_reload(inferd_client *client, inferd_reload_report **report,
                             struct inferd_error *err);
// Frees the report. NULL is allowed.
INFERD_API void inferd_reload_report_free(inferd_reload_report *report);

// One row of the list of devices.
typedef struct inferd_device_row {
    char name[32], backend[16], kind[16], description[128];
    // "ok", "lost" (the driver lost the device), "quarantined" (lost repeatedly)
    char health[16];
    int priority;   // devices of a higher priority are preferred
    unsigned slots; // inferences that the device can run at the same time
    unsigned threads;
    // requests that wait for the device, and the maximum of waiting requests
    unsigned queue_depth, queue_limit;
    uint64_t requests; // inferences since the daemon started
    uint64_t busy_ns;  // time spent computing since the daemon started
    uint64_t memory_bytes;
} inferd_device_row;

// Lists the devices of the daemon. The caller frees *rows with free().
INFERD_API int inferd_devices(inferd_client *client, inferd_device_row **rows, size_t *count,
                              struct inferd_error *err);

// A limit that can be changed while the daemon runs. Its name is the name of a setting of
// inferd(8), or requests_per_connection_max.
typedef struct inferd_limit {
    char name[48];
    uint64_t value;
    uint64_t min, max; // the smallest and the largest allowed value
} inferd_limit;

// Sets the limits in `set`, which have a name and a value, and lists all limits. If one limit
// cannot be set, none is changed. If `set` is NULL, the function only lists the limits. The caller
// frees *rows with free(). Needs the admin socket.
INFERD_API int inferd_limits(inferd_client *client, const inferd_limit *set, size_t set_count,
                             inferd_limit **rows, size_t *count, struct inferd_error *err);

// The state of the daemon. Counters start with 0 when the daemon starts.
typedef struct inferd_server_status {
    char version[32];
    char state[16]; // "ready", or "draining" (finishes requests and takes no new ones)
    uint64_t uptime_ns;
    unsigned connections; // connections that are open at present
    unsigned requests_in_flight;
    unsigned regions; // regions of shared memory that clients have registered
    unsigned models_ready;
    uint64_t connections_total; // connections since the daemon started
    uint64_t requests_accepted;
    uint64_t requests_ok;
    uint64_t requests_failed;
    uint64_t region_bytes;      // shared memory of all clients
    uint64_t resident_bytes;    // memory of the daemon's process
    uint64_t log_lines_dropped; // log lines that were dropped because the log was too slow
} inferd_server_status;

// The memory of one device, counted as tf.memory() of TensorFlow.js does.
typedef struct inferd_memory_row {
    char device[32];
    unsigned num_tensors;      // number of constants of the models on this device
    unsigned num_data_buffers; // number of allocations: constants, packs, arenas
    uint64_t num_bytes;        // the sum of constant_bytes, weight_bytes and buffer_bytes
    uint64_t constant_bytes;   // constants in the format of the model file
    uint64_t weight_bytes;     // weights in the layouts that kernels read
    uint64_t buffer_bytes;     // arenas and other buffers
    uint64_t budget_bytes;     // memory of the device; 0: it uses the memory of the host
    uint64_t peak_bytes;       // the maximum of num_bytes so far
} inferd_memory_row;

// Memory of the daemon that belongs to no device.
typedef struct inferd_memory_total {
    uint64_t region_bytes;   // shared memory of all clients
    uint64_t resident_bytes; // memory of the daemon's process
    uint64_t session_bytes;  // session state of all clients
    unsigned sessions;
} inferd_memory_total;

// Lists the memory of each device. The caller frees *rows with free(); `total` may be NULL.
INFERD_API int inferd_memory_info(inferd_client *client, inferd_memory_row **rows, size_t *count,
                                  inferd_memory_total *total, struct inferd_error *err);

// Copies the state of the daemon to *status.
INFERD_API int inferd_status(inferd_client *client, inferd_server_status *status,
                             struct inferd_error *err);

// Results of the daemon's checks of its own answers since the daemon started.
typedef struct inferd_checks {
    uint64_t answers_checked; // answers computed again on the reference device
    uint64_t answers_drifted; // checked answers that differed from the reference device
    // Answers that the daemon should have checked but did not, because the queue of checks was
    // full.
    uint64_t answers_unchecked;
    // Number of models set to fp32, because a reduced precision gave non-finite values.
    uint64_t models_demoted;
} inferd_checks;

// Copies the results of the daemon's checks to *checks.
INFERD_API int inferd_status_checks(inferd_client *client, inferd_checks *checks,
                                    struct inferd_error *err);

// Reads the metrics of the daemon as a text in a format: "prometheus" (text format 0.0.4),
// "openmetrics" (1.0) or "json"; NULL: "prometheus". *text ends with NUL, which *size (may be NULL)
// does not count. The caller frees *text with free(). On the admin socket the text has the metrics
// of all models and users; on the data socket, those of the models that the caller's user has used.
INFERD_API int inferd_metrics(inferd_client *client, const char *format, char **text, size_t *size,
                              struct inferd_error *err);

// --- requests and connections of the daemon ---
// On the admin socket these functions see the connections of all users. On the data socket they see
// only the connections of the caller's user.

// A request in flight.
typedef struct inferd_request_row {
    uint64_t client_id; // number of the request's connection, as in inferd_clients()
    uint64_t stream_id; // number of the request on its connection
    unsigned uid;
    int pid;         // process that opened the connection
    char method[32]; // name of the method, such as "ModelInfer"
    // Model, version and device. They are empty if the request runs no model, or while its data is
    // arriving.
    char model[65], version[65], device[32];
    // "upload" (its data is arriving), "session" (waits for an earlier request of its session),
    // "queue" (waits for the device), "run", "load", "wait" (waits for an event), or "ending"
    // (answered, but not finished in the daemon).
    char phase[16];
    char id[72];         // id that the client gave the request, cut to 64 bytes
    uint64_t age_ns;     // time since the daemon accepted the request
    uint64_t data_bytes; // bytes of data that the daemon received with the request
    unsigned rows;       // rows that the daemon can batch with other requests; 0: none
} inferd_request_row;

// Lists the requests in flight, oldest first. The caller frees *rows with free(). The list is
// bounded: *left_out is the number of requests that the daemon left out. `left_out` may be NULL.
INFERD_API int inferd_requests(inferd_client *client, inferd_request_row **rows, size_t *count,
                               size_t *left_out, struct inferd_error *err);

// A connection to the daemon.
typedef struct inferd_client_row {
    uint64_t client_id; // number of the connection; not reused while the daemon runs
    unsigned uid;
    int pid;       // process that opened the connection
    char name[72]; // name that the client sent in its greeting, cut to 64 bytes
    char role[16]; // "client", or "admin" on the admin socket
    unsigned in_flight, regions, sessions;
    uint64_t age_ns;       // time since the client connected
    uint64_t requests;     // number of requests since the client connected
    uint64_t data_bytes;   // bytes of data of these requests
    uint64_t unread_bytes; // bytes of replies that the client has not read
    uint64_t region_bytes; // bytes of shared memory that the client registered
} inferd_client_row;

// Lists the connections, oldest first. The caller frees *rows with free(). *left_out is the number
// of connections that the daemon left out. `left_out` may be NULL.
INFERD_API int inferd_clients(inferd_client *client, inferd_client_row **rows, size_t *count,
                              size_t *left_out, struct inferd_error *err);

// Reads a report of the daemon as a JSON text that ends with NUL. *size is its length without the
// NUL; `size` may be NULL. The caller frees *text with free(). Topics:
//   "slow"  a list of inferences: first those that took longer than the daemon's setting slow_ms,
//           newest first, then the slowest inferences of each model; times are in nanoseconds
//   "memory"  how much memory the daemon may use, and what it uses it for
//   "timeline"  what the daemon did since this client read the topic before; admins only.
//           docs/reference/protocol.md describes it; inferctl trace converts it for Perfetto
//   "model NAME" or "model NAME@VERSION"  what a model says about itself: title, description,
//           signatures, files, and of its inputs and outputs how they are normalised and the labels
//           of classes
INFERD_API int inferd_report(inferd_client *client, const char *topic, char **text, size_t *size,
                             struct inferd_error *err);

// Reads the events after the event number `after` (0: all that the daemon remembers) as a JSON text
// that ends with NUL: an object with "events", a list; "last", the value of `after` for the next
// call; and "lost", the number of events after `after` that the daemon has forgotten. If `wait` is
// true and there is no event after `after`, blocks until one occurs, without a time limit. The
// caller frees *text with free().
INFERD_API int inferd_event_log(inferd_client *client, uint64_t after, bool wait, char **text,
                                struct inferd_error *err);

// Cancels a request that inferd_requests() lists, of any connection. The client that sent the
// request gets the error INFERD_CANCELLED, with the reason BY_ADMIN if the caller uses the admin
// socket.
INFERD_API int inferd_cancel_request(inferd_client *client, uint64_t client_id, uint64_t stream_id,
                                     struct inferd_error *err);

// Closes a connection that inferd_clients() lists, except the caller's own. The requests of the
// connection are cancelled. The client is not prevented from reconnecting.
INFERD_API int inferd_disconnect_client(inferd_client *client, uint64_t client_id,
                                        struct inferd_error *err);

// --- placement: where the daemon runs a model, and why ---

// A device that the daemon considered when it chose where to run a model.
typedef struct inferd_candidate {
    char device[32], backend[16], kind[16], precision[8];
    char verdict[16];   // "chosen", "slower", "wrong", "refused", "left out", "not asked"
    char reason[192];   // why the daemon did not choose this device
    unsigned runs;      // number of timed runs
    uint64_t prior_ns;  // run time expected from the speed of the device; 0: unknown
    uint64_t first_ns;  // time of the first run, which includes compilation; 0: not measured
    uint64_t median_ns; // median time of a run; 0: not measured
    uint64_t memory_bytes;
    unsigned threads; // threads that one run uses
} inferd_candidate;

// A type of operator in the model that the chosen device does not support, so that another device
// computes its nodes.
typedef struct inferd_declined {
    char op[32];
    unsigned nodes;  // how many nodes of the model use this operator
    char device[32]; // the device that runs these nodes instead
    char reason[192];
} inferd_declined;

// A setting of a model's placement, such as "device", "precision" or "mode", and its value.
typedef struct inferd_setting {
    char name[48], value[256];
    char origin[16]; // who set the value: "default", "model" (the model's own file), "admin"
    char default_value[256];
    char allowed[128]; // the allowed values
} inferd_setting;

// Where the daemon runs a model, and why.
typedef struct inferd_placement {
    char name[65], version[24], device[32], backend[16], precision[8];
    char precision_reason[192]; // why the daemon chose this precision
    char policy[16];            // goal: "latency", "throughput", "stability" or "memory"
    // How the device was chosen: "pinned", "rule", "race" (a timing comparison of devices),
    // "memory" (the result of a timing comparison at an earlier start of the daemon).
    char source[16];
    char reason[192]; // why the daemon chose this device
    // the device that rules alone would choose, without measuring, and why
    char rule_device[32], rule_reason[192];
    uint64_t macs;        // multiply-adds of one inference
    uint64_t const_bytes; // bytes of the model's constants
    unsigned steps;       // number of steps of the compiled program
    unsigned interpreted; // number of nodes run one by one, because their shapes depend on values
    // Counts of nodes whose inputs have fewer than 128 elements (WebGL) and fewer than 1000
    // elements (WebGPU): TensorFlow.js would run these nodes on the CPU.
    unsigned small_ops_webgl, small_ops_webgpu;
    size_t candidate_count, declined_count;
    inferd_candidate *candidates;
    inferd_declined *declined;
    size_t setting_count;
    inferd_setting *settings;
    uint64_t shadow_checked; // answers computed again on the reference device
    uint64_t shadow_drifted; // checked answers that differed from the reference device
    uint64_t shadow_dropped; // answers that were not checked because the queue of checks was full
    uint64_t recomputed;     // answers computed again in fp32, because they were not finite
    // how the first checked answer that differed was different; "": no answer differed
    char shadow_alarm[384];
    // how many decoding steps of different sessions run together at most, or why none do; "": the
    // model has no history
    char joined_steps[512];
} inferd_placement;

// Returns where a model runs, and why. Free *placement with inferd_placement_free().
INFERD_API int inferd_explain(inferd_client *client, const char *name, const char *version,
                              inferd_placement **placement, struct inferd_error *err);
// Frees the placement. NULL is allowed.
INFERD_API void inferd_placement_free(inferd_placement *placement);

// The changes to a model's placement. A field that is NULL changes nothing.
typedef struct inferd_place_request {
    const char *model;     // must not be NULL
    const char *version;   // NULL: the newest version
    const char *device;    // the name of a device, or "auto"
    const char *policy;    // "latency", "throughput", "stability", "memory"
    const char *precision; // "auto", "fp32", "fp16", "bf16", "int8"
    const char *mode;      // "normal", "debug", "prod"
} inferd_place_request;

// Changes the placement of a model. The old placement serves requests until the new placement is
// ready, so no request fails. Blocks until the new placement is ready, without a limit. `progress`
// may be NULL. Needs the admin socket.
INFERD_API int inferd_place(inferd_client *client, const inferd_place_request *request,
                            inferd_progress progress, void *context, struct inferd_error *err);

// Like inferd_place(), and makes all settings persistent that admins changed for the model: they
// also hold after a restart of the daemon, until inferd_place_forget(). If the daemon cannot write
// them, it changes nothing.
INFERD_API int inferd_place_persist(inferd_client *client, const inferd_place_request *request,
                                    inferd_progress progress, void *context,
                                    struct inferd_error *err);

// Forgets all settings that admins changed for a model of the repository, and loads it again with
// those of its file. Otherwise like inferd_load().
INFERD_API int inferd_place_forget(inferd_client *client, const char *model,
                                   inferd_progress progress, void *context,
                                   struct inferd_error *err);

// Compiles a model for further input shapes before requests need them. Does not run the model.
//
// `shapes` has the form "x=1x3x224x224", with blanks between inputs and ';' between sets of inputs.
// If `shapes` is NULL, the daemon compiles the model's own shapes, with 1 for each open size. If
// `device` is NULL, the daemon compiles for the device on which the model is placed. Blocks until
// all shapes are compiled, without a limit. `progress` may be NULL. Needs the admin socket.
INFERD_API int inferd_precompile(inferd_client *client, const char *name, const char *version,
                                 const char *device, const char *shapes, inferd_progress progress,
                                 void *context, struct inferd_error *err);

// --- inspecting a model ---

// Measurements of one node of an inspected model. The library reports the nodes in the order of the
// model's graph.
typedef struct inferd_node {
    char name[128], op[32], device[32];
    char kernel[48];   // the kernel that computes the node; "": the node is fused into another node
    char shape[96];    // element type and shape of the output, such as "FP32 [1,8]"
    char inputs[256];  // shapes of all inputs, separated by commas
    uint64_t start_ns; // nanoseconds from the start of the run to the start of the node
    uint64_t time_ns;
    uint64_t macs;      // number of multiply-adds that the node computes
    uint64_t bytes;     // size of the node's outputs in bytes
    uint64_t nan_count; // number of elements of the outputs that are NaN
    uint64_t inf_count; // number of elements of the outputs that are infinite
    double min, max;    // minimum and maximum of the finite elements
    double max_abs; // only in mode "diff": the largest absolute difference between the two devices
    double max_rel; // only in mode "diff": the largest relative difference between the two devices
    // In mode "debug": "made here" (the first node with non-finite values) or "came in" (the node's
    // inputs had non-finite values). In mode "diff": "ok", "first" (the first node that differs) or
    // "differs". Otherwise empty.
    char verdict[16];
    unsigned threads; // threads that computed the node; 0: the device does not report them
    // For products of 8-bit numbers: the multiply-adds per second as a share of the peak of these
    // threads, such as 0.8. The peak is that of dot products with vector instructions, so that the
    // share can exceed 1 with AMX. 0: the node has no such products, or the device reports no peak.
    double dot_share;
} inferd_node;

// Receives the report about one node. `node` is valid only until the callback returns.
typedef void (*inferd_node_callback)(void *context, const inferd_node *node);

// How to inspect a model.
typedef struct inferd_inspect_request {
    const char *model, *version; // version NULL: the newest version
    const char *device;          // NULL: the device on which the model is placed
    // "profile": measure the nodes. "debug": look for NaN and infinities. "diff": compare two
    // devices.
    const char *mode;
    // only in mode "diff": the device to compare with; NULL: the reference device
    const char *against;
    double tolerance; // only in mode "diff": the difference of elements that is accepted; 0: 0.001
    // all inputs, at most 1 MiB together; NULL: the daemon generates values
    const inferd_tensor *inputs;
    size_t input_count;
    const char *precision; // precision on `device`; NULL: the precision of the model's placement
} inferd_inspect_request;

// Runs a model separately from all requests, and calls `callback` for each node. With "debug" and
// "diff" the daemon keeps every value, so it fuses no nodes. Blocks until the run has ended,
// without a limit. Needs the admin socket.
INFERD_API int inferd_inspect(inferd_client *client, const inferd_inspect_request *request,
                              inferd_node_callback callback, void *context,
                              struct inferd_error *err);

// --- facts about the machine, and flags of the daemon ---

// A fact that the daemon found out about the machine, such as "cpu.isa" with the value "avx2 fma".
typedef struct inferd_host_fact {
    char name[64], value[192];
} inferd_host_fact;

// A flag of the daemon.
typedef struct inferd_flag {
    char name[48], value[256], default_value[256];
    char type[8]; // "bool", "int", "real", "string", "enum"
    // The source of the value: "default", "facts" (detected on the machine), "derived" (computed
    // from other flags), "file", "drop-in", "environment", "argument", "persisted" or "admin".
    char origin[16];
    char stability[16]; // "public": the flag stays as it is; "internal": any version may change it
    bool live;          // true: inferd_flag_set() can change the flag while the daemon runs
    char allowed[128];  // the allowed values
    char help[192];
} inferd_flag;

typedef struct inferd_environment {
    size_t fact_count, flag_count;
    inferd_host_fact *facts;
    inferd_flag *flags;
} inferd_environment;

// Reads the facts that the daemon found out about the machine, and the daemon's flags. Free
// *environment with inferd_environment_free().
INFERD_API int inferd_environment_read(inferd_client *client, inferd_environment **environment,
                                       struct inferd_error *err);
// Frees the environment. NULL is allowed.
INFERD_API void inferd_environment_free(inferd_environment *environment);

// Changes a flag; the new value lasts until the daemon ends. Needs the admin socket.
INFERD_API int inferd_flag_set(inferd_client *client, const char *name, const char *value,
                               struct inferd_error *err);

// Changes a flag; the new value also holds after a restart of the daemon. If `value` is NULL, the
// flag gets the value of the configuration again. If the daemon cannot write this down, it changes
// nothing. Needs the admin socket.
INFERD_API int inferd_flag_persist(inferd_client *client, const char *name, const char *value,
                                   struct inferd_error *err);

#ifdef __cplusplus
}
#endif

#endif
