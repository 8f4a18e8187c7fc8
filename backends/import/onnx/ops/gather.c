// SPDX-License-Identifier: Apache-2.0
// Operators that select elements by index, and the scatter operators.
#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/heads.h"
#include "backends/import/onnx/op_table.h"
#include "backends/import/onnx/ops/axes.h"
#include "backends/import/onnx/ops/block_weights.h"

// Returns true if the indices are a constant without negative elements.
static bool are_nonnegative(struct inf_onnx_scope *s, uint32_t indices)
{
    struct inf_build_ints ints;
    if (!inf_graph_const_ints(s->b.graph, indices, ints.values, INF_BUILD_INTS_MAX, &ints.count))
        return false;
    for (uint32_t i = 0; i < ints.count; i++)
        if (ints.values[i] < 0)
            return false;
    return true;
}

static void lower_gather(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0], indices = s->inputs[1];
    int32_t axis = inf_build_axis(&s->b, inf_onnx_attr_int(s, "axis", 0), inf_build_rank(&s->b, x));
    if (!are_nonnegative(s, indices))
        indices = inf_onnx_wrap_indices(s, indices, x, axis);
    uint32_t rows =
        inf_build_ok(&s->b) && axis == 0 ? inf_onnx_blocks_gather(s, x, indices) : INF_VALUE_NONE;
    s->outputs[0] = rows != INF_VALUE_NONE ? rows : inf_build_gather(&s->b, x, indices, axis);
}

// Reads the attribute `reduction` of scatter operators. Old versions do not have it.
static enum inf_scatter_kind read_reduction(struct inf_onnx_scope *s)
{
    static const struct {
        const char *name;
        enum inf_scatter_kind kind;
    } kinds[] = {{"none", INF_SCATTER_NONE},
                 {"add", INF_SCATTER_ADD},
                 {"mul", INF_SCATTER_MUL},
                 {"min", INF_SCATTER_MIN},
                 {"max", INF_SCATTER_MAX}};
    const char *name = inf_onnx_attr_text(s, "reduction", "none");
    for (size_t i = 0; i < INF_ARRAY_LENGTH(kinds); i++)
        if (strcmp(kinds[i].name, name) == 0)
            return kinds[i].kind;
    inf_build_fail(&s->b, INF_UNSUPPORTED, "reduction is '%.20s'", name);
    return INF_SCATTER_NONE;
}

static void lower_gather_elements(struct inf_onnx_scope *s)
{
    struct inf_build_node node = inf_build_describe_list(INF_OP_GATHER_ELEMENTS, s->inputs, 2);
    node.attrs.gather_elements.axis = inf_onnx_attr_int(s, "axis", 0);
    node.attrs.gather_elements.from_end = true;
    s->outputs[0] = inf_build_value(&s->b, &node);
}

static void lower_scatter_elements(struct inf_onnx_scope *s)
{
    struct inf_build_node node = inf_build_describe_list(INF_OP_SCATTER_ELEMENTS, s->inputs, 3);
    node.attrs.scatter_elements.axis = inf_onnx_attr_int(s, "axis", 0);
    node.attrs.scatter_elements.kind = read_reduction(s);
    node.attrs.scatter_elements.from_end = true;
    s->outputs[0] = inf_build_value(&s->b, &node);
}

static void lower_gather_nd(struct inf_onnx_scope *s)
{
    struct inf_build_node node = inf_build_describe_list(INF_OP_GATHER_ND, s->inputs, 2);
    node.attrs.gather_nd.batch_dims = inf_onnx_attr_int(s, "batch_dims", 0);
    node.attrs.gather_nd.from_end = true;
    s->outputs[0] = inf_build_value(&s->b, &node);
}

static void lower_scatter_nd(struct inf_onnx_scope *s)
{
    struct inf_build_node node = inf_build_describe_list(INF_OP_SCATTER_ND, s->inputs, 3);
    node.attrs.scatter_nd.kind = read_reduction(s);
    node.attrs.scatter_nd.from_end = true;
    s->outputs[0] = inf_build_value(&s->b, &node);
}

