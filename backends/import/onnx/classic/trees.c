// SPDX-License-Identifier: Apache-2.0
// Ensembles of trees. All trees are walked in parallel. A tensor [rows, trees] holds the index of
// the current node of each row in each tree. A step replaces each index by the index of a child. A
// leaf is its own child, so all trees take as many steps as the deepest tree.
//
//   node    0: x[1] <= 5 ? 1 : 2      1: leaf      2: x[0] <= 3 ? 3 : 4      3: leaf      4: leaf
//   tables  feature 1 - 0 - -, value 5 - 3 - -, true 1 1 3 3 4, false 2 1 4 3 4
//
// The weights are a table with one row for each node. The rows of the reached leaves are gathered
// and summed.
#include "backends/import/onnx/classic/trees.h"

#include <math.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"

const int64_t *inf_trees_read_ints(struct inf_onnx_scope *s, const char *name, int64_t count,
                                   int64_t *out_count)
{
    uint32_t value = inf_onnx_attr_long_ints(s, name);
    int64_t size = value != INF_VALUE_NONE ? inf_build_known_dim(&s->b, value, 0) : 0;
    if (inf_build_ok(&s->b) && (size < 1 || (count >= 0 && size != count)))
        inf_build_fail(&s->b, INF_INVALID, "%s has %lld numbers, wanted %lld", name,
                       (long long)size, (long long)count);
    if (out_count != NULL)
        *out_count = size;
    return inf_build_ok(&s->b) ? s->b.graph->values[value].data->data : NULL;
}

int64_t inf_trees_count_features(struct inf_onnx_scope *s)
{
    int64_t count = inf_build_dim(&s->b, s->inputs[0], 1);
    return count == INF_DIM_UNKNOWN ? INF_LIMIT_DIM : count;
}

const double *inf_trees_read_doubles(struct inf_onnx_scope *s, uint32_t value)
{
    uint32_t numbers = inf_build_cast(&s->b, value, INF_DTYPE_F64);
    if (inf_build_ok(&s->b) && !inf_build_is_const(&s->b, numbers))
        inf_build_fail(&s->b, INF_UNSUPPORTED, "its weights cannot be converted to FP64 here");
    return inf_build_ok(&s->b) ? s->b.graph->values[numbers].data->data : NULL;
}

void inf_trees_make_tables(struct inf_onnx_scope *s, struct inf_trees *trees)
{
    const struct inf_shape shape = INF_SHAPE(trees->count);
    if (inf_build_ok(&s->b) && trees->count < 1)
        inf_build_fail(&s->b, INF_INVALID, "has no nodes");
    trees->feature_table = inf_build_const(&s->b, INF_DTYPE_I32, &shape, &trees->features);
    trees->mode_table = inf_build_const(&s->b, INF_DTYPE_I32, &shape, &trees->modes);
    trees->true_table = inf_build_const(&s->b, INF_DTYPE_I32, &shape, &trees->true_nodes);
    trees->false_table = inf_build_const(&s->b, INF_DTYPE_I32, &shape, &trees->false_nodes);
    trees->track_table = inf_build_const(&s->b, INF_DTYPE_BOOL, &shape, &trees->tracks);
    trees->member_table = INF_VALUE_NONE;
}

void inf_trees_read_tracks(struct inf_onnx_scope *s, struct inf_trees *trees, int64_t count)
{
    uint32_t tracks = inf_onnx_attr_long_ints(s, "nodes_missing_value_tracks_true");
    if (!inf_build_ok(&s->b) || tracks == INF_VALUE_NONE ||
        inf_build_dim(&s->b, tracks, 0) != count)
        return;
    const int64_t *flags = s->b.graph->values[tracks].data->data;
    for (int64_t i = 0; i < count; i++) {
        trees->tracks[i] = flags[i] != 0;
        trees->has_tracks |= flags[i] != 0;
    }
}

// --- walking the trees ---

// Adds nodes that compute, for each row and tree, whether `value` [rows, trees] is in the set of
// the current node. `at` has the indices of the current nodes: [trees] in the first step, [rows,
// trees] in later steps.
static uint32_t find_members(struct inf_onnx_scope *s, const struct inf_trees *trees,
                             uint32_t value, uint32_t at)
{
    const int64_t axis = 2;
    uint32_t members = inf_build_gather(&s->b, trees->member_table, at, 0);
    // The sets of the first step are [trees, members]: add an axis for the rows.
    if (inf_build_rank(&s->b, at) == 1)
        members = inf_build_expand_dims(&s->b, members, (int64_t[]){0}, 1);
    uint32_t equal = inf_build_compare(&s->b, INF_COMPARE_EQUAL,
                                       inf_build_expand_dims(&s->b, value, &axis, 1), members);
    return inf_build_reduce(&s->b, INF_REDUCE_ANY, equal,
                            &(const struct inf_ints){.count = 1, .values = {(int32_t)axis}}, false);
}

