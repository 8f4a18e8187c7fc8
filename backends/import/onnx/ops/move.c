// SPDX-License-Identifier: Apache-2.0
// Operators that move elements: transpose, join, split, slice, pad, and blocks of space and depth.
#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/op_table.h"
#include "backends/import/onnx/ops/axes.h"
#include "backends/import/onnx/ops/block_weights.h"

static void lower_transpose(struct inf_onnx_scope *s)
{
    struct inf_build_ints perm;
    int32_t rank = inf_build_rank(&s->b, s->inputs[0]);
    bool seen[INF_LIMIT_RANK] = {false};
    if (!inf_onnx_attr_ints(s, "perm", &perm) || (perm.count == 0 && rank == 0)) {
        perm.count = (uint32_t)rank;
        for (int32_t i = 0; i < rank; i++)
            perm.values[i] = rank - 1 - i;
    }
    if (perm.count != (uint32_t)rank)
        inf_build_fail(&s->b, INF_INVALID, "perm has %u axes, x has rank %d", perm.count, rank);
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < perm.count; i++) {
        perm.values[i] = inf_build_axis(&s->b, perm.values[i], rank);
        if (seen[perm.values[i]])
            inf_build_fail(&s->b, INF_INVALID, "perm has axis %lld twice",
                           (long long)perm.values[i]);
        seen[perm.values[i]] = true;
    }
    s->outputs[0] = inf_build_transpose(&s->b, s->inputs[0], perm.values, rank);
    if (rank == 2 && perm.values[0] == 1)
        inf_onnx_blocks_transpose(s, s->inputs[0], s->outputs[0]);
}

static void lower_concat(struct inf_onnx_scope *s)
{
    if (s->opset >= 4 && !inf_onnx_has_attr(s, "axis"))
        inf_build_fail(&s->b, INF_INVALID, "lacks attribute 'axis'");
    int32_t axis =
        inf_build_axis(&s->b, inf_onnx_attr_int(s, "axis", 1), inf_build_rank(&s->b, s->inputs[0]));
    s->outputs[0] = inf_build_concat(&s->b, s->inputs, s->input_count, axis);
}

// Reads the sizes of the parts of a split from a list. Without a list, the parts are as equal as
// possible.
static struct inf_build_ints read_sizes(struct inf_onnx_scope *s, int32_t axis, bool *listed)
{
    struct inf_build_ints sizes = {.count = 0};
    *listed = s->opset < 13 ? inf_onnx_attr_ints(s, "split", &sizes)
                            : inf_onnx_input(s, 1) != INF_VALUE_NONE;
    if (*listed && s->opset >= 13)
        sizes = inf_build_const_ints(&s->b, s->inputs[1], "split");
    if (*listed)
        return sizes;
    int32_t count = (int32_t)s->output_count;
    if (s->opset >= 18)
        count = inf_onnx_attr_int(s, "num_outputs", count);
    if (count != (int32_t)s->output_count || count > INF_BUILD_INTS_MAX)
        inf_build_fail(&s->b, INF_INVALID, "num_outputs is %d, the node has %u", count,
                       s->output_count);
    int64_t size = inf_build_dim(&s->b, s->inputs[0], axis);
    if (!inf_build_ok(&s->b) || size == INF_DIM_UNKNOWN || size % count == 0)
        return sizes;
    // Round the size of a part up, so that only the last part is smaller.
    int64_t part = (size + count - 1) / count;
    for (int32_t i = 0; i < count; i++) {
        sizes.values[sizes.count++] = INF_MIN(part, size);
        size -= INF_MIN(part, size);
    }
    *listed = true;
    return sizes;
}

static void lower_split(struct inf_onnx_scope *s)
{
    bool listed;
    int32_t axis =
        inf_build_axis(&s->b, inf_onnx_attr_int(s, "axis", 0), inf_build_rank(&s->b, s->inputs[0]));
    uint32_t given = s->opset < 13 ? INF_VALUE_NONE : inf_onnx_input(s, 1);
    uint32_t inputs[] = {s->inputs[0], INF_VALUE_NONE};
    int64_t count = s->output_count;
    if (given != INF_VALUE_NONE && !inf_build_is_const(&s->b, given)) {
        inputs[1] = inf_onnx_axes_clamp(s, given); // a run computes the sizes
        count = inf_build_known_dim(&s->b, given, 0);
    } else {
        struct inf_build_ints sizes = read_sizes(s, axis, &listed);
        if (listed) {
            count = sizes.count;
            inputs[1] = inf_build_list(&s->b, sizes.values, sizes.count);
        }
    }
    if (inf_build_ok(&s->b) && count != s->output_count)
        inf_build_fail(&s->b, INF_INVALID, "has %u outputs and %lld sizes", s->output_count,
                       (long long)count);
    struct inf_build_node node =
        inf_build_describe_list(INF_OP_SPLIT, inputs, inputs[1] != INF_VALUE_NONE ? 2 : 1);
    node.attrs.split.axis = axis;
    node.output_count = s->output_count;
    inf_build_emit(&s->b, &node, s->outputs);
}

