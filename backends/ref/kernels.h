// SPDX-License-Identifier: Apache-2.0
// The kernels of the reference device: one function an operator, named inf_ref_<operator>, and what
// they share. A kernel reads its node's attributes and its operands' bytes and writes the outputs;
// it allocates nothing and keeps nothing.
#ifndef INF_BACKENDS_REF_KERNELS_H
#define INF_BACKENDS_REF_KERNELS_H

#include "backends/graph/graph.h"
#include "backends/ref/element.h"

// One node at the moment it runs.
struct inf_ref_call {
    const struct inf_graph *graph;
    const struct inf_node *node;
    const struct inf_ref_tensor *inputs;  // node->input_count
    const struct inf_ref_tensor *outputs; // node->output_count
};

// How one operator is computed.
struct inf_ref_kernel {
    enum inf_code (*run)(const struct inf_ref_call *call, struct inf_error *err);
    const char *name; // for profiles: "ref_conv2d"
};

// The kernel of `op`, which must be below INF_OP_COUNT. Static, never NULL: every operator of
// ops.def has one, or the program does not link.
const struct inf_ref_kernel *inf_ref_kernel_find(enum inf_op op);

// Computes ops.def's operators as that file says. Fails with INF_INVALID where a value makes no
// sense to the operator; the text names neither node nor operator, the caller puts them in front.
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

// An activation fused into a node.
struct inf_ref_activation {
    enum inf_activation kind;
    double alpha, min, max; // for the kinds that have them
};

// The activation of a node whose operator has one (kind none for other operators).
struct inf_ref_activation inf_ref_node_activation(const struct inf_node *node);

// `value` after the activation; `prelu_alpha` is the slope of kind prelu.
double inf_ref_activate(const struct inf_ref_activation *activation, double value,
                        double prelu_alpha);

// kind(x) of a unary node; also what the activations are made of.
double inf_ref_unary_value(enum inf_unary_kind kind, double x, double alpha, double beta);

// Splits the axes of `walk` into those that stay and those that `axes` (of a tensor of as many
// axes; negative ones from the end, empty: all) names, with the strides of every operand.
void inf_ref_walk_split(const struct inf_ref_walk *walk, const struct inf_ints *axes,
                        struct inf_ref_walk *stay, struct inf_ref_walk *go);

// Index number `i` of a tensor of i32 or i64, read once and through volatile: indices may lie in
// memory that a client still writes, and what was checked must be what is used.
static inline int64_t inf_ref_index(const struct inf_ref_tensor *indices, size_t i)
{
    if (indices->dtype == INF_DTYPE_I64)
        return ((const volatile int64_t *)indices->data)[i];
    return ((const volatile int32_t *)indices->data)[i];
}

// Whether *index is in [0, bound), after negative ones were counted from the end where `from_end`.
static inline bool inf_ref_index_ok(int64_t *index, int64_t bound, bool from_end)
{
    if (from_end && *index < 0)
        *index += bound;
    return *index >= 0 && *index < bound;
}

// An axis attribute, negative ones counted from the end of `rank` axes.
static inline int32_t inf_ref_axis(int64_t axis, int32_t rank)
{
    return (int32_t)(axis < 0 ? axis + rank : axis);
}

// The product of dims[first] .. dims[last - 1].
static inline size_t inf_ref_extent(const struct inf_shape *shape, int32_t first, int32_t last)
{
    size_t product = 1;
    for (int32_t i = first; i < last; i++)
        product *= (size_t)shape->dims[i];
    return product;
}

// Whether input `index` of the node is there (optional ones may be left out).
static inline bool inf_ref_has_input(const struct inf_ref_call *call, uint32_t index)
{
    return index < call->node->input_count && call->node->inputs[index] != INF_VALUE_NONE;
}

#endif
