// SPDX-License-Identifier: Apache-2.0
// Metadata of frames as C structs. Decoding checks everything that does not depend on models and
// regions: the protobuf encoding (prescan.h), names, element types, ranks, dimensions, locations.
// proto/wire is the only user of protobuf-c.
#ifndef INF_PROTO_WIRE_MESSAGE_H
#define INF_PROTO_WIRE_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/core/dtype.h"
#include "proto/core/limits.h"
#include "proto/core/shape.h"
#include "proto/core/span.h"
#include "proto/core/status.h"

// Memory for decoding and encoding messages. A scratch holds the strings and lists of a decoded
// message until the next message is decoded with the same scratch. Encoding uses another part of
// the memory, so that a decoded message can be encoded. One scratch per thread is enough.
struct inf_scratch;

// Creates a scratch with INF_LIMIT_META_UNPACK_BYTES for decoding and the same size for encoding.
// Unused pages do not become resident. The caller destroys *out_scratch.
enum inf_code inf_scratch_create(struct inf_scratch **out_scratch,
                                 struct inf_error *err) INF_NODISCARD;

// Frees the scratch and sets the pointer to NULL. A NULL scratch is allowed.
void inf_scratch_destroy(struct inf_scratch **scratch);

// Strings in the structs of this header end with NUL. In a decoded message they are never NULL and
// belong to the scratch. In a message to be encoded they belong to the caller, and NULL means "".

// The position of a tensor's elements: in the data segment of a frame, or in a region of shared
// memory.
struct inf_location {
    bool present;
    uint64_t region_id; // 0: the frame's data segment
    uint64_t offset;
    uint64_t length; // size in bytes; for an output in a request: the available room
};

// A tensor of a request or a reply.
struct inf_tensor_entry {
    const char *name;
    enum inf_dtype dtype;
    struct inf_shape shape;
    struct inf_location location;
    // Only in a request: the name under which the session keeps this tensor between requests. An
    // input with such a name has the dtype NONE. NULL: the tensor is not kept in a session.
    const char *session_tensor;
};

// Requests of the same user start in the order of their priorities.
enum inf_wire_priority {
    INF_WIRE_PRIORITY_NORMAL,
    INF_WIRE_PRIORITY_HIGH,
    INF_WIRE_PRIORITY_LOW,
    INF_WIRE_PRIORITY_COUNT
};

// How the daemon computed a request: bits of inf_infer_reply.flags.
enum inf_infer_flag {
    INF_INFER_PADDED = 1,     // padding rows were added
    INF_INFER_SPLIT = 2,      // the rows were computed in several runs
    INF_INFER_RECOMPUTED = 4, // computed again in fp32, because the first result was not finite
    INF_INFER_MOVED = 8       // computed on another device, because the first device failed
};

struct inf_infer_request {
    const char *model_name;
    const char *model_version; // "": the newest version
    const char *id;            // any text of the client, which the reply repeats
    const char *device;        // "": the device on which the model is placed
    uint64_t timeout_ns;       // time from arrival to the end of the run; 0: no timeout
    uint64_t queue_timeout_ns; // time from arrival to the start of the run; 0: no timeout
    enum inf_wire_priority priority;
    uint64_t session_id;   // session of the request; 0: no session
    uint64_t order_key;    // requests with the same key are answered in order; 0: no key
    const char *mode;      // run mode (ModelInfer), or kind of inspection (ModelInspect)
    const char *against;   // ModelInspect only: device to compare with
    double tolerance;      // ModelInspect only: accepted difference
    const char *precision; // "": the precision of the model's placement
    // W3C Trace Context of the client's span, of at most INF_LIMIT_TRACE_PARENT and
    // INF_LIMIT_TRACE_STATE bytes; "": none. The format is not checked here.
    const char *traceparent, *tracestate;
    uint32_t input_count;
    struct inf_tensor_entry inputs[INF_LIMIT_TENSORS];
    // Number of outputs that the request names; 0: return all outputs.
    uint32_t output_count;
    struct inf_tensor_entry outputs[INF_LIMIT_TENSORS]; // only name and location are set
};