// --- operator Slice ---

// Extends a list of begins, ends or steps for some axes to a list for every axis of x.
static uint32_t expand_to_all_axes(struct inf_onnx_scope *s, uint32_t listed,
                                   const struct inf_build_ints *axes, int32_t rank,
                                   int64_t fallback)
{
    uint32_t parts[INF_LIMIT_RANK];
    if (listed == INF_VALUE_NONE || inf_build_is_const(&s->b, listed)) {
        int64_t values[INF_LIMIT_RANK];
        struct inf_build_ints ints = {.count = 0};
        if (listed != INF_VALUE_NONE)
            ints = inf_build_const_ints(&s->b, listed, "a position");
        for (int32_t i = 0; i < rank; i++)
            values[i] = fallback;
        for (uint32_t i = 0; i < axes->count && i < ints.count; i++)
            values[axes->values[i]] = ints.values[i];
        return inf_build_list(&s->b, values, (uint32_t)rank);
    }
    // The list is computed at run time. Clamp it to int32, because positions are far below that
    // limit and larger numbers mean "to the end".
    uint32_t clamped = inf_onnx_axes_clamp(s, listed);
    for (int32_t i = 0; i < rank; i++)
        parts[i] = inf_build_list(&s->b, &fallback, 1);
    for (uint32_t i = 0; i < axes->count; i++)
        parts[axes->values[i]] = inf_build_slice(&s->b, clamped, 0, (int64_t)i, (int64_t)i + 1, 1);
    return inf_build_concat(&s->b, parts, (uint32_t)rank, 0);
}

// Reads the axes of a slice: from a list, or the first axes.
static struct inf_build_ints read_slice_axes(struct inf_onnx_scope *s, uint32_t starts,
                                             uint32_t axes, int32_t rank)
{
    struct inf_build_ints result = {.count = 0};
    if (axes != INF_VALUE_NONE) {
        result = inf_build_const_ints(&s->b, axes, "axes");
    } else {
        result.count = (uint32_t)inf_build_known_dim(&s->b, starts, 0);
        for (uint32_t i = 0; i < result.count && i < INF_LIMIT_RANK; i++)
            result.values[i] = i;
    }
    if (result.count > (uint32_t)rank)
        inf_build_fail(&s->b, INF_INVALID, "slices %u axes of %d", result.count, rank);
    if (inf_build_ok(&s->b) && inf_build_known_dim(&s->b, starts, 0) != result.count)
        inf_build_fail(&s->b, INF_INVALID, "has %lld starts and %u axes",
                       (long long)inf_build_known_dim(&s->b, starts, 0), result.count);
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < result.count; i++)
        result.values[i] = inf_build_axis(&s->b, result.values[i], rank);
    if (!inf_build_ok(&s->b))
        result.count = 0;
    return result;
}

static uint32_t read_list_attribute(struct inf_onnx_scope *s, const char *name)
{
    struct inf_build_ints ints;
    return inf_onnx_attr_ints(s, name, &ints) ? inf_build_list(&s->b, ints.values, ints.count)
                                              : INF_VALUE_NONE;
}

// Adds a slice whose axes a run computes. Axes that are not listed begin at 0 and have no end.
static uint32_t add_computed_slice(struct inf_onnx_scope *s, uint32_t starts, uint32_t ends,
                                   uint32_t steps)
{
    int32_t rank = inf_build_rank(&s->b, s->inputs[0]);
    uint32_t axes = s->inputs[3];
    const struct inf_build_ints no_axes = {.count = 0};
    const uint32_t inputs[] = {s->inputs[0], inf_onnx_axes_spread(s, axes, starts, rank, 0),
                               inf_onnx_axes_spread(s, axes, ends, rank, INT32_MAX),
                               steps == INF_VALUE_NONE
                                   ? expand_to_all_axes(s, INF_VALUE_NONE, &no_axes, rank, 1)
                                   : inf_onnx_axes_spread(s, axes, steps, rank, 1)};
    struct inf_build_node node = inf_build_describe_list(INF_OP_SLICE, inputs, 4);
    return inf_build_value(&s->b, &node);
}

