// SPDX-License-Identifier: Apache-2.0
// The parts of an ONNX ModelProto: nodes, names, and the positions of all other parts in the file.
// Attributes and tensors stay bytes until a lowering function reads them.
#ifndef INF_BACKENDS_IMPORT_ONNX_PROTO_H
#define INF_BACKENDS_IMPORT_ONNX_PROTO_H

#include "backends/base/arena.h"
#include "backends/import/onnx/protobuf.h"
#include "proto/core/shape.h"

// The largest number of opset imports of one model or function.
#define INF_ONNX_OPSETS_MAX 64u
// The longest name, in bytes.
#define INF_ONNX_NAME_MAX 65535u

// The version of an operator set.
struct inf_onnx_opset {
    const char *domain; // "" for ai.onnx
    int64_t version;
};

struct inf_onnx_opsets {
    const struct inf_onnx_opset *items;
    uint32_t count;
};

// Values of AttributeProto.type.
enum inf_onnx_attr_type {
    INF_ONNX_ATTR_NONE = 0,
    INF_ONNX_ATTR_FLOAT = 1,
    INF_ONNX_ATTR_INT = 2,
    INF_ONNX_ATTR_STRING = 3,
    INF_ONNX_ATTR_TENSOR = 4,
    INF_ONNX_ATTR_GRAPH = 5,
    INF_ONNX_ATTR_FLOATS = 6,
    INF_ONNX_ATTR_INTS = 7,
    INF_ONNX_ATTR_STRINGS = 8,
};

struct inf_onnx_attr {
    const char *name;
    // Name of the attribute of the function's call to which it refers; NULL: none.
    const char *reference;
    enum inf_onnx_attr_type type;
    struct inf_span body; // bytes of the AttributeProto
    bool used;            // true: a lowering function has read it
};

struct inf_onnx_node {
    const char *name; // name of the node; if it has none, name of its first output
    const char *op;
    const char *domain; // "" for ai.onnx
    const char *overload;
    const char **inputs; // "" for absent inputs
    uint32_t input_count;
    const char **outputs;
    uint32_t output_count;
    struct inf_onnx_attr *attrs;
    uint32_t attr_count;
};

// An input or output of a graph.
struct inf_onnx_port {
    const char *name;
    int32_t type;           // TensorProto.DataType; 0 if the file has no type
    const char *not_tensor; // such as "a map"; NULL for tensors, and for sequences of tensors
    struct inf_shape shape; // unknown rank if the file has no shape
    // A sequence of tensors of `type` and `shape`; an optional one of these, or of a tensor.
    bool is_sequence, is_optional;
};

struct inf_onnx_graph {
    const char *name;
    struct inf_onnx_node *nodes;
    uint32_t node_count;
    struct inf_span *initializers; // TensorProtos
    uint32_t initializer_count;
    uint32_t sparse_count; // number of sparse initialisers, which are refused
    struct inf_onnx_port *inputs;
    uint32_t input_count;
    struct inf_onnx_port *outputs;
    uint32_t output_count;
};

struct inf_onnx_function {
    const char *name, *domain, *overload;
    const char **inputs;
    uint32_t input_count;
    const char **outputs;
    uint32_t output_count;
    struct inf_onnx_attr *defaults; // default values of attributes
    uint32_t default_count;
    struct inf_onnx_node *nodes;
    uint32_t node_count;
    struct inf_onnx_opsets opsets;
};

struct inf_onnx_model {
    const char *producer;
    int64_t ir_version;
    struct inf_onnx_opsets opsets;
    struct inf_onnx_function *functions;
    uint32_t function_count;
    struct inf_onnx_graph graph;
};

// Returns true if `bytes`, the beginning of a file, appear to be a ModelProto.
bool inf_onnx_looks_like(struct inf_span bytes);

// Reads a ModelProto. The model points into `arena` and `bytes`, which must outlive it.
//
// INF_INVALID      malformed protobuf, or not a model; the text says which part is missing.
// INF_EXHAUSTED    nested too deep, a limit of limits.h, or memory.
enum inf_code inf_onnx_model_read(struct inf_onnx_model *model, struct inf_arena *arena,
                                  struct inf_span bytes, struct inf_error *err) INF_NODISCARD;

// Reads a GraphProto of a model or of an attribute.
enum inf_code inf_onnx_graph_read(struct inf_onnx_graph *graph, struct inf_arena *arena,
                                  struct inf_span bytes, struct inf_error *err) INF_NODISCARD;

// Sets *out to a copy of a name in `arena`.
//
// INF_INVALID  the name contains a NUL byte or is too long.
enum inf_code inf_onnx_text(const char **out, struct inf_arena *arena, struct inf_span bytes,
                            struct inf_error *err) INF_NODISCARD;

// Sets *out to field `number` of a message that inf_onnx_model_read() has checked. *out is zero if
// the field is absent; if it occurs several times, the last occurrence is used.
void inf_onnx_field(struct inf_span message, uint32_t number, struct inf_pb_field *out);

#endif
