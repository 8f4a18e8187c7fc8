// SPDX-License-Identifier: Apache-2.0
// Slices, as in TensorFlow's StridedSlice. The operands are "sparse": they have one position for
// each named axis, and an ellipsis stands for the other axes. First the positions are assigned to
// the input's axes, then each axis is resolved against its size.
#include "backends/graph/shape/rules.h"

// The range of indices that a slice takes from one axis of its input, as the model gives it.
struct axis_range {
    int64_t begin, end, stride;
    bool from_start, to_end; // from_start: begins at the first index; to_end: ends after the last
    bool drop;               // only index `begin` is taken, and the axis is dropped
};

struct spread {
    bool known;                             // the operands are constants
    int32_t rank;                           // rank of the input
    struct axis_range axes[INF_LIMIT_RANK]; // indexed by axis of the input
    int32_t out_rank;
    // for each axis of the output, the axis of the input; NEW_AXIS if there is none
    int32_t out_axes[INF_LIMIT_RANK];
};

#define NEW_AXIS (-1)

// Describes a failure: what was wrong, on which axis, and the wrong value. The caller composes the
// error message from it.
struct fault {
    const char *what;
    int32_t axis;
    long long value;
};

static bool fail_slice(struct fault *fault, const char *what, int32_t axis, int64_t value)
{
    *fault = (struct fault){.what = what, .axis = axis, .value = value};
    return false;
}

static bool has_bit(int32_t mask, int64_t position)
{
    return mask >> position & 1;
}

// The operands begin, end and stride of a slice as far as they are constants, and the number of
// elements (positions) in each.
struct operands {
    bool known;
    int64_t begin[INF_LIMIT_RANK], end[INF_LIMIT_RANK], stride[INF_LIMIT_RANK];
    int64_t count;
};

// Reads one operand and merges its length into `operands->count`.
static bool read_operand(const struct inf_graph *graph, uint32_t value, int64_t *elements,
                         struct operands *operands, struct fault *fault)
{
    const struct inf_shape *shape = &graph->values[value].shape;
    if (shape->rank >= 0) {
        if (shape->rank != 1)
            return fail_slice(fault, "an operand is no list: rank", 0, shape->rank);
        if (!inf_dim_merge(operands->count, shape->dims[0], &operands->count))
            return fail_slice(fault, "begin, end and stride differ in length: one has", 0,
                              shape->dims[0]);
        if (operands->count > INF_LIMIT_RANK)
            return fail_slice(fault, "too many positions:", 0, operands->count);
    }
    uint32_t count;
    if (!inf_graph_const_ints(graph, value, elements, INF_LIMIT_RANK, &count))
        operands->known = false;
    return true;
}

static bool read_operands(const struct inf_graph *graph, const struct inf_node *node,
                          struct operands *operands, struct fault *fault)
{
    *operands = (struct operands){.known = true, .count = INF_DIM_UNKNOWN};
    return read_operand(graph, node->inputs[1], operands->begin, operands, fault) &&
           read_operand(graph, node->inputs[2], operands->end, operands, fault) &&
           read_operand(graph, node->inputs[3], operands->stride, operands, fault);
}

static bool add_out_axis(struct spread *spread, int32_t axis, struct fault *fault)
{
    if (spread->out_rank == INF_LIMIT_RANK)
        return fail_slice(fault, "the result has too many axes: above", axis, INF_LIMIT_RANK);
    spread->out_axes[spread->out_rank++] = axis;
    return true;
}

// Takes the next `axes` axes of the input without slicing them. If the output then has too many
// axes, describes the failure in *fault and returns false.
static bool take_whole(struct spread *spread, int32_t *axis, int64_t axes, struct fault *fault)
{
    for (int64_t i = 0; i < axes && *axis < spread->rank; i++) {
        spread->axes[*axis] = (struct axis_range){.stride = 1, .from_start = true, .to_end = true};
        if (!add_out_axis(spread, (*axis)++, fault))
            return false;
    }
    return true;
}

// Applies element `at` of the operands begin, end and stride to the next axis of the input. If that
// is not possible, describes the failure in *fault and returns false.
static bool take_position(const struct inf_attrs_slice *attrs, const struct operands *operands,
                          int64_t at, struct spread *spread, int32_t *axis, struct fault *fault)
{
    if (*axis == spread->rank)
        return fail_slice(fault, "more positions than axes: rank", *axis, spread->rank);
    struct axis_range *range = &spread->axes[*axis];
    *range = (struct axis_range){.begin = operands->begin[at],
                                 .end = operands->end[at],
                                 .stride = operands->stride[at],
                                 .from_start = has_bit(attrs->begin_mask, at),
                                 .to_end = has_bit(attrs->end_mask, at),
                                 .drop = has_bit(attrs->shrink_axis_mask, at)};
    if (operands->known && range->stride == 0)
        return fail_slice(fault, "stride is", *axis, 0);
    if (operands->known && range->drop && range->stride < 0)
        return fail_slice(fault, "an axis is dropped at a negative stride:", *axis, range->stride);
    int32_t taken = (*axis)++;
    return range->drop || add_out_axis(spread, taken, fault);
}