static void lower_slice(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0];
    bool old = s->opset < 10;
    uint32_t starts = old ? read_list_attribute(s, "starts") : inf_onnx_input(s, 1);
    uint32_t ends = old ? read_list_attribute(s, "ends") : inf_onnx_input(s, 2);
    uint32_t axes_value = old ? read_list_attribute(s, "axes") : inf_onnx_input(s, 3);
    uint32_t steps = old ? INF_VALUE_NONE : inf_onnx_input(s, 4);
    int32_t rank = inf_build_rank(&s->b, x);
    if (starts == INF_VALUE_NONE || ends == INF_VALUE_NONE) {
        inf_build_fail(&s->b, INF_INVALID, "lacks starts or ends");
        return;
    }
    if (!old && inf_onnx_axes_computed(s, 3)) {
        s->outputs[0] = add_computed_slice(s, starts, ends, steps);
        return;
    }
    struct inf_build_ints axes = read_slice_axes(s, starts, axes_value, rank);
    const uint32_t inputs[] = {x, expand_to_all_axes(s, starts, &axes, rank, 0),
                               expand_to_all_axes(s, ends, &axes, rank, 0),
                               expand_to_all_axes(s, steps, &axes, rank, 1)};
    struct inf_build_node node = inf_build_describe_list(INF_OP_SLICE, inputs, 4);
    int32_t others = (1 << rank) - 1;
    for (uint32_t i = 0; i < axes.count; i++)
        others &= ~(1 << axes.values[i]);
    node.attrs.slice.begin_mask = node.attrs.slice.end_mask = others;
    s->outputs[0] = rank == 0 ? x : inf_build_value(&s->b, &node);
}

// --- operators that pad ---

static enum inf_pad_mode read_pad_mode(struct inf_onnx_scope *s, const char *mode)
{
    if (strcmp(mode, "constant") == 0)
        return INF_PAD_CONSTANT;
    if (strcmp(mode, "reflect") == 0)
        return INF_PAD_REFLECT;
    if (strcmp(mode, "edge") == 0)
        return INF_PAD_EDGE;
    inf_build_fail(&s->b, INF_UNSUPPORTED, "mode is '%.20s'", mode);
    return INF_PAD_CONSTANT;
}

// Pads one axis periodically: the end of x is placed before it, the beginning of x after it. The
// amounts are i32 scalars. A negative amount cuts elements off.
static uint32_t pad_periodically(struct inf_onnx_scope *s, uint32_t x, int32_t axis,
                                 uint32_t before, uint32_t after)
{
    struct inf_builder *b = &s->b;
    uint32_t none = inf_build_scalar(b, INF_DTYPE_I32, 0);
    uint32_t size = inf_build_reshape(b, inf_build_dim_value(b, x, axis), NULL, 0);
    uint32_t total = inf_build_add(b, inf_build_add(b, size, before), after);
    uint32_t cut_before = inf_build_binary(b, INF_BINARY_MIN, before, none);
    uint32_t cut_after = inf_build_binary(b, INF_BINARY_MIN, after, none);
    uint32_t left = inf_build_add(b, inf_build_add(b, size, cut_before), cut_after);
    uint32_t indices = inf_build_sub(b, inf_build_range(b, total),
                                     inf_build_binary(b, INF_BINARY_MAX, before, none));
    indices = inf_build_binary(b, INF_BINARY_FLOOR_MOD, indices, left);
    return inf_build_gather(b, x, inf_build_sub(b, indices, cut_before), axis);
}

// Pads every axis of x periodically. `pads` is i32 [2 * rank], first all before, then all after.
static uint32_t pad_all_periodically(struct inf_onnx_scope *s, uint32_t x, uint32_t pads)
{
    int32_t rank = inf_build_rank(&s->b, x);
    for (int32_t i = 0; i < rank; i++) {
        uint32_t amounts[2];
        double known[2] = {1, 1};
        for (int32_t k = 0; k < 2; k++) {
            int64_t at = (int64_t)i + k * rank;
            amounts[k] = inf_build_slice(&s->b, pads, 0, at, at + 1, 1);
            amounts[k] = inf_build_reshape(&s->b, amounts[k], NULL, 0);
            (void)inf_build_const_number(&s->b, amounts[k], &known[k]);
        }
        if (known[0] != 0 || known[1] != 0)
            x = pad_periodically(s, x, i, amounts[0], amounts[1]);
    }
    return x;
}