struct inf_timing {
    uint64_t queue_ns, input_ns, compute_ns, output_ns, core_ns;
    uint32_t threads;
};

struct inf_infer_reply {
    const char *model_name;
    const char *model_version;
    const char *id;
    uint32_t output_count;
    struct inf_tensor_entry outputs[INF_LIMIT_TENSORS];
    struct inf_timing timing;
    uint32_t batch_size;
    const char *device;
    const char *precision;
    uint32_t credit_return;
    uint32_t flags;     // bits of enum inf_infer_flag
    uint32_t padded_to; // number of computed rows, padding included; 0: no padding
};

// The metadata of a frame that reports a failure: the message Status of inferd.proto.
struct inf_status {
    enum inf_code code;
    enum inf_reason reason;
    const char *message;
    uint32_t retry_after_ms;
    const char *model, *version, *tensor, *expected, *actual, *phase;
};

struct inf_limits_message {
    uint32_t meta_bytes, data_bytes, streams, regions;
    uint64_t region_bytes;
    uint32_t frame_fds;
    uint64_t stream_bytes;
};

#define INF_HELLO_FEATURES 32
struct inf_hello {
    uint32_t major, minor;
    const char *client_name, *client_version;
    struct inf_limits_message limits;
    uint32_t feature_count;
    const char *features[INF_HELLO_FEATURES];
};

struct inf_hello_ack {
    uint32_t major, minor;
    const char *server_name, *server_version;
    struct inf_limits_message limits;
    uint32_t feature_count;
    const char *features[INF_HELLO_FEATURES];
    uint32_t credit_requests;
    uint64_t credit_bytes; // bytes of data that requests in flight may have; 0: no limit
    uint64_t epoch[2];
    const char *role, *clock;
};

// The metadata of MEM_REGISTER, MEM_ALLOC, MEM_REGISTERED, MEM_UNREGISTER and MEM_RELEASED.
struct inf_region_message {
    uint64_t region_id;
    uint64_t size;
    bool writable;
};

struct inf_goaway {
    uint64_t last_stream;
    const char *reason;
    uint64_t drain_ns;
};

// The metadata of the requests ModelReady, ModelMetadata, RepositoryModelLoad and
// RepositoryModelUnload.
struct inf_model_request {
    const char *name;
    const char *version; // "": the newest version, or for an unload all versions; not used by loads
    const char *device;  // only for a load: the device to use; "": the daemon's default
    const char *path;    // only for a load: path of the model; "": search the repository
    // Only for a load: name of the model file in the directory whose descriptor comes with the
    // frame; "": the directory is laid out as in a repository, or there is no descriptor.
    const char *file;
    bool save; // only for a load: copy the files into the repository, and load the model from there
    bool delete_files; // only for an unload: also remove the files that a save has made
};

struct inf_model_metadata {
    const char *name;
    const char *version;
    const char *platform;
    uint32_t input_count;
    struct inf_tensor_entry inputs[INF_LIMIT_TENSORS]; // the tensors have no locations
    uint32_t output_count;
    struct inf_tensor_entry outputs[INF_LIMIT_TENSORS];
};

// The metadata of the replies of ServerLive, ServerReady and ModelReady, which contain one boolean.
struct inf_flag_reply {
    bool value;
};

#define INF_METADATA_EXTENSIONS 32
struct inf_server_metadata {
    const char *name, *version;
    uint32_t extension_count;
    const char *extensions[INF_METADATA_EXTENSIONS];
};

struct inf_model_index_entry {
    const char *name, *version, *state, *reason, *device, *platform, *labels;
    uint64_t memory_bytes, requests, macs;
};
struct inf_model_index {
    uint32_t count;
    // Array of `count` entries; owned by the scratch (decoded) or the caller (to be encoded).
    struct inf_model_index_entry *entries;
};