// Adds nodes that compute, for each row and tree, whether the row goes to the true node of the
// current node, whose index is in `at`. `value` is the feature that the current node reads.
static uint32_t compare_values(struct inf_onnx_scope *s, const struct inf_trees *trees,
                               uint32_t value, uint32_t at)
{
    static const enum inf_compare_kind kinds[] = {
        [INF_TREE_LEQ] = INF_COMPARE_LESS_EQUAL,    [INF_TREE_LT] = INF_COMPARE_LESS,
        [INF_TREE_GTE] = INF_COMPARE_GREATER_EQUAL, [INF_TREE_GT] = INF_COMPARE_GREATER,
        [INF_TREE_EQ] = INF_COMPARE_EQUAL,          [INF_TREE_NEQ] = INF_COMPARE_NOT_EQUAL};
    // Without inner nodes the answer does not matter, because both children of a leaf are the leaf.
    uint32_t used = trees->modes_used != 0 ? trees->modes_used : 1u << INF_TREE_LEQ;
    uint32_t split = inf_build_gather(&s->b, trees->value_table, at, 0);
    uint32_t mode = inf_build_gather(&s->b, trees->mode_table, at, 0), result = INF_VALUE_NONE;
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < INF_TREE_MODE_COUNT; i++) {
        if ((used & 1u << i) == 0)
            continue;
        uint32_t holds = i == INF_TREE_MEMBER ? find_members(s, trees, value, at)
                                              : inf_build_compare(&s->b, kinds[i], value, split);
        if (used != 1u << i) {
            uint32_t is_mode = inf_build_compare(&s->b, INF_COMPARE_EQUAL, mode,
                                                 inf_build_scalar(&s->b, INF_DTYPE_I32, i));
            holds = inf_build_binary(&s->b, INF_BINARY_LOGICAL_AND, holds, is_mode);
        }
        result = result == INF_VALUE_NONE
                     ? holds
                     : inf_build_binary(&s->b, INF_BINARY_LOGICAL_OR, result, holds);
    }
    return result;
}

// Adds nodes that compute the index of the leaf that each row of x reaches in each tree, [rows,
// trees].
static uint32_t walk_trees(struct inf_onnx_scope *s, const struct inf_trees *trees, uint32_t x)
{
    uint32_t at = trees->roots;
    for (int32_t step = 0; inf_build_ok(&s->b) && step < INF_MAX(trees->depth, 1); step++) {
        uint32_t feature = inf_build_gather(&s->b, trees->feature_table, at, 0), value;
        if (step == 0) {
            value = inf_build_gather(&s->b, x, feature, 1);
        } else {
            struct inf_build_node node =
                inf_build_describe(INF_OP_GATHER_ELEMENTS, x, feature, INF_VALUE_NONE);
            node.attrs.gather_elements.axis = 1;
            value = inf_build_value(&s->b, &node);
        }
        uint32_t right = compare_values(s, trees, value, at);
        if (trees->has_tracks) {
            uint32_t lacks = inf_build_compare(&s->b, INF_COMPARE_NOT_EQUAL, value, value);
            uint32_t tracks = inf_build_gather(&s->b, trees->track_table, at, 0);
            lacks = inf_build_binary(&s->b, INF_BINARY_LOGICAL_AND, lacks, tracks);
            right = inf_build_binary(&s->b, INF_BINARY_LOGICAL_OR, right, lacks);
        }
        at = inf_build_select(&s->b, right, inf_build_gather(&s->b, trees->true_table, at, 0),
                              inf_build_gather(&s->b, trees->false_table, at, 0));
    }
    return at;
}

float inf_trees_no_weight(enum inf_tree_aggregate aggregate)
{
    return aggregate == INF_TREE_MIN ? INFINITY : aggregate == INF_TREE_MAX ? -INFINITY : 0;
}

uint32_t inf_trees_add_scores(struct inf_onnx_scope *s, const struct inf_trees *trees,
                              uint32_t weights, enum inf_tree_aggregate aggregate)
{
    static const enum inf_reduce_kind kinds[] = {[INF_TREE_AVERAGE] = INF_REDUCE_SUM,
                                                 [INF_TREE_SUM] = INF_REDUCE_SUM,
                                                 [INF_TREE_MIN] = INF_REDUCE_MIN,
                                                 [INF_TREE_MAX] = INF_REDUCE_MAX};
    const struct inf_ints axis = {.count = 1, .values = {1}};
    enum inf_dtype dtype = inf_build_dtype(&s->b, weights);
    bool is_double = inf_build_dtype(&s->b, s->inputs[0]) == INF_DTYPE_F64 ||
                     inf_build_dtype(&s->b, trees->value_table) == INF_DTYPE_F64;
    // Values are compared in the wider of the types of x and of the tables.
    struct inf_trees cast = *trees;
    enum inf_dtype wide = is_double ? INF_DTYPE_F64 : INF_DTYPE_F32;
    uint32_t x = inf_build_cast(&s->b, s->inputs[0], wide);
    cast.value_table = inf_build_cast(&s->b, trees->value_table, wide);
    if (trees->member_table != INF_VALUE_NONE)
        cast.member_table = inf_build_cast(&s->b, trees->member_table, wide);
    uint32_t y = inf_build_gather(&s->b, weights, walk_trees(s, &cast, x), 0);
    y = inf_build_reduce(&s->b, kinds[aggregate], y, &axis, false);
    if (aggregate == INF_TREE_AVERAGE)
        return inf_build_binary_number(&s->b, INF_BINARY_DIV, y, (double)trees->root_count);
    if (aggregate == INF_TREE_SUM)
        return y;
    uint32_t none = inf_build_scalar(&s->b, dtype, (double)inf_trees_no_weight(aggregate));
    uint32_t lacks = inf_build_compare(&s->b, INF_COMPARE_EQUAL, y, none);
    return inf_build_select(&s->b, lacks, inf_build_scalar(&s->b, dtype, 0), y);
}