// Adds nodes that pad each axis by known amounts of elements before and after. A negative amount
// cuts elements off.
static uint32_t add_constant_padding(struct inf_onnx_scope *s, uint32_t x, const int64_t *before,
                                     const int64_t *after, const char *mode, uint32_t value)
{
    int64_t pairs[2 * INF_LIMIT_RANK];
    int32_t rank = inf_build_rank(&s->b, x);
    for (int32_t i = 0; i < rank; i++) {
        pairs[2 * i] = INF_MAX(before[i], 0);
        pairs[2 * i + 1] = INF_MAX(after[i], 0);
        if (before[i] < 0 || after[i] < 0)
            x = inf_build_slice(&s->b, x, i, INF_MAX(-before[i], 0),
                                after[i] < 0 ? after[i] : INT64_MAX, 1);
    }
    return inf_build_pad(&s->b, x, pairs, rank, read_pad_mode(s, mode), value);
}

// Adds a node that pads x by amounts that are computed at run time. Converts the list of [2 * rank]
// amounts, first all before and then all after, to [rank, 2] pairs.
static uint32_t add_computed_padding(struct inf_onnx_scope *s, uint32_t x, uint32_t pads,
                                     const char *mode, uint32_t value)
{
    if (strcmp(mode, "wrap") == 0)
        return pad_all_periodically(s, x, inf_onnx_axes_clamp(s, pads));
    uint32_t halves = inf_build_reshape(&s->b, pads, (int64_t[]){2, inf_build_rank(&s->b, x)}, 2);
    uint32_t pairs = inf_build_transpose(&s->b, halves, (int64_t[]){1, 0}, 2);
    pairs = inf_build_cast(&s->b, pairs, INF_DTYPE_I32);
    return inf_build_pad_by(&s->b, x, pairs, read_pad_mode(s, mode), value);
}

// Adds the amounts for every axis, first all before and then all after, of a padding whose axes or
// amounts a run computes.
static uint32_t spread_pads(struct inf_onnx_scope *s)
{
    uint32_t pads = s->inputs[1], axes = inf_onnx_input(s, 3), halves[2];
    int32_t rank = inf_build_rank(&s->b, s->inputs[0]);
    if (axes == INF_VALUE_NONE)
        return pads;
    int64_t count = inf_build_known_dim(&s->b, axes, 0);
    for (int64_t i = 0; i < 2; i++)
        halves[i] = inf_onnx_axes_spread(
            s, axes, inf_build_slice(&s->b, pads, 0, i * count, (i + 1) * count, 1), rank, 0);
    return inf_build_concat(&s->b, halves, 2, 0);
}

static void lower_pad(struct inf_onnx_scope *s)
{
    int64_t before[INF_LIMIT_RANK] = {0}, after[INF_LIMIT_RANK] = {0};
    struct inf_build_ints pads = {.count = 0}, axes = {.count = 0};
    uint32_t x = s->inputs[0], value = inf_onnx_input(s, 2);
    const char *mode = inf_onnx_attr_text(s, "mode", "constant");
    int32_t rank = inf_build_rank(&s->b, x);
    if (s->opset < 11) {
        (void)inf_onnx_attr_ints(s, s->opset < 2 ? "paddings" : "pads", &pads);
        value = inf_build_scalar(&s->b, inf_build_dtype(&s->b, x),
                                 (double)inf_onnx_attr_float(s, "value", 0));
    } else if (inf_onnx_input(s, 1) == INF_VALUE_NONE) {
        inf_build_fail(&s->b, INF_INVALID, "lacks pads");
    } else if (!inf_build_is_const(&s->b, s->inputs[1]) || inf_onnx_axes_computed(s, 3)) {
        s->outputs[0] = add_computed_padding(s, x, spread_pads(s), mode, value);
        return;
    } else {
        pads = inf_build_const_ints(&s->b, s->inputs[1], "pads");
    }
    if (inf_onnx_input(s, 3) != INF_VALUE_NONE)
        axes = inf_build_const_ints(&s->b, s->inputs[3], "axes");
    else
        for (int32_t i = 0; i < rank; i++)
            axes.values[axes.count++] = i;
    if (pads.count != 2 * axes.count)
        inf_build_fail(&s->b, INF_INVALID, "has %u pads for %u axes", pads.count, axes.count);
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < axes.count; i++) {
        int32_t axis = inf_build_axis(&s->b, axes.values[i], rank);
        before[axis] = pads.values[i];
        after[axis] = pads.values[axes.count + i];
    }
    if (value != INF_VALUE_NONE && inf_build_rank(&s->b, value) > 0)
        value = inf_build_reshape(&s->b, value, NULL, 0);
    if (strcmp(mode, "wrap") == 0) {
        uint32_t halves[] = {inf_build_list(&s->b, before, (uint32_t)rank),
                             inf_build_list(&s->b, after, (uint32_t)rank)};
        s->outputs[0] = pad_all_periodically(s, x, inf_build_concat(&s->b, halves, 2, 0));
        return;
    }
    s->outputs[0] = add_constant_padding(s, x, before, after, mode, value);
}

