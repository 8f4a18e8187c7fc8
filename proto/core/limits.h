// SPDX-License-Identifier: Apache-2.0
// Every hard limit on data from outside, with the reason for each limit. Configurable limits are in
// daemon/config/config.h; they cannot exceed these.
#ifndef INF_PROTO_CORE_LIMITS_H
#define INF_PROTO_CORE_LIMITS_H

// --- frames ---

// Maximum metadata of one frame. Metadata of an inference is a few hundred bytes; 64 KiB holds 16
// tensors with long names.
#define INF_LIMIT_META_BYTES (64u << 10)
// Maximum data of one frame. Shared memory is faster above 16 KiB (measured), but a limit of 1 MiB
// lets simple clients send all tensors in frames.
#define INF_LIMIT_DATA_BYTES (1u << 20)
// Maximum data of one request or reply, summed over all its frames. Two FP32 pictures of 1920 x
// 1080 x 3 fit, and copying this amount is still acceptable.
#define INF_LIMIT_STREAM_DATA_BYTES (64u << 20)
// A frame that exceeds a limit is skipped and answered with an error if its size is at most this.
// If a larger frame arrives, the connection is closed.
#define INF_LIMIT_SKIP_BYTES (64u << 20)
// Maximum number of file descriptors in one frame. The kernel's own limit (SCM_MAX_FD) is 253.
#define INF_LIMIT_FRAME_FDS 16u
// Maximum time in milliseconds from the first byte of a frame to its last. The limit exists because
// a client that sends slowly must not hold a buffer for ever.
#define INF_LIMIT_FRAME_MS 10000u

// --- protobuf metadata ---

// Maximum nesting of messages. The schema itself nests 4 deep. The limit is needed because
// protobuf-c has none, so deeply nested bytes would overrun the stack.
#define INF_LIMIT_META_DEPTH 16u
// Maximum number of fields in the metadata of one frame. The limit bounds the number of
// sub-messages that protobuf-c allocates.
#define INF_LIMIT_META_FIELDS 4096u
// The most bytes that unpacking the metadata of one frame may allocate. The worst metadata within
// INF_LIMIT_META_BYTES and INF_LIMIT_META_FIELDS (thousands of empty tensors, and one shape of
// 57000 dimensions) would need a little more.
#define INF_LIMIT_META_UNPACK_BYTES (16u * INF_LIMIT_META_BYTES)

// --- names and tensors ---
#define INF_LIMIT_MODEL_NAME  64u // characters: [A-Za-z0-9._-]{1,64}, with no dot at the start
#define INF_LIMIT_TENSOR_NAME 256u
#define INF_LIMIT_REQUEST_ID  256u
// W3C Trace Context: a traceparent has 55 characters, and more in later versions of the standard.
#define INF_LIMIT_TRACE_PARENT 128u
#define INF_LIMIT_TRACE_STATE  512u
#define INF_LIMIT_RANK         8
// Most classes of pair_coupling, whose kernel keeps two numbers of each on the stack.
#define INF_LIMIT_COUPLED_CLASSES 1024
// Dimensions are less than this, so that they fit int32.
#define INF_LIMIT_DIM          ((int64_t)1 << 31)
#define INF_LIMIT_TENSOR_BYTES ((uint64_t)4 << 30) // maximum size of one tensor
// Maximum number of inputs, and of outputs, of one request.
#define INF_LIMIT_TENSORS 64u

// --- tensors of strings ---

// Maximum number of strings in one tensor of a request or reply. The limit bounds the memory for
// the handles of many empty strings, which have 4 bytes each in a message.
#define INF_LIMIT_STRING_ELEMENTS (1u << 24)
// Maximum bytes of all strings that one run holds: those of its inputs and those that it makes. The
// limit is needed because a model of a few bytes can make strings of any length.
#define INF_LIMIT_STRING_BYTES ((size_t)256 << 20)
// Maximum bytes of all strings among the constants of one model.
#define INF_LIMIT_MODEL_STRING_BYTES ((size_t)1 << 30)

// Maximum steps of a regular expression, and bytes of its text. Matching a string takes time in
// proportion to its length and to the steps.
#define INF_LIMIT_PATTERN_STEPS 10000u

// --- connections ---
#define INF_LIMIT_STREAMS      1024u               // most requests in flight on one connection
#define INF_LIMIT_REGIONS      256u                // most memory regions of one connection
#define INF_LIMIT_REGION_BYTES ((uint64_t)4 << 30) // most bytes of one connection's regions

// --- what outlives the process (docs/explanation/handover.md) ---

