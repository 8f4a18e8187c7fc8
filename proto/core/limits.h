// SPDX-License-Identifier: Apache-2.0
// Every hard limit on what comes from outside, each with its reason. Configurable limits live in
// daemon/config/config.h and are bounded by these.
#ifndef INF_PROTO_CORE_LIMITS_H
#define INF_PROTO_CORE_LIMITS_H

// --- frames ---
// Metadata of an inference is a few hundred bytes; 64 KiB holds 16 tensors with long names.
#define INF_LIMIT_META_BYTES (64u << 10)
// Above 16 KiB a region is faster (measured); 1 MiB inline keeps simple clients simple.
#define INF_LIMIT_DATA_BYTES (1u << 20)
// What one request or reply may have inline in all its frames: as much as one may carry in eight
// pictures of 1920 x 1080 in FP32, and little enough to be copied.
#define INF_LIMIT_STREAM_DATA_BYTES (64u << 20)
// An oversize frame up to this size is answered and skipped; beyond it the connection is closed.
#define INF_LIMIT_SKIP_BYTES (64u << 20)
// File descriptors with one frame; the kernel's own limit (SCM_MAX_FD) is 253.
#define INF_LIMIT_FRAME_FDS 16u
// Milliseconds from a frame's first byte to its last: a trickling client holds no buffer for ever.
#define INF_LIMIT_FRAME_MS 10000u

// --- protobuf metadata ---
// The schema itself nests 4 deep; protobuf-c has no limit of its own and overruns the stack.
#define INF_LIMIT_META_DEPTH 16u
// Fields in one metadata block; bounds the sub-messages protobuf-c allocates.
#define INF_LIMIT_META_FIELDS 4096u
// Bytes that unpacking one metadata block may allocate. The worst block that the two limits above
// let pass (thousands of empty tensors, and one shape of 57000 dimensions) would take a little more.
#define INF_LIMIT_META_UNPACK_BYTES (16u * INF_LIMIT_META_BYTES)

// --- names and tensors ---
#define INF_LIMIT_MODEL_NAME   64u // [A-Za-z0-9._-]{1,64}, no leading dot
#define INF_LIMIT_TENSOR_NAME  256u
#define INF_LIMIT_REQUEST_ID   256u
#define INF_LIMIT_RANK         8
#define INF_LIMIT_DIM          ((int64_t)1 << 31)  // exclusive: a dimension fits int32
#define INF_LIMIT_TENSOR_BYTES ((uint64_t)4 << 30) // one tensor
#define INF_LIMIT_TENSORS      64u                 // inputs, or outputs, of one request

// --- connections ---
#define INF_LIMIT_STREAMS      1024u               // requests in flight on one connection
#define INF_LIMIT_REGIONS      256u                // memory regions registered by one connection
#define INF_LIMIT_REGION_BYTES ((uint64_t)4 << 30) // all regions of one connection together

// --- sessions ---
#define INF_LIMIT_SESSIONS        256u                // open on one connection
#define INF_LIMIT_SESSION_TENSORS 64u                 // kept in one: all the state of a model
#define INF_LIMIT_SESSION_BYTES   ((uint64_t)1 << 30) // of them, with room for their next values

// --- model files ---
#define INF_LIMIT_MODEL_JSON_BYTES   ((uint64_t)256 << 20)
#define INF_LIMIT_MODEL_WEIGHT_BYTES ((uint64_t)16 << 30)
// Protobuf itself ends here; larger models keep their weights in files of their own.
#define INF_LIMIT_MODEL_ONNX_BYTES ((uint64_t)2 << 30)
#define INF_LIMIT_MODEL_SHARDS     4096u
#define INF_LIMIT_JSON_DEPTH       64u
#define INF_LIMIT_GRAPH_NODES      (1u << 20)
#define INF_LIMIT_GRAPH_VALUES     (1u << 21)
#define INF_LIMIT_NODE_INPUTS      4096u
// What importing, preparing and compiling a model may allocate: this many times the bytes of its
// files, and this many more. The text of a model.json takes most by the byte.
#define INF_LIMIT_LOAD_FACTOR      64u
#define INF_LIMIT_LOAD_EXTRA_BYTES ((uint64_t)512 << 20)
// Branches and loops of one graph, twice: each has two subgraphs.
#define INF_LIMIT_SUBGRAPHS (1u << 16)
// Branches and loops within each other: what walks them recurses, and looks at the inner one of two
// loops up to three times for each time it looks at the outer one.
#define INF_LIMIT_GRAPH_DEPTH 8u

// Operators that a model lacks, in a report of all of them: more than any format has.
#define INF_LIMIT_REPORTED_OPERATORS 4096u

// Intermediates of one run, and its outputs: a file of a few bytes can ask for any amount.
#define INF_LIMIT_ARENA_BYTES ((uint64_t)2 << 30)

// --- models whose shapes hang on values ---
// Iterations of one loop: a model that never ends must not hold a worker for ever.
#define INF_LIMIT_LOOP_ITERATIONS (1u << 20)
// Bytes that tensors of unplanned size may take at once in one run.
#define INF_LIMIT_DYNAMIC_BYTES ((uint64_t)2 << 30)

#endif