// Cuts axis `axis` of x to `size` elements around the centre, and sets amounts[0] and amounts[1] to
// the number of elements that are missing before and after it. All sizes are i32 [1].
static uint32_t crop_to_center(struct inf_onnx_scope *s, uint32_t x, int32_t axis, uint32_t size,
                               uint32_t *amounts)
{
    struct inf_builder *b = &s->b;
    uint32_t own = inf_build_dim_value(b, x, axis), missing = inf_build_sub(b, size, own);
    uint32_t cut = inf_build_binary_number(b, INF_BINARY_MIN, missing, 0);
    missing = inf_build_binary_number(b, INF_BINARY_MAX, missing, 0);
    amounts[0] = inf_build_binary_number(b, INF_BINARY_FLOOR_DIV, missing, 2);
    amounts[1] = inf_build_sub(b, missing, amounts[0]);
    cut = inf_build_sub(b, inf_build_list(b, (int64_t[]){0}, 1), cut);
    uint32_t first = inf_build_binary_number(b, INF_BINARY_FLOOR_DIV, cut, 2), begins, ends;
    uint32_t end = inf_build_add(b, first, inf_build_sub(b, own, cut));
    const struct inf_build_ints axes = {.count = 1, .values = {axis}};
    int32_t rank = inf_build_rank(b, x);
    begins = expand_to_all_axes(s, first, &axes, rank, 0);
    ends = expand_to_all_axes(s, end, &axes, rank, INT32_MAX);
    const uint32_t inputs[] = {x, begins, ends,
                               expand_to_all_axes(s, INF_VALUE_NONE, &axes, rank, 1)};
    struct inf_build_node node = inf_build_describe_list(INF_OP_SLICE, inputs, 4);
    node.attrs.slice.begin_mask = node.attrs.slice.end_mask = ((1 << rank) - 1) & ~(1 << axis);
    return inf_build_value(b, &node);
}

// Lowers CenterCropPad: cuts or pads with zeros to a given size, around the centre. If the number
// of elements to cut or to add is odd, one more is cut or added at the end than at the beginning.
static void lower_center_crop_pad(struct inf_onnx_scope *s)
{
    struct inf_build_ints axes = {.count = 0};
    uint32_t x = s->inputs[0], amounts[2 * INF_LIMIT_RANK];
    uint32_t sizes = inf_onnx_axes_clamp(s, s->inputs[1]);
    int32_t rank = inf_build_rank(&s->b, x);
    if (!inf_onnx_attr_ints(s, "axes", &axes))
        for (int32_t i = 0; i < rank; i++)
            axes.values[axes.count++] = i;
    int64_t count = inf_build_dim(&s->b, sizes, 0);
    if (count != INF_DIM_UNKNOWN && axes.count != count)
        inf_build_fail(&s->b, INF_INVALID, "has %u axes and %lld sizes", axes.count,
                       (long long)count);
    for (int32_t i = 0; i < 2 * rank; i++)
        amounts[i] = inf_build_list(&s->b, (int64_t[]){0}, 1);
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < axes.count; i++) {
        int32_t axis = inf_build_axis(&s->b, axes.values[i], rank);
        uint32_t size = inf_build_slice(&s->b, sizes, 0, (int64_t)i, (int64_t)i + 1, 1);
        x = crop_to_center(s, x, axis, size, &amounts[2 * axis]);
    }
    uint32_t pairs = inf_build_concat(&s->b, amounts, 2 * (uint32_t)rank, 0);
    pairs = inf_build_reshape(&s->b, pairs, (int64_t[]){rank, 2}, 2);
    s->outputs[0] = inf_build_pad_by(&s->b, x, pairs, INF_PAD_CONSTANT, INF_VALUE_NONE);
}

