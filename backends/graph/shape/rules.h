// SPDX-License-Identifier: Apache-2.0
// Private to shape inference: helpers that the files of the operator families share.
#ifndef INF_BACKENDS_GRAPH_SHAPE_RULES_H
#define INF_BACKENDS_GRAPH_SHAPE_RULES_H

#include "backends/graph/graph.h"
#include "backends/graph/shape/infer.h"

// The state of inferring one node. inf_node_check() has checked the operand counts and attributes
// before a shape function is called; shape functions check everything else.
struct inf_infer {
    const struct inf_graph *graph;
    const struct inf_node *node;
    // element type of the outputs, determined by the operator's INF_TYPES_* rule
    enum inf_dtype dtype;
    enum inf_dtype *dtypes;   // type of each output; initially `dtype`
    struct inf_shape *shapes; // shape of each output; initially of unknown rank
    struct inf_error *err;
};

// Fails because the shapes of a node do not fit. The caller prefixes the text with the node's name.
#define inf_shape_fault(infer, ...)                                                                \
    inf_fail_reason((infer)->err, INF_INVALID, INF_REASON_SHAPE_MISMATCH, __VA_ARGS__)

// One shape function per operator: inf_infer_conv2d() and so on.
#define INF_OP_BEGIN(NAME, name, inputs_min, inputs_max, outputs, dtypes, doc)                     \
    enum inf_code inf_infer_##name(struct inf_infer *infer) INF_NODISCARD;
#define INF_ATTR_INT(op, field, initial, min, max, doc)
#define INF_ATTR_BOOL(op, field, initial, doc)
#define INF_ATTR_FLOAT(op, field, initial, doc)
#define INF_ATTR_ENUM(op, field, tag, initial, doc)
#define INF_ATTR_INTS(op, field, doc)
#define INF_OP_END(NAME, name)
#include "backends/graph/ops.def"

// Checks operand counts, indices and attribute ranges against ops.def. All later steps rely on it.
enum inf_code inf_node_check(const struct inf_graph *graph, const struct inf_node *node,
                             struct inf_error *err) INF_NODISCARD;

// Infers one node, and stores the results in `infer` only (its graph, node, dtypes, shapes and err
// must be set). inf_node_check() must have succeeded.
enum inf_code inf_infer_run(struct inf_infer *infer) INF_NODISCARD;

// Checks the inputs' element types by the operator's rule and sets infer->dtype.
enum inf_code inf_infer_types(struct inf_infer *infer) INF_NODISCARD;

// Gives the subgraphs of a branch or loop node the types and shapes of its inputs, and infers the
// subgraphs with `infer_graph`. The callback is always inf_shape_infer(), and it is a parameter
// only because inf_shape_infer() calls this function. Dimensions that a loop changes between
// iterations become unknown. Does nothing for other nodes.
enum inf_code inf_infer_subgraphs(struct inf_graph *graph, uint32_t node,
                                  enum inf_code (*infer_graph)(struct inf_graph *graph,
                                                               struct inf_error *err),
                                  struct inf_error *err) INF_NODISCARD;

// Checks that the subgraphs of a branch or loop node accept its inputs and produce its outputs.
// Succeeds for other nodes.
enum inf_code inf_subgraphs_check(const struct inf_graph *graph, const struct inf_node *node,
                                  struct inf_error *err) INF_NODISCARD;

// Returns true if the optional input `index` is present.
bool inf_infer_has_input(const struct inf_infer *infer, uint32_t index);

// Returns the shape of input `index`, which must be present.
const struct inf_shape *inf_infer_input(const struct inf_infer *infer, uint32_t index);

// Sets the shape of output `index`; fails if it is too large for a tensor.
enum inf_code inf_infer_output(struct inf_infer *infer, uint32_t index,
                               const struct inf_shape *shape) INF_NODISCARD;

