// SPDX-License-Identifier: Apache-2.0
// Private to shape inference: what the files of the operator families share.
#ifndef INF_BACKENDS_GRAPH_SHAPE_RULES_H
#define INF_BACKENDS_GRAPH_SHAPE_RULES_H

#include "backends/graph/graph.h"
#include "backends/graph/shape/infer.h"

// One node under inference. Operand counts and attributes are checked before a shape function sees
// it; nothing else about it is.
struct inf_infer {
    const struct inf_graph *graph;
    const struct inf_node *node;
    enum inf_dtype dtype;     // of the outputs, by the operator's rule
    enum inf_dtype *dtypes;   // of each output: `dtype` to begin with
    struct inf_shape *shapes; // of each output; unknown rank to begin with
    struct inf_error *err;
};

// Shapes that do not fit. The driver puts the node's name in front.
#define inf_shape_fault(infer, ...)                                                                \
    inf_fail_reason((infer)->err, INF_INVALID, INF_REASON_SHAPE_MISMATCH, __VA_ARGS__)

// One shape function an operator: inf_infer_conv2d() and so on.
#define INF_OP_BEGIN(NAME, name, inputs_min, inputs_max, outputs, dtypes, doc)                     \
    enum inf_code inf_infer_##name(struct inf_infer *infer) INF_NODISCARD;
#define INF_ATTR_INT(op, field, initial, min, max, doc)
#define INF_ATTR_BOOL(op, field, initial, doc)
#define INF_ATTR_FLOAT(op, field, initial, doc)
#define INF_ATTR_ENUM(op, field, tag, initial, doc)
#define INF_ATTR_INTS(op, field, doc)
#define INF_OP_END(NAME, name)
#include "backends/graph/ops.def"

// Operand counts, indices and attribute ranges as ops.def has them; what every later step builds
// on.
enum inf_code inf_node_check(const struct inf_graph *graph, const struct inf_node *node,
                             struct inf_error *err) INF_NODISCARD;

// Infers one node into `infer` (its graph, node, dtypes, shapes and err are set), changing nothing
// else.
// inf_node_check() has passed.
enum inf_code inf_infer_run(struct inf_infer *infer) INF_NODISCARD;

// Checks the inputs' element types by the operator's rule and sets infer->dtype.
enum inf_code inf_infer_types(struct inf_infer *infer) INF_NODISCARD;

// Gives the subgraphs of a branch or loop node the types and shapes of its inputs, and infers them
// with `infer_graph`, which is inf_shape_infer(): handed in, because that function uses this one.
// Dimensions that a loop changes from one iteration to the next become unknown. Other nodes are
// left alone.
enum inf_code inf_infer_subgraphs(struct inf_graph *graph, uint32_t node,
                                  enum inf_code (*infer_graph)(struct inf_graph *graph,
                                                               struct inf_error *err),
                                  struct inf_error *err) INF_NODISCARD;

// Checks that the subgraphs of a branch or loop node take its inputs and give its outputs. True for
// other nodes.
enum inf_code inf_subgraphs_check(const struct inf_graph *graph, const struct inf_node *node,
                                  struct inf_error *err) INF_NODISCARD;

// Whether the optional input `index` is there.
bool inf_infer_has_input(const struct inf_infer *infer, uint32_t index);

// The shape of input `index`, which must be there.
const struct inf_shape *inf_infer_input(const struct inf_infer *infer, uint32_t index);

// Sets the shape of output `index`: refuses what is too large to be a tensor.
enum inf_code inf_infer_output(struct inf_infer *infer, uint32_t index,
                               const struct inf_shape *shape) INF_NODISCARD;

// The integers of an operand that is a constant list, or will be one.
struct inf_operand {
    bool known;    // values are there
    int64_t count; // how many, INF_DIM_UNKNOWN where that is not known either
    int64_t values[2 * INF_LIMIT_RANK];
};

// Reads the integer list at input `index`: `columns` 0 for shape [count], otherwise shape
// [count,columns]. More than INF_LIMIT_RANK rows are refused.
enum inf_code inf_infer_operand(struct inf_infer *infer, uint32_t index, int64_t columns,
                                struct inf_operand *operand) INF_NODISCARD;

// *value = the one integer of input `index`, a constant scalar or list of one; *known is false
// where it is not constant yet.
enum inf_code inf_infer_integer(struct inf_infer *infer, uint32_t index, int64_t *value,
                                bool *known) INF_NODISCARD;

// *shape = the shape that the list at input `index` means, as far as it is known; elements below
// `least` are refused.
enum inf_code inf_infer_listed(struct inf_infer *infer, uint32_t index, int64_t least,
                               struct inf_shape *shape, bool *known) INF_NODISCARD;

// *shape = input `index`, which must have rank 4; all dimensions unknown where its rank is.
enum inf_code inf_infer_image(struct inf_infer *infer, uint32_t index,
                              struct inf_shape *shape) INF_NODISCARD;

// *resolved = `axis` counted from the front, for tensors of `rank` dimensions. False out of range.
bool inf_axis_resolve(int64_t axis, int32_t rank, int32_t *resolved) INF_NODISCARD;

// Resolves a list of axes into a bit set; refuses repeated ones.
enum inf_code inf_infer_axes(struct inf_infer *infer, const struct inf_ints *axes, int32_t rank,
                             uint32_t *set) INF_NODISCARD;

// Joins what two shapes say of the same dimension; false where they differ.
bool inf_dim_merge(int64_t a, int64_t b, int64_t *merged) INF_NODISCARD;

// *product = a * b as a dimension, unknown where one of them is. False where it is too large.
bool inf_dim_product(int64_t a, int64_t b, int64_t *product) INF_NODISCARD;

// A window's attributes with `padding` not yet settled.
struct inf_window_attrs {
    enum inf_padding padding;
    int32_t stride[2], dilation[2]; // height, width
    int32_t pad_before[2], pad_after[2];
};

// The window attributes of a conv2d, depthwise_conv2d, conv2d_transpose, pool2d,
// dilation2d or qconv2d node.
struct inf_window_attrs inf_node_window_attrs(const struct inf_node *node);

// *output = how many windows of `kernel` taps of the node fit over `input` elements along axis 0
// (height) or 1 (width); unknown where one of them is.
enum inf_code inf_infer_window_count(struct inf_infer *infer, int axis, int64_t input,
                                     int64_t kernel, int64_t *output) INF_NODISCARD;

// *y = the shape of a product of matrices at inputs 0 and 1; unknown rank where one of theirs is.
enum inf_code inf_infer_product(struct inf_infer *infer, bool transpose_a, bool transpose_b,
                                struct inf_shape *y) INF_NODISCARD;

// Settles the window of `kernel` taps over `input` elements along axis 0 (height) or 1 (width).
// False where no window fits, or one is too large to be meant.
bool inf_window_resolve(const struct inf_window_attrs *attrs, int axis, int64_t input,
                        int64_t kernel, struct inf_window *window) INF_NODISCARD;

#endif