// --- operators SpaceToDepth and DepthToSpace ---

static void lower_space_to_depth(struct inf_onnx_scope *s)
{
    uint32_t x = inf_build_channels_last(&s->b, s->inputs[0]);
    struct inf_build_node node = inf_build_describe_list(INF_OP_SPACE_TO_DEPTH, &x, 1);
    node.attrs.space_to_depth.block = inf_onnx_attr_int(s, "blocksize", 0);
    s->outputs[0] = inf_build_channels_first(&s->b, inf_build_value(&s->b, &node));
}

static void lower_depth_to_space(struct inf_onnx_scope *s)
{
    const char *mode = inf_onnx_attr_text(s, "mode", "DCR");
    int32_t block = inf_onnx_attr_int(s, "blocksize", 0);
    uint32_t x = s->inputs[0];
    if (strcmp(mode, "DCR") == 0) {
        x = inf_build_channels_last(&s->b, x);
        struct inf_build_node node = inf_build_describe_list(INF_OP_DEPTH_TO_SPACE, &x, 1);
        node.attrs.depth_to_space.block = block;
        s->outputs[0] = inf_build_channels_first(&s->b, inf_build_value(&s->b, &node));
        return;
    }
    // In mode CRD the channels are [c, block rows, block columns]; in mode DCR the block comes
    // before c. The graph's operator supports only DCR.
    int64_t channels = inf_build_dim(&s->b, x, 1);
    if (strcmp(mode, "CRD") != 0 || inf_build_rank(&s->b, x) != 4 || block < 1 || block > 4096 ||
        (channels != INF_DIM_UNKNOWN && channels % ((int64_t)block * block) != 0))
        inf_build_fail(&s->b, INF_INVALID,
                       "mode '%.20s', blocksize %d and %lld channels do not fit", mode, block,
                       (long long)channels);
    if (!inf_build_ok(&s->b))
        return;
    uint32_t c = inf_build_binary_number(&s->b, INF_BINARY_DIV, inf_build_dim_value(&s->b, x, 1),
                                         (double)block * block);
    const uint32_t n = inf_build_dim_value(&s->b, x, 0);
    const uint32_t h = inf_build_dim_value(&s->b, x, 2), w = inf_build_dim_value(&s->b, x, 3);
    const uint32_t split[] = {n, c, inf_build_list(&s->b, (int64_t[]){block, block}, 2), h, w};
    const uint32_t joined[] = {n, c, inf_build_binary_number(&s->b, INF_BINARY_MUL, h, block),
                               inf_build_binary_number(&s->b, INF_BINARY_MUL, w, block)};
    x = inf_build_reshape_to(&s->b, x, inf_build_concat(&s->b, split, 5, 0));
    x = inf_build_transpose(&s->b, x, (int64_t[]){0, 1, 4, 2, 5, 3}, 6);
    s->outputs[0] = inf_build_reshape_to(&s->b, x, inf_build_concat(&s->b, joined, 4, 0));
}

static const struct inf_onnx_op ops[] = {
    {"Transpose", lower_transpose, 1, 1, 1, 0, .narrow = INF_ONNX_NARROW_MOVED},
    {"Concat", lower_concat, 1, INF_LIMIT_NODE_INPUTS, 1, 0, .narrow = INF_ONNX_NARROW_JOINED},
    {"Split", lower_split, 1, 2, INF_LIMIT_NODE_INPUTS, 0, .narrow = INF_ONNX_NARROW_MOVED},
    {"Slice", lower_slice, 1, 5, 1, 0, .narrow = INF_ONNX_NARROW_MOVED},
    {"Pad", lower_pad, 1, 4, 1, 0},
    {"CenterCropPad", lower_center_crop_pad, 2, 2, 1, 0},
    {"SpaceToDepth", lower_space_to_depth, 1, 1, 1, 0, .narrow = INF_ONNX_NARROW_MOVED},
    {"DepthToSpace", lower_depth_to_space, 1, 1, 1, 0, .narrow = INF_ONNX_NARROW_MOVED},
};

const struct inf_onnx_op_table inf_onnx_ops_move = {ops, INF_ARRAY_LENGTH(ops)};