// The integer list that an operator reads from one of its inputs, such as axes or sizes. The
// elements are known only if the input is a constant. Folding may turn an input into a constant
// later.
struct inf_operand {
    bool known;    // true if the elements are known
    int64_t count; // number of elements; INF_DIM_UNKNOWN if not known
    int64_t values[2 * INF_LIMIT_RANK];
};

// Reads the integer list at input `index`. The operand's shape is [count] if `columns` is 0, else
// [count,columns]. Fails for more than INF_LIMIT_RANK rows.
enum inf_code inf_infer_operand(struct inf_infer *infer, uint32_t index, int64_t columns,
                                struct inf_operand *operand) INF_NODISCARD;

// Reads the only integer of input `index`, a scalar or a list of one element, into *value. *known
// is false if the input is not constant yet.
enum inf_code inf_infer_integer(struct inf_infer *infer, uint32_t index, int64_t *value,
                                bool *known) INF_NODISCARD;

// Sets *shape from the list at input `index`, as far as the list is known. Fails if an element is
// below `least`.
enum inf_code inf_infer_listed(struct inf_infer *infer, uint32_t index, int64_t least,
                               struct inf_shape *shape, bool *known) INF_NODISCARD;

// Sets the dimensions of *shape whose elements in the list at input `index` are known, although the
// list is not a constant yet. An example is a concatenation of constants and of sizes that are
// known only at run time. The other dimensions of *shape, and its rank, keep their values.
void inf_infer_partial(const struct inf_infer *infer, uint32_t index, struct inf_shape *shape);

// Sets *shape to the shape of input `index`, which must have rank 4. If the rank is unknown, all
// dimensions are unknown.
enum inf_code inf_infer_image(struct inf_infer *infer, uint32_t index,
                              struct inf_shape *shape) INF_NODISCARD;

// Converts `axis`, which may count from the end, to 0..rank-1. Returns false if it is out of range.
bool inf_axis_resolve(int64_t axis, int32_t rank, int32_t *resolved) INF_NODISCARD;

// Resolves a list of axes into a bit set; fails for repeated axes.
enum inf_code inf_infer_axes(struct inf_infer *infer, const struct inf_ints *axes, int32_t rank,
                             uint32_t *set) INF_NODISCARD;

// Merges two values of one dimension, either of which may be unknown. Returns false if both are
// known and differ.
bool inf_dim_merge(int64_t a, int64_t b, int64_t *merged) INF_NODISCARD;

// Sets *product to a * b, or to unknown if a or b is unknown. Returns false if the product is too
// large for a dimension.
bool inf_dim_product(int64_t a, int64_t b, int64_t *product) INF_NODISCARD;

// A window's attributes, before `padding` is resolved.
struct inf_window_attrs {
    enum inf_padding padding;
    int32_t stride[2], dilation[2]; // for height and width
    int32_t pad_before[2], pad_after[2];
};

// Returns the window attributes of a conv2d, depthwise_conv2d, conv2d_transpose, pool2d, dilation2d
// or qconv2d node.
struct inf_window_attrs inf_node_window_attrs(const struct inf_node *node);

// Sets *output to the number of windows of `kernel` taps that fit over `input` elements along axis
// 0 (height) or 1 (width). *output is unknown if `kernel` or `input` is unknown.
enum inf_code inf_infer_window_count(struct inf_infer *infer, int axis, int64_t input,
                                     int64_t kernel, int64_t *output) INF_NODISCARD;

// Sets *y to the shape of the matrix product of inputs 0 and 1. The rank of *y is unknown if the
// rank of input 0 or of input 1 is unknown.
enum inf_code inf_infer_product(struct inf_infer *infer, bool transpose_a, bool transpose_b,
                                struct inf_shape *y) INF_NODISCARD;

// Resolves the window of `kernel` taps over `input` elements along axis 0 (height) or 1 (width).
// Returns false if no window fits, or if a size is unreasonably large.
bool inf_window_resolve(const struct inf_window_attrs *attrs, int axis, int64_t input,
                        int64_t kernel, struct inf_window *window) INF_NODISCARD;

#endif