// Lowers TopK: the largest or smallest elements and their positions. Before opset 10 the number of
// elements is an attribute.
static void lower_topk(struct inf_onnx_scope *s)
{
    uint32_t values[2], k;
    int64_t count;
    if (s->opset < 10) {
        count = inf_onnx_attr_int(s, "k", 0);
        k = inf_build_list(&s->b, &count, 1);
    } else if (inf_onnx_input(s, 1) == INF_VALUE_NONE) {
        inf_build_fail(&s->b, INF_INVALID, "lacks k");
        return;
    } else {
        k = inf_build_cast(&s->b, s->inputs[1], INF_DTYPE_I32);
    }
    if (inf_build_ok(&s->b) && inf_build_rank(&s->b, k) > 0)
        k = inf_build_reshape(&s->b, k, NULL, 0);
    struct inf_build_node node = inf_build_describe(INF_OP_TOPK, s->inputs[0], k, INF_VALUE_NONE);
    node.output_count = 2;
    node.attrs.topk.axis = inf_onnx_attr_int(s, "axis", -1);
    node.attrs.topk.smallest = inf_onnx_attr_int(s, "largest", 1) == 0;
    // "sorted" is not needed: if it is 0, any order is allowed.
    (void)inf_onnx_find_attr(s, "sorted");
    inf_build_emit(&s->b, &node, values);
    s->outputs[0] = values[0];
    if (s->output_count > 1)
        s->outputs[1] = inf_build_cast(&s->b, values[1], INF_DTYPE_I64);
}

static void lower_nonzero(struct inf_onnx_scope *s)
{
    struct inf_build_node node = inf_build_describe_list(INF_OP_NONZERO, s->inputs, 1);
    uint32_t places =
        inf_build_transpose(&s->b, inf_build_value(&s->b, &node), (int64_t[]){1, 0}, 2);
    s->outputs[0] = inf_build_cast(&s->b, places, INF_DTYPE_I64);
}

// Lowers Compress, which selects the slices along an axis whose condition is true.
static void lower_compress(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0];
    int32_t axis = 0;
    struct inf_build_node node = inf_build_describe_list(INF_OP_NONZERO, &s->inputs[1], 1);
    uint32_t places = inf_build_squeeze(&s->b, inf_build_value(&s->b, &node), (int64_t[]){1}, 1);
    if (inf_onnx_has_attr(s, "axis"))
        axis = inf_build_axis(&s->b, inf_onnx_attr_int(s, "axis", 0), inf_build_rank(&s->b, x));
    else
        x = inf_build_reshape(&s->b, x, (int64_t[]){-1}, 1);
    s->outputs[0] = inf_build_gather(&s->b, x, places, axis);
}

// Lowers Unique. The outputs are, in ONNX's order: distinct values, first positions, index of each
// element, counts.
static void lower_unique(struct inf_onnx_scope *s)
{
    static const uint32_t order[] = {0, 2, 1, 3};
    uint32_t values[4], x = s->inputs[0];
    int32_t axis = 0;
    if (inf_onnx_has_attr(s, "axis"))
        axis = inf_build_axis(&s->b, inf_onnx_attr_int(s, "axis", 0), inf_build_rank(&s->b, x));
    else
        x = inf_build_reshape(&s->b, x, (int64_t[]){-1}, 1);
    struct inf_build_node node = inf_build_describe_list(INF_OP_UNIQUE, &x, 1);
    node.output_count = 4;
    node.attrs.unique.axis = axis;
    node.attrs.unique.sorted = inf_onnx_attr_int(s, "sorted", 1) != 0;
    inf_build_emit(&s->b, &node, values);
    for (uint32_t i = 0; i < s->output_count; i++)
        s->outputs[i] = i == 0 ? values[0] : inf_build_cast(&s->b, values[order[i]], INF_DTYPE_I64);
}

static void lower_reverse_sequence(struct inf_onnx_scope *s)
{
    struct inf_build_node node = inf_build_describe_list(INF_OP_REVERSE_SEQUENCE, s->inputs, 2);
    node.attrs.reverse_sequence.axis = inf_onnx_attr_int(s, "time_axis", 0);
    node.attrs.reverse_sequence.batch_axis = inf_onnx_attr_int(s, "batch_axis", 1);
    s->outputs[0] = inf_build_value(&s->b, &node);
}

static void lower_cumulate(struct inf_onnx_scope *s)
{
    int32_t rank = inf_build_rank(&s->b, s->inputs[0]);
    struct inf_build_node node = inf_build_describe_list(INF_OP_CUMULATE, s->inputs, 1);
    node.attrs.cumulate.kind = (enum inf_cumulate_kind)s->op->kind;
    node.attrs.cumulate.axis =
        inf_build_axis(&s->b, inf_build_const_int(&s->b, s->inputs[1], "axis"), rank);
    node.attrs.cumulate.exclusive = inf_onnx_attr_int(s, "exclusive", 0) != 0;
    node.attrs.cumulate.reverse = inf_onnx_attr_int(s, "reverse", 0) != 0;
    s->outputs[0] = inf_build_value(&s->b, &node);
}

