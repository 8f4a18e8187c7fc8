// SPDX-License-Identifier: Apache-2.0
// Shapes of element-wise operators and reductions.
#include "backends/graph/shape/rules.h"

static enum inf_code same_shape(struct inf_infer *infer)
{
    return inf_infer_output(infer, 0, inf_infer_input(infer, 0));
}

enum inf_code inf_infer_unary(struct inf_infer *infer)
{
    return same_shape(infer);
}

enum inf_code inf_infer_clip(struct inf_infer *infer)
{
    return same_shape(infer);
}

enum inf_code inf_infer_cast(struct inf_infer *infer)
{
    return same_shape(infer);
}

// 16-bit floats are refused, because devices may compute them in wider types. Elements of BYTES are
// handles, which no value of a client may become.
static bool has_fixed_bits(enum inf_dtype dtype)
{
    return dtype != INF_DTYPE_F16 && dtype != INF_DTYPE_BF16 && dtype != INF_DTYPE_BYTES;
}

enum inf_code inf_infer_bitcast(struct inf_infer *infer)
{
    enum inf_dtype from = infer->graph->values[infer->node->inputs[0]].dtype, to = infer->dtype;
    if (inf_dtype_size(from) != inf_dtype_size(to) || !has_fixed_bits(from) || !has_fixed_bits(to))
        return inf_fail_reason(infer->err, INF_INVALID, INF_REASON_DTYPE_MISMATCH,
                               "the bits of %s are not those of %s", inf_dtype_name(from),
                               inf_dtype_name(to));
    return same_shape(infer);
}

static enum inf_code broadcast_inputs(struct inf_infer *infer)
{
    struct inf_shape shape = {0};
    for (uint32_t i = 0; i < infer->node->input_count; i++) {
        const struct inf_shape *input = inf_infer_input(infer, i);
        struct inf_shape joined;
        if (!inf_shape_broadcast(&shape, input, &joined)) {
            char a[INF_SHAPE_TEXT_SIZE];
            char b[INF_SHAPE_TEXT_SIZE];
            return inf_shape_fault(infer, "shapes %s and %s do not broadcast",
                                   inf_shape_print(&shape, a), inf_shape_print(input, b));
        }
        shape = joined;
    }
    return inf_infer_output(infer, 0, &shape);
}

enum inf_code inf_infer_binary(struct inf_infer *infer)
{
    const struct inf_attrs_binary *attrs = &infer->node->attrs.binary;
    if (attrs->activation > INF_ACTIVATION_CLIP)
        return inf_fail(infer->err, INF_INVALID,
                        "activation is %s, wanted none, relu, relu6 or clip",
                        inf_activation_name(attrs->activation));
    return broadcast_inputs(infer);
}

enum inf_code inf_infer_compare(struct inf_infer *infer)
{
    return broadcast_inputs(infer);
}

enum inf_code inf_infer_select(struct inf_infer *infer)
{
    return broadcast_inputs(infer);
}

enum inf_code inf_infer_prelu(struct inf_infer *infer)
{
    const struct inf_shape *x = inf_infer_input(infer, 0);
    const struct inf_shape *alpha = inf_infer_input(infer, 1);
    if (x->rank < 0 || alpha->rank < 0)
        return inf_infer_output(infer, 0, x);
    struct inf_shape joined;
    bool fits = inf_shape_broadcast(x, alpha, &joined) && joined.rank == x->rank;
    for (int32_t i = 0; fits && i < x->rank; i++) {
        // Broadcasting may extend alpha, but must not extend x.
        if (x->dims[i] == 1 && joined.dims[i] > 1)
            fits = false;
        if (x->dims[i] >= 0)
            joined.dims[i] = x->dims[i];
    }
    if (!fits) {
        char a[INF_SHAPE_TEXT_SIZE];
        char b[INF_SHAPE_TEXT_SIZE];
        return inf_shape_fault(infer, "alpha of shape %s does not broadcast to %s",
                               inf_shape_print(alpha, a), inf_shape_print(x, b));
    }
    return inf_infer_output(infer, 0, &joined);
}

// Returns the shape without the axes in `set`, or with these axes reduced to size 1.
static struct inf_shape reduce_shape(const struct inf_shape *x, uint32_t set, bool keep_dims)
{
    struct inf_shape shape = {0};
    for (int32_t i = 0; i < x->rank; i++) {
        if (!(set & 1u << i))
            shape.dims[shape.rank++] = x->dims[i];
        else if (keep_dims)
            shape.dims[shape.rank++] = 1;
    }
    return shape;
}

enum inf_code inf_infer_reduce(struct inf_infer *infer)
{
    const struct inf_attrs_reduce *attrs = &infer->node->attrs.reduce;
    const struct inf_shape *x = inf_infer_input(infer, 0);
    if (x->rank < 0) {
        bool scalar = attrs->axes.count == 0 && !attrs->keep_dims;
        return inf_infer_output(infer, 0, scalar ? &(struct inf_shape){0} : x);
    }
    uint32_t set;
    INF_TRY(inf_infer_axes(infer, &attrs->axes, x->rank, &set));
    if (attrs->axes.count == 0)
        set = UINT32_MAX;
    struct inf_shape shape = reduce_shape(x, set, attrs->keep_dims);
    return inf_infer_output(infer, 0, &shape);
}

enum inf_code inf_infer_arg(struct inf_infer *infer)
{
    const struct inf_attrs_arg *attrs = &infer->node->attrs.arg;
    const struct inf_shape *x = inf_infer_input(infer, 0);
    if (x->rank < 0)
        return inf_infer_output(infer, 0, x);
    int32_t axis;
    if (!inf_axis_resolve(attrs->axis, x->rank, &axis))
        return inf_shape_fault(infer, "axis %d is out of range for rank %d", attrs->axis, x->rank);
    if (x->dims[axis] == 0)
        return inf_shape_fault(infer, "axis %d is empty: there is no extreme", axis);
    struct inf_shape shape = reduce_shape(x, 1u << axis, attrs->keep_dims);
    return inf_infer_output(infer, 0, &shape);
}

enum inf_code inf_infer_softmax(struct inf_infer *infer)
{
    const struct inf_shape *x = inf_infer_input(infer, 0);
    int32_t axis;
    if (x->rank >= 0 && !inf_axis_resolve(infer->node->attrs.softmax.axis, x->rank, &axis))
        return inf_shape_fault(infer, "axis %d is out of range for rank %d",
                               infer->node->attrs.softmax.axis, x->rank);
    return same_shape(infer);
}