// What a reload does: of each model `name`, `reason`, and as `state` what becomes of it.
struct inf_reload_reply {
    struct inf_model_index models;
    uint32_t left_out;
    // Names of changed settings with commas between: those that took effect, those that need a
    // restart; and why the configuration was not applied.
    const char *changed, *need_restart, *config_error;
};

// The report about one node of a model that is inspected (ModelInspect).
struct inf_node_entry {
    const char *name, *op, *kernel, *device, *shape, *inputs, *verdict;
    uint64_t start_ns, time_ns, macs, bytes, nan_count, inf_count;
    uint32_t threads;
    double min, max, max_abs, max_rel, dot_share;
};

struct inf_load_progress {
    const char *stage;
    uint32_t percent;
    uint32_t node_count;
    struct inf_node_entry *nodes; // owned by the scratch (decoded) or the caller (to be encoded)
};

struct inf_device_entry {
    const char *name, *backend, *kind, *description, *health, *precisions;
    int32_t priority;
    uint32_t slots, threads, queue_depth, queue_limit;
    uint64_t requests, busy_ns, memory_bytes;
};
struct inf_device_index {
    uint32_t count;
    // Array of `count` entries; owned by the scratch (decoded) or the caller (to be encoded).
    struct inf_device_entry *entries;
};

struct inf_server_status {
    const char *version, *state;
    uint64_t uptime_ns;
    uint32_t connections, requests_in_flight, regions, models_ready;
    uint64_t connections_total, requests_accepted, requests_ok, requests_failed;
    uint64_t region_bytes, resident_bytes, log_lines_dropped;
    uint64_t answers_checked, answers_drifted, answers_unchecked, models_demoted;
};

// The memory of one device, counted as tf.memory() of TensorFlow.js does.
struct inf_memory_entry {
    const char *name;
    uint32_t num_tensors, num_data_buffers;
    uint64_t num_bytes, constant_bytes, weight_bytes, buffer_bytes;
    uint64_t budget_bytes, peak_bytes;
};

struct inf_memory_info {
    uint32_t count;
    struct inf_memory_entry *entries;
    uint64_t region_bytes, resident_bytes;
    uint64_t session_bytes;
    uint32_t sessions;
};

// A pair of a session: the tensor `output` of one request becomes `input` of the next request.
struct inf_session_state {
    const char *output, *input;
    bool shaped; // true: the first request gets zeros of the shape `shape`
    // Shape of the zeros that the first request of the session gets as the tensor `input`, because
    // there is no earlier output. All dimensions are known.
    struct inf_shape shape;
};

// The metadata of the requests SessionOpen, SessionClose and SessionRewind. SessionClose has the
// member `session_id` only.
struct inf_session_message {
    uint64_t session_id;
    uint64_t fork_of;       // SessionOpen: the session to copy; 0: none
    uint64_t length;        // SessionRewind: rows of the history that stay
    uint32_t max_length;    // SessionOpen: most rows of a history; 0: not set
    bool release;           // SessionRewind: give back the memory of the other rows
    const char *model_name; // use the pairs of this model; "": those in `states`
    const char *model_version;
    uint32_t state_count;
    struct inf_session_state states[INF_LIMIT_SESSION_TENSORS];
};

// A limit that can be changed while the daemon runs. In a request only `name` and `value` are set.
struct inf_limit_entry {
    const char *name;
    uint64_t value, min, max;
};
#define INF_LIVE_LIMITS 32
// The metadata of the request and the reply of ServerLimits.
struct inf_limit_list {
    uint32_t count;
    struct inf_limit_entry entries[INF_LIVE_LIMITS];
};

struct inf_credit {
    uint32_t requests;
    uint64_t bytes; // bytes of data that requests in flight may have; 0: unchanged
};

// The metadata of a DATA frame, which carries a part of the data of a request or reply.
struct inf_data_message {
    uint64_t total_bytes; // size of the data in all frames of the stream together
};

