// SPDX-License-Identifier: Apache-2.0
// The kernels of the reference device: one function per operator, named inf_ref_<operator>, and
// shared helpers. A kernel reads its node's attributes and operands and writes the outputs. It
// allocates nothing and keeps no state.
#ifndef INF_BACKENDS_REF_KERNELS_H
#define INF_BACKENDS_REF_KERNELS_H

#include "backends/base/cancel.h"
#include "backends/graph/graph.h"
#include "backends/ref/element.h"

// A call of a kernel: the node and its operands.
struct inf_ref_call {
    const struct inf_graph *graph;
    const struct inf_node *node;
    const struct inf_ref_tensor *inputs;  // node->input_count elements
    const struct inf_ref_tensor *outputs; // node->output_count elements
    struct inf_strings strings;           // the strings to which elements of BYTES refer
    const atomic_bool *cancelled; // polled by kernels that may run long; NULL: not cancellable
};

// The kernel of one operator.
struct inf_ref_kernel {
    enum inf_code (*run)(const struct inf_ref_call *call, struct inf_error *err);
    const char *name; // for profiles: "ref_conv2d"
};

// Returns the kernel of `op`, which must be below INF_OP_COUNT. Static, never NULL: if an operator
// of ops.def had none, the program would not link.
const struct inf_ref_kernel *inf_ref_kernel_find(enum inf_op op);

// Computes an operator as ops.def defines it. Fails with INF_INVALID if the operator does not
// accept a value. The error text names neither node nor operator; the caller adds both.
#define INF_OP_BEGIN(NAME, name, inputs_min, inputs_max, outputs, dtypes, doc)                     \
    enum inf_code inf_ref_##name(const struct inf_ref_call *call, struct inf_error *err)           \
        INF_NODISCARD;
#define INF_ATTR_INT(op, field, initial, min, max, doc)
#define INF_ATTR_BOOL(op, field, initial, doc)
#define INF_ATTR_FLOAT(op, field, initial, doc)
#define INF_ATTR_ENUM(op, field, tag, initial, doc)
#define INF_ATTR_INTS(op, field, doc)
#define INF_OP_END(NAME, name)
#include "backends/graph/ops.def"

// The activation function that is fused into a node, and its parameters.
struct inf_ref_activation {
    enum inf_activation kind;
    double alpha, min, max; // parameters of the activation; valid only if its kind uses them
};

// Returns the activation of a node. The returned kind is `none` if the operator has no activation
// attribute.
struct inf_ref_activation inf_ref_node_activation(const struct inf_node *node);

// Returns `value` after the activation; `prelu_alpha` is the slope of kind prelu.
double inf_ref_activate(const struct inf_ref_activation *activation, double value,
                        double prelu_alpha);

// Returns kind(x) of a unary node. Fused activations are computed with this function too.
double inf_ref_unary_value(enum inf_unary_kind kind, double x, double alpha, double beta);

// Splits `walk` into two walks: `go` visits the axes that `axes` lists, and `stay` visits the other
// axes. Both keep the strides of every operand. A negative axis counts from the end, and an empty
// list means all axes.
void inf_ref_walk_split(const struct inf_ref_walk *walk, const struct inf_ints *axes,
                        struct inf_ref_walk *stay, struct inf_ref_walk *go);

// Reads index number `i` of an i32 or i64 tensor exactly once, through volatile. A client may still
// write to the memory of the indices, so a second read could return a value that was not checked.
static inline int64_t inf_ref_index(const struct inf_ref_tensor *indices, size_t i)
{
    if (indices->dtype == INF_DTYPE_I64)
        return ((const volatile int64_t *)indices->data)[i];
    return ((const volatile int32_t *)indices->data)[i];
}

// Returns true if *index is in [0, bound). If `from_end` is true, a negative index first becomes
// *index + bound.
static inline bool inf_ref_index_ok(int64_t *index, int64_t bound, bool from_end)
{
    if (from_end && *index < 0)
        *index += bound;
    return *index >= 0 && *index < bound;
}

// Fails if the run was cancelled. Kernels whose work grows faster than their operands call it in an
// outer loop, because one of them may take minutes.
//
// INF_CANCELLED
static inline enum inf_code inf_ref_check_cancelled(const struct inf_ref_call *call,
                                                    struct inf_error *err)
{
    if (inf_is_cancelled(call->cancelled))
        return inf_fail(err, INF_CANCELLED, "cancelled while it was computed");
    return INF_OK;
}

// Returns an axis attribute as 0..rank-1. A negative axis counts from the end.
static inline int32_t inf_ref_axis(int64_t axis, int32_t rank)
{
    return (int32_t)(axis < 0 ? axis + rank : axis);
}

// Returns the product of dims[first] .. dims[last - 1].
static inline size_t inf_ref_extent(const struct inf_shape *shape, int32_t first, int32_t last)
{
    size_t product = 1;
    for (int32_t i = first; i < last; i++)
        product *= (size_t)shape->dims[i];
    return product;
}

// Returns true if input `index` of the node is present.
static inline bool inf_ref_has_input(const struct inf_ref_call *call, uint32_t index)
{
    return index < call->node->input_count && call->node->inputs[index] != INF_VALUE_NONE;
}

#endif