// Most connections that a restart keeps. Each costs up to INF_LIMIT_KEPT_BYTES of shared memory.
#define INF_LIMIT_KEPT_CONNECTIONS 4096u
// Most frames of one kept connection that await an answer. A connection with more ends with the
// process: its requests beyond the credit, which are refused, count too.
#define INF_LIMIT_KEPT_PENDINGS 2048u
// Shared memory of one kept connection: the frames that await an answer, and its regions.
#define INF_LIMIT_KEPT_BYTES (128u << 10)
// Most bytes of the sessions of one connection that a restart keeps, and of those of all
// connections together. Copying them is a part of the pause of all clients: 128 MiB take about
// 100 ms.
#define INF_LIMIT_KEPT_SESSION_BYTES     (64u << 20)
#define INF_LIMIT_ALL_KEPT_SESSION_BYTES (128u << 20)
// Most descriptors in the store of the service manager: connections, regions and states of
// sessions. FileDescriptorStoreMax= of the unit has the same value. The next process gets all names
// in one variable of the environment. Linux limits it to 128 KiB, and starts no process with more.
#define INF_LIMIT_STORED_FDS 4096u

// The most groups of a client that count where rights depend on groups.
#define INF_LIMIT_PEER_GROUPS 4096u

// --- sessions ---
#define INF_LIMIT_SESSIONS 256u // most sessions that may be open on one connection
// Maximum number of tensors that one session keeps.
#define INF_LIMIT_SESSION_TENSORS 64u
// Maximum bytes of one session, including the values that the running request computes.
#define INF_LIMIT_SESSION_BYTES ((uint64_t)1 << 30)

// Maximum rows of a history that the settings of a model may reserve in advance.
#define INF_LIMIT_HISTORY_ROWS (1u << 20)
// Most bytes of copied inputs that a worker keeps for its next decoding step, such as a mask over
// all tokens. A copy that needs more, such as one of a whole history, is freed after its run. A
// copy of histories is no larger than what the session is charged for them.
#define INF_LIMIT_KEPT_INPUT_BYTES ((size_t)1 << 20)

// --- model files ---
#define INF_LIMIT_MODEL_JSON_BYTES   ((uint64_t)256 << 20)
#define INF_LIMIT_MODEL_WEIGHT_BYTES ((uint64_t)16 << 30)
// Maximum size of an ONNX file. 2 GiB is the maximum of protobuf itself. Larger models store their
// weights in separate files.
#define INF_LIMIT_MODEL_ONNX_BYTES ((uint64_t)2 << 30)
// Maximum size of a TFLite file. Tables must be in its first 2 GiB, but data may follow them.
#define INF_LIMIT_MODEL_TFLITE_BYTES ((uint64_t)4 << 30)
#define INF_LIMIT_MODEL_SHARDS       4096u
#define INF_LIMIT_JSON_DEPTH         64u
#define INF_LIMIT_GRAPH_NODES        (1u << 20)
#define INF_LIMIT_GRAPH_VALUES       (1u << 21)
#define INF_LIMIT_NODE_INPUTS        4096u
// Importing, preparing and compiling a model may allocate INF_LIMIT_LOAD_FACTOR times the size of
// its files, plus INF_LIMIT_LOAD_EXTRA_BYTES. The text of a model.json needs the largest factor.
#define INF_LIMIT_LOAD_FACTOR      64u
#define INF_LIMIT_LOAD_EXTRA_BYTES ((uint64_t)512 << 20)
// Maximum number of subgraphs of one graph. Each branch and each loop of the graph has two
// subgraphs.
#define INF_LIMIT_SUBGRAPHS (1u << 16)
// Maximum nesting of branches and loops. It is small because functions that walk a graph recurse
// into branches and loops, and visit an inner loop up to three times for each visit of the outer
// one.
#define INF_LIMIT_GRAPH_DEPTH 8u

// Maximum number of unsupported operators that one error report lists. No file format has this many
// operators.
#define INF_LIMIT_REPORTED_OPERATORS 4096u

// Maximum bytes of the intermediate tensors and outputs of one run. The limit is needed because a
// model file of a few bytes can require any amount.
#define INF_LIMIT_ARENA_BYTES ((uint64_t)2 << 30)

// --- models whose shapes depend on values ---

// Maximum iterations of one loop. The limit exists because a model that never ends must not hold a
// worker for ever.
#define INF_LIMIT_LOOP_ITERATIONS (1u << 20)
// Maximum bytes that tensors whose size is known only at run time may use at any moment of one run.
#define INF_LIMIT_DYNAMIC_BYTES ((uint64_t)2 << 30)

#endif