// What becomes of a setting at the next start. The numbers are those of the protocol.
enum inf_persistence {
    INF_PERSIST_NOT = 0,    // it is gone
    INF_PERSIST_KEEP = 1,   // it holds
    INF_PERSIST_FORGET = 2, // an earlier one that holds is removed
};

// The metadata of the requests ModelPlacement and ModelPlace.
struct inf_placement_request {
    const char *name;
    const char *version;                            // "": the newest version
    const char *device, *policy, *precision, *mode; // "": unchanged
    enum inf_persistence persistence;
};

// One setting of a model's placement, such as "device" or "precision".
struct inf_setting_entry {
    const char *name, *value, *origin;
    const char *default_value, *allowed;
};

// The metadata of the request ModelPrecompile.
struct inf_precompile_message {
    const char *name;
    const char *version; // "": the newest version
    const char *device;  // "": the device on which the model is placed
    const char *shapes;
};

// A device that the daemon considered for a model.
struct inf_candidate_entry {
    const char *device, *backend, *kind, *precision, *verdict, *reason;
    uint32_t runs, threads;
    uint64_t prior_ns, first_ns, median_ns, memory_bytes; // 0: the value is not known
};

// A type of operator in the model that the chosen device does not support.
struct inf_declined_entry {
    const char *op;
    uint32_t nodes;
    const char *device; // the device that runs these nodes instead
    const char *reason;
};

struct inf_placement_reply {
    const char *name, *version, *device, *backend, *precision, *precision_reason, *policy, *source;
    const char *reason, *rule_device, *rule_reason, *shadow_alarm, *joined_steps;
    uint64_t macs, const_bytes, shadow_checked, shadow_drifted, shadow_dropped, recomputed;
    uint32_t steps, interpreted, small_ops_webgl, small_ops_webgpu;
    uint32_t candidate_count, declined_count;
    // `candidates` and `declined` are owned by the scratch (decoded) or the caller (to be encoded).
    struct inf_candidate_entry *candidates;
    struct inf_declined_entry *declined;
    uint32_t setting_count;
    struct inf_setting_entry *settings; // same owner as `candidates`
};

// The metadata of the request FlagSet.
struct inf_flag_set_request {
    const char *name, *value;
    enum inf_persistence persistence;
};

struct inf_fact_entry {
    const char *name, *value;
};

struct inf_flag_entry {
    const char *name, *type, *value, *default_value, *origin, *stability;
    bool live;
    const char *allowed, *help;
};

struct inf_environment_reply {
    uint32_t fact_count, flag_count;
    struct inf_fact_entry *facts; // owned by the scratch (decoded) or the caller (to be encoded)
    struct inf_flag_entry *flags;
};

// The metadata of the request Metrics.
struct inf_metrics_request {
    const char *format; // "prometheus", "openmetrics" or "json"; "": "prometheus"
};

// The metadata of the reply of Metrics. The text itself is the data of the reply.
struct inf_metrics_reply {
    const char *media_type; // such as "text/plain; version=0.0.4; charset=utf-8"
    // Only in a client: the data of the reply. The decoder does not set it.
    struct inf_span text;
};

// The most rows of a list of requests or clients. This many rows fit into the metadata of a frame,
// even if all their texts have the maximum length.
#define INF_ACTIVITY_ROWS 180u

// A request in flight: one row of the reply to RequestList.
struct inf_request_entry {
    uint64_t client_id, stream_id;
    uint32_t uid;
    int32_t pid;
    const char *method, *model, *version, *device, *phase, *id;
    uint64_t age_ns, data_bytes;
    uint32_t rows;
};

struct inf_request_list {
    uint32_t count, left_out;
    struct inf_request_entry *entries; // owned by the scratch (decoded) or the caller (to encode)
};

// A connection: one row of the reply to ClientList.
struct inf_client_entry {
    uint64_t client_id;
    uint32_t uid;
    int32_t pid;
    const char *name, *role;
    uint64_t age_ns, requests, data_bytes, unread_bytes, region_bytes;
    uint32_t in_flight, regions, sessions;
};