// Adds the number of classes of OneHot as an I64 scalar. If it is a constant, its value is checked.
static uint32_t read_depth(struct inf_onnx_scope *s)
{
    double depth = 0;
    bool known = inf_build_const_number(&s->b, s->inputs[1], &depth);
    if (known && !(depth >= 0 && depth < 1 << 24))
        inf_build_fail(&s->b, INF_INVALID, "depth is %g", depth);
    uint32_t value = inf_build_cast(&s->b, s->inputs[1], INF_DTYPE_I64);
    return inf_build_reshape(&s->b, value, NULL, 0);
}

// Lowers OneHot. Each class gets one of two values (0 and 1 by default): the second value if the
// class equals the index.
static void lower_one_hot(struct inf_onnx_scope *s)
{
    uint32_t indices = s->inputs[0], values = s->inputs[2], depth = read_depth(s);
    int32_t rank = inf_build_rank(&s->b, indices);
    int32_t axis = inf_build_axis(&s->b, inf_onnx_attr_int(s, "axis", -1), rank + 1);
    indices = inf_build_cast(&s->b, indices, INF_DTYPE_I64);
    indices = inf_build_wrap_indices(&s->b, indices, depth);
    indices = inf_build_expand_dims(&s->b, indices, (int64_t[]){axis}, 1);
    uint32_t index = inf_build_range(&s->b, depth);
    index = inf_build_expand_dims(&s->b, index, (int64_t[]){1, 2, 3, 4, 5, 6, 7}, rank - axis);
    uint32_t here = inf_build_compare(&s->b, INF_COMPARE_EQUAL, indices, index);
    uint32_t off = inf_build_reshape(&s->b, inf_build_slice(&s->b, values, 0, 0, 1, 1), NULL, 0);
    uint32_t on = inf_build_reshape(&s->b, inf_build_slice(&s->b, values, 0, 1, 2, 1), NULL, 0);
    s->outputs[0] = inf_build_select(&s->b, here, on, off);
}

// Lowers Trilu, which keeps the upper or lower triangle of the last two axes: the elements whose
// column minus row is at least k, or at most k.
static void lower_trilu(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0], k = inf_onnx_input(s, 1);
    enum inf_compare_kind side =
        inf_onnx_attr_int(s, "upper", 1) != 0 ? INF_COMPARE_GREATER_EQUAL : INF_COMPARE_LESS_EQUAL;
    int32_t rank = inf_build_rank(&s->b, x);
    if (inf_build_ok(&s->b) && rank < 2)
        inf_build_fail(&s->b, INF_INVALID, "x has rank %d, wanted 2 or more", rank);
    if (!inf_build_ok(&s->b))
        return;
    k = k == INF_VALUE_NONE ? inf_build_scalar(&s->b, INF_DTYPE_I32, 0)
                            : inf_build_reshape(&s->b, inf_onnx_axes_clamp(s, k), NULL, 0);
    // The sum of a row and k could overflow; the difference of a column and a row cannot.
    uint32_t keep = inf_build_compare(&s->b, side, inf_onnx_add_diagonals(s, x), k);
    uint32_t zero = inf_build_scalar(&s->b, inf_build_dtype(&s->b, x), 0);
    s->outputs[0] = inf_build_select(&s->b, keep, x, zero);
}

static const struct inf_onnx_op ops[] = {
    {"Gather", lower_gather, 2, 2, 1, 0, .narrow = INF_ONNX_NARROW_MOVED},
    {"GatherElements", lower_gather_elements, 2, 2, 1, 0, .narrow = INF_ONNX_NARROW_MOVED},
    {"GatherND", lower_gather_nd, 2, 2, 1, 0, .narrow = INF_ONNX_NARROW_MOVED},
    {"OneHot", lower_one_hot, 3, 3, 1, 0},
    {"Trilu", lower_trilu, 1, 2, 1, 0},
    {"ScatterElements", lower_scatter_elements, 3, 3, 1, 0},
    {"Scatter", lower_scatter_elements, 3, 3, 1, 0},
    {"ScatterND", lower_scatter_nd, 3, 3, 1, 0},
    {"TopK", lower_topk, 1, 2, 2, 0},
    {"NonZero", lower_nonzero, 1, 1, 1, 0},
    {"Compress", lower_compress, 2, 2, 1, 0, .narrow = INF_ONNX_NARROW_MOVED},
    {"Unique", lower_unique, 1, 1, 4, 0},
    {"ReverseSequence", lower_reverse_sequence, 2, 2, 1, 0},
    {"CumSum", lower_cumulate, 2, 2, 1, INF_CUMULATE_SUM},
    {"CumProd", lower_cumulate, 2, 2, 1, INF_CUMULATE_PROD},
};

const struct inf_onnx_op_table inf_onnx_ops_gather = {ops, INF_ARRAY_LENGTH(ops)};