// Returns the number of axes that the ellipsis at position `at` stands for, which is the number of
// input axes without a position.
static int64_t ellipsis_width(const struct inf_attrs_slice *attrs, int64_t count, int64_t at,
                              int32_t rank)
{
    int64_t named = 0;
    for (int64_t i = 0; i < count; i++)
        if (i != at && !has_bit(attrs->new_axis_mask, i))
            named++;
    return INF_MAX(rank - named, 0);
}

// Assigns the positions of the operands to the axes of an input of rank `rank`.
static bool spread_operands(const struct inf_attrs_slice *attrs, const struct operands *operands,
                            int32_t rank, struct spread *spread, struct fault *fault)
{
    *spread = (struct spread){.known = operands->known, .rank = rank};
    int32_t ellipsis = attrs->ellipsis_mask & ((1 << operands->count) - 1);
    if ((ellipsis & (ellipsis - 1)) != 0)
        return fail_slice(fault, "more than one ellipsis: mask", 0, ellipsis);
    int32_t axis = 0;
    for (int64_t i = 0; i < operands->count; i++) {
        bool done;
        if (has_bit(ellipsis, i))
            done =
                take_whole(spread, &axis, ellipsis_width(attrs, operands->count, i, rank), fault);
        else if (has_bit(attrs->new_axis_mask, i))
            done = add_out_axis(spread, NEW_AXIS, fault);
        else
            done = take_position(attrs, operands, i, spread, &axis, fault);
        if (!done)
            return false;
    }
    // The axes of the input that come after the last position of the operands are not sliced.
    return take_whole(spread, &axis, rank - axis, fault);
}

// Converts a position to an index of the axis. Negative positions count from the end; positions
// outside are clamped to the first or last index that `stride` can reach.
static int64_t clamp_position(int64_t position, int64_t dim, int64_t stride)
{
    int64_t low = stride > 0 ? 0 : -1;
    int64_t high = stride > 0 ? dim : dim - 1;
    if (position < 0)
        position += dim;
    return INF_MIN(INF_MAX(position, low), high);
}

// Resolves the range of one axis of size `dim`: its first index and the number of indices.
static bool settle_axis(const struct axis_range *range, int32_t axis, int64_t dim, int64_t *begin,
                        int64_t *count, struct fault *fault)
{
    if (range->drop) {
        *begin = range->begin < 0 ? range->begin + dim : range->begin;
        *count = 1;
        return (*begin >= 0 && *begin < dim) ||
               fail_slice(fault, "an index is out of range:", axis, range->begin);
    }
    bool up = range->stride > 0;
    int64_t first = clamp_position(range->begin, dim, range->stride);
    int64_t end = clamp_position(range->end, dim, range->stride);
    if (range->from_start)
        first = up ? 0 : dim - 1;
    if (range->to_end)
        end = up ? dim : -1;
    int64_t distance = end - first; // cannot overflow, because both are within the axis
    *begin = first;
    *count = 0;
    if (distance != 0 && (distance > 0) == up)
        *count = distance / range->stride + (distance % range->stride != 0);
    return true;
}

enum inf_code inf_infer_slice(struct inf_infer *infer)
{
    const struct inf_shape *x = inf_infer_input(infer, 0);
    struct operands operands;
    struct spread spread;
    struct fault fault = {0};
    bool fits = read_operands(infer->graph, infer->node, &operands, &fault);
    if (fits && (x->rank < 0 || operands.count == INF_DIM_UNKNOWN))
        return INF_OK;
    fits = fits && spread_operands(&infer->node->attrs.slice, &operands, x->rank, &spread, &fault);
    struct inf_shape sizes = *x; // sizes of the input's axes after slicing
    for (int32_t i = 0; fits && i < x->rank; i++) {
        const struct axis_range *range = &spread.axes[i];
        bool whole = range->stride == 1 && range->from_start && range->to_end && !range->drop;
        int64_t begin;
        if (whole || x->dims[i] == INF_DIM_UNKNOWN)
            continue;
        sizes.dims[i] = INF_DIM_UNKNOWN;
        if (spread.known)
            fits = settle_axis(range, i, x->dims[i], &begin, &sizes.dims[i], &fault);
    }
    if (!fits)
        return inf_shape_fault(infer, "axis %d: %s %lld", fault.axis, fault.what, fault.value);
    struct inf_shape y = {.rank = spread.out_rank};
    for (int32_t i = 0; i < y.rank; i++)
        y.dims[i] = spread.out_axes[i] == NEW_AXIS ? 1 : sizes.dims[spread.out_axes[i]];
    return inf_infer_output(infer, 0, &y);
}

bool inf_node_slice_plan(const struct inf_graph *graph, const struct inf_node *node,
                         struct inf_slice_plan *plan)
{
    const struct inf_shape *x = &graph->values[node->inputs[0]].shape;
    struct operands operands;
    struct spread spread;
    struct fault fault;
    if (!inf_shape_known(x) || !read_operands(graph, node, &operands, &fault) || !operands.known ||
        !spread_operands(&node->attrs.slice, &operands, x->rank, &spread, &fault))
        return false;
    *plan = (struct inf_slice_plan){.rank = x->rank};
    for (int32_t i = 0; i < x->rank; i++) {
        plan->stride[i] = spread.axes[i].stride;
        if (!settle_axis(&spread.axes[i], i, x->dims[i], &plan->begin[i], &plan->count[i], &fault))
            return false;
    }
    return true;
}