struct inf_client_list {
    uint32_t count, left_out;
    struct inf_client_entry *entries; // owned by the scratch (decoded) or the caller (to encode)
};

// The request that is to be cancelled. To close a connection, only client_id is used.
struct inf_client_target {
    uint64_t client_id, stream_id;
};

// The metadata of the request Report. The reply is a struct inf_metrics_reply.
struct inf_report_request {
    const char *topic; // "slow" or "events"
    uint64_t after;
    bool wait;
};

// The kinds of messages. For each kind, union inf_message has a member.
enum inf_message_kind {
    INF_MESSAGE_EMPTY, // no fields: ServerLiveRequest and others
    INF_MESSAGE_HELLO,
    INF_MESSAGE_HELLO_ACK,
    INF_MESSAGE_INFER_REQUEST,
    INF_MESSAGE_INFER_REPLY,
    INF_MESSAGE_STATUS,
    INF_MESSAGE_REGION_REGISTER,
    INF_MESSAGE_REGION_REGISTERED,
    INF_MESSAGE_REGION_UNREGISTER,
    INF_MESSAGE_REGION_RELEASED,
    INF_MESSAGE_GOAWAY,
    INF_MESSAGE_MODEL_READY_REQUEST,
    INF_MESSAGE_MODEL_METADATA_REQUEST,
    INF_MESSAGE_MODEL_LOAD_REQUEST,
    INF_MESSAGE_MODEL_UNLOAD_REQUEST,
    INF_MESSAGE_LIVE_REPLY,
    INF_MESSAGE_READY_REPLY,
    INF_MESSAGE_MODEL_READY_REPLY,
    INF_MESSAGE_MODEL_METADATA,
    INF_MESSAGE_SERVER_METADATA,
    INF_MESSAGE_MODEL_INDEX,
    INF_MESSAGE_LOAD_PROGRESS,
    INF_MESSAGE_RELOAD_REPLY,
    INF_MESSAGE_DEVICE_INDEX,
    INF_MESSAGE_SERVER_STATUS,
    INF_MESSAGE_MEMORY_INFO,
    INF_MESSAGE_SESSION_OPEN,
    INF_MESSAGE_SESSION_CLOSE,
    INF_MESSAGE_SESSION_REWIND,
    INF_MESSAGE_REGION_ALLOC,
    INF_MESSAGE_LIMITS_REQUEST,
    INF_MESSAGE_LIMITS_REPLY,
    INF_MESSAGE_CREDIT,
    INF_MESSAGE_DATA,
    INF_MESSAGE_PLACEMENT_REQUEST,
    INF_MESSAGE_PLACEMENT_REPLY,
    INF_MESSAGE_FLAG_SET,
    INF_MESSAGE_ENVIRONMENT,
    INF_MESSAGE_PRECOMPILE,
    INF_MESSAGE_METRICS_REQUEST,
    INF_MESSAGE_METRICS_REPLY,
    INF_MESSAGE_REQUEST_LIST,
    INF_MESSAGE_CLIENT_LIST,
    INF_MESSAGE_CLIENT_TARGET,
    INF_MESSAGE_REPORT_REQUEST,
    INF_MESSAGE_KIND_COUNT
};

union inf_message {
    struct inf_hello hello;
    struct inf_hello_ack hello_ack;
    struct inf_infer_request infer_request;
    struct inf_infer_reply infer_reply;
    struct inf_status status;
    struct inf_region_message region;
    struct inf_goaway goaway;
    struct inf_model_request model;
    struct inf_flag_reply flag;
    struct inf_model_metadata model_metadata;
    struct inf_server_metadata server_metadata;
    struct inf_model_index model_index;
    struct inf_load_progress load_progress;
    struct inf_reload_reply reload_reply;
    struct inf_device_index device_index;
    struct inf_server_status server_status;
    struct inf_memory_info memory_info;
    struct inf_session_message session;
    struct inf_limit_list limit_list;
    struct inf_credit credit;
    struct inf_data_message data;
    struct inf_placement_request placement_request;
    struct inf_placement_reply placement_reply;
    struct inf_flag_set_request flag_set;
    struct inf_environment_reply environment;
    struct inf_precompile_message precompile;
    struct inf_metrics_request metrics_request;
    struct inf_metrics_reply metrics_reply;
    struct inf_request_list request_list;
    struct inf_client_list client_list;
    struct inf_client_target client_target;
    struct inf_report_request report_request;
};

// Decodes metadata of the given kind. Strings and lists are stored in `scratch`; no other memory is
// allocated. Array elements after the last used one are not set. `message` may be NULL for
// INF_MESSAGE_EMPTY.
//
// INF_INVALID    (BAD_FRAME) the bytes are no protobuf of that kind, or exceed a limit;
//                (BAD_PARAMETER) the value of a field is wrong: the text names the field, the value
//                and what was wanted.
// INF_RANGE      (REGION_BOUNDS) the end of a location does not fit 64 bits.
// INF_EXHAUSTED  (FRAME_TOO_LARGE) the unpacked message would need more than
//                INF_LIMIT_META_UNPACK_BYTES.
enum inf_code inf_message_decode(union inf_message *message, enum inf_message_kind kind,
                                 struct inf_span meta, struct inf_scratch *scratch,
                                 struct inf_error *err) INF_NODISCARD;

// Encodes metadata of the given kind into `buffer` and sets *out_size. Allocates only from
// `scratch`. `message` may be NULL for INF_MESSAGE_EMPTY.
//
// INF_INVALID    (BAD_PARAMETER) a tensor has no type, or its rank is invalid.
// INF_EXHAUSTED  (FRAME_TOO_LARGE) the encoded metadata exceed `capacity` bytes.
enum inf_code inf_message_encode(const union inf_message *message, enum inf_message_kind kind,
                                 uint8_t *buffer, size_t capacity, size_t *out_size,
                                 struct inf_scratch *scratch, struct inf_error *err) INF_NODISCARD;

// Gives each input of a decoded request a location, and checks all locations. An input without a
// location is in the data segment, at the next multiple of INF_FRAME_DATA_ALIGNMENT after the
// previous input. The length of a location must match the shape and type. Locations in the data
// segment must be aligned and inside its `data_bytes`, and together they must fill the segment
// except for padding. Locations in regions are not checked against the region; the owner of the
// regions does that.
//
// INF_INVALID  (SIZE_MISMATCH) a length, or the size of the segment, is wrong; (BAD_PARAMETER) an
//              offset in the segment is not aligned, or a tensor exceeds INF_LIMIT_TENSOR_BYTES.
// INF_RANGE    (REGION_BOUNDS) a location extends beyond the data segment.
enum inf_code inf_infer_request_resolve_inline(struct inf_infer_request *request,
                                               uint64_t data_bytes,
                                               struct inf_error *err) INF_NODISCARD;

// Gives each output of a decoded reply a location, and checks all locations, by the rules of
// inf_infer_request_resolve_inline().
enum inf_code inf_infer_reply_resolve_inline(struct inf_infer_reply *reply, uint64_t data_bytes,
                                             struct inf_error *err) INF_NODISCARD;

// Fills a status from an error. The strings of the status point into the error.
void inf_status_from_error(struct inf_status *status, const struct inf_error *err);

// Fills an error from a status and returns its code. A status of OK becomes INF_INTERNAL.
enum inf_code inf_error_from_status(struct inf_error *err, const struct inf_status *status);

// Returns whether `name` can be the name of a model: [A-Za-z0-9._-]{1,64} without a leading dot.
bool inf_model_name_valid(const char *name);

// Returns whether `reference` is NAME, NAME:SIGNATURE, or one of them, '@' and a version or label.
// NAME and SIGNATURE have the form of inf_model_name_valid(), and both with the ':' have at most
// INF_LIMIT_MODEL_NAME characters.
bool inf_model_reference_valid(const char *reference);

#endif
