// SPDX-License-Identifier: Apache-2.0
// TreeEnsemble, which lists inner nodes and leaves separately and names children by their
// positions. In the tables of trees.h the inner nodes come first, then the leaves.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/classic/classes.h"
#include "backends/import/onnx/classic/trees.h"
#include "backends/import/onnx/op_table.h"

// The trees as the attributes list them.
struct flat {
    struct inf_trees trees;
    int64_t inner, leaves; // number of inner nodes and of leaves
    uint32_t splits, weights;
};

// Fills the tables of children of one side: `name` lists the children, and `leaf_name` says which
// of them are leaves.
static void link_side(struct inf_onnx_scope *s, const struct flat *flat, const char *name,
                      const char *leaf_name, int32_t *children)
{
    const int64_t *to = inf_trees_read_ints(s, name, flat->inner, NULL);
    const int64_t *is_leaf = inf_trees_read_ints(s, leaf_name, flat->inner, NULL);
    for (int64_t i = 0; inf_build_ok(&s->b) && i < flat->inner; i++) {
        int64_t count = is_leaf[i] != 0 ? flat->leaves : flat->inner;
        if (to[i] < 0 || to[i] >= count)
            inf_build_fail(&s->b, INF_INVALID, "%s[%lld] is %lld of %lld", name, (long long)i,
                           (long long)to[i], (long long)count);
        else
            children[i] = (int32_t)(is_leaf[i] != 0 ? flat->inner + to[i] : to[i]);
    }
    for (int64_t i = flat->inner; inf_build_ok(&s->b) && i < flat->trees.count; i++)
        children[i] = (int32_t)i;
}

// Reads the features and modes of the inner nodes.
static void read_nodes(struct inf_onnx_scope *s, struct flat *flat)
{
    struct inf_trees *trees = &flat->trees;
    int64_t width = inf_trees_count_features(s);
    const int64_t *features = inf_trees_read_ints(s, "nodes_featureids", flat->inner, NULL);
    uint32_t modes = inf_onnx_attr_tensor(s, "nodes_modes");
    if (inf_build_ok(&s->b) &&
        (modes == INF_VALUE_NONE || inf_build_dtype(&s->b, modes) != INF_DTYPE_U8 ||
         inf_build_rank(&s->b, modes) != 1 || inf_build_dim(&s->b, modes, 0) != flat->inner))
        inf_build_fail(&s->b, INF_INVALID, "nodes_modes is not one UINT8 for each node");
    for (int64_t i = 0; inf_build_ok(&s->b) && i < flat->inner; i++) {
        uint8_t mode = ((const uint8_t *)s->b.graph->values[modes].data->data)[i];
        if (mode >= INF_TREE_MODE_COUNT || features[i] < 0 || features[i] >= width) {
            inf_build_fail(&s->b, INF_INVALID,
                           "node %lld has mode %u and reads feature %lld of %lld", (long long)i,
                           mode, (long long)features[i], (long long)width);
            return;
        }
        trees->features[i] = (int32_t)features[i];
        trees->modes[i] = mode;
        trees->modes_used |= 1u << mode;
    }
}

// Returns the tensor of attribute `name` as a constant of rank 1. Latches a failure unless it is a
// list of floats.
static uint32_t read_floats(struct inf_onnx_scope *s, const char *name)
{
    uint32_t value = inf_onnx_attr_tensor(s, name);
    if (inf_build_ok(&s->b) &&
        (value == INF_VALUE_NONE || !inf_dtype_is_float(inf_build_dtype(&s->b, value)) ||
         inf_build_rank(&s->b, value) != 1))
        inf_build_fail(&s->b, INF_INVALID, "%s is no list of floats", name);
    return value;
}

// Reads membership_values: the sets of the nodes whose mode is MEMBER, one after the other, each
// followed by NaN. The table has a row for each node.
static void read_members(struct inf_onnx_scope *s, struct flat *flat)
{
    struct inf_trees *trees = &flat->trees;
    int64_t most = 1, size = 0, at = 0;
    double *table;
    uint32_t given = read_floats(s, "membership_values");
    const double *values = inf_trees_read_doubles(s, given);
    int64_t count = inf_build_known_dim(&s->b, given, 0);
    if (!inf_build_ok(&s->b))
        return;
    for (int64_t i = 0; i < count; i++) {
        size = isnan(values[i]) ? 0 : size + 1;
        most = INF_MAX(most, size);
    }
    trees->member_table =
        inf_build_const(&s->b, INF_DTYPE_F64, &INF_SHAPE(trees->count, most), &table);
    for (int64_t i = 0; table != NULL && i < trees->count * most; i++)
        table[i] = NAN;
    for (int64_t i = 0; table != NULL && i < flat->inner; i++) {
        if (trees->modes[i] != INF_TREE_MEMBER)
            continue;
        if (at >= count)
            inf_build_fail(&s->b, INF_INVALID, "membership_values has no set for node %lld",
                           (long long)i);
        for (int64_t j = 0; at < count && !isnan(values[at]); j++)
            table[i * most + j] = values[at++];
        at++; // the NaN behind the set
    }
    trees->member_table = inf_build_cast(&s->b, trees->member_table, inf_build_dtype(&s->b, given));
}

// Finds the depth of the deepest tree. A node that several nodes share is visited once at each
// depth. A cycle reaches the largest depth, and is refused as too deep.
static void measure_depth(struct inf_onnx_scope *s, struct flat *flat, const int64_t *roots,
                          bool *at, bool *next)
{
    struct inf_trees *trees = &flat->trees;
    bool more = true;
    for (int64_t i = 0; i < trees->root_count; i++)
        at[roots[i]] = true;
    for (; more && trees->depth <= INF_TREES_DEPTH_MAX; trees->depth += more) {
        more = false;
        memset(next, 0, (size_t)trees->count * sizeof *next);
        for (int64_t i = 0; i < flat->inner; i++) {
            if (!at[i])
                continue;
            next[trees->true_nodes[i]] = next[trees->false_nodes[i]] = true;
            more = true;
        }
        memcpy(at, next, (size_t)trees->count * sizeof *next);
    }
    if (trees->depth > INF_TREES_DEPTH_MAX)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "a tree is deeper than %d, or has a cycle",
                       INF_TREES_DEPTH_MAX);
}

static void read_roots(struct inf_onnx_scope *s, struct flat *flat)
{
    struct inf_trees *trees = &flat->trees;
    int32_t *table;
    const int64_t *roots = inf_trees_read_ints(s, "tree_roots", -1, &trees->root_count);
    trees->roots = inf_build_const(&s->b, INF_DTYPE_I32, &INF_SHAPE(trees->root_count), &table);
    for (int64_t i = 0; inf_build_ok(&s->b) && i < trees->root_count; i++) {
        if (roots[i] < 0 || roots[i] >= flat->inner)
            inf_build_fail(&s->b, INF_INVALID, "tree_roots[%lld] is %lld of %lld nodes",
                           (long long)i, (long long)roots[i], (long long)flat->inner);
        else
            table[i] = (int32_t)roots[i];
    }
    if (!inf_build_ok(&s->b))
        return;
    bool *at = calloc(2 * (size_t)trees->count, sizeof *at);
    if (at == NULL)
        inf_build_fail(&s->b, INF_EXHAUSTED, "no memory for %lld nodes", (long long)trees->count);
    else
        measure_depth(s, flat, roots, at, at + trees->count);
    free(at);
}

// Adds the table of weights [nodes, outputs] in the type `dtype`.
static uint32_t add_weights(struct inf_onnx_scope *s, const struct flat *flat, int64_t outputs,
                            enum inf_tree_aggregate aggregate, enum inf_dtype dtype)
{
    const int64_t *targets = inf_trees_read_ints(s, "leaf_targetids", flat->leaves, NULL);
    const double *numbers = inf_trees_read_doubles(s, flat->weights);
    double *table;
    if (inf_build_ok(&s->b) && (outputs < 1 || outputs > INF_LIMIT_NODE_INPUTS))
        inf_build_fail(&s->b, INF_INVALID, "n_targets is %lld", (long long)outputs);
    if (!inf_build_ok(&s->b))
        return INF_VALUE_NONE;
    uint32_t value =
        inf_build_const(&s->b, INF_DTYPE_F64, &INF_SHAPE(flat->trees.count, outputs), &table);
    for (int64_t i = 0; table != NULL && i < flat->trees.count * outputs; i++)
        table[i] = (double)inf_trees_no_weight(aggregate);
    for (int64_t i = 0; inf_build_ok(&s->b) && i < flat->leaves; i++) {
        if (targets[i] < 0 || targets[i] >= outputs)
            inf_build_fail(&s->b, INF_INVALID, "leaf_targetids[%lld] is %lld of %lld", (long long)i,
                           (long long)targets[i], (long long)outputs);
        else
            table[(flat->inner + i) * outputs + targets[i]] = numbers[i];
    }
    return inf_build_cast(&s->b, value, dtype);
}

// Reads an attribute that is the number of one of `count` choices.
static int32_t read_choice(struct inf_onnx_scope *s, const char *name, int32_t fallback,
                           int32_t count)
{
    int32_t choice = inf_onnx_attr_int(s, name, fallback);
    if (choice < 0 || choice >= count)
        inf_build_fail(&s->b, INF_INVALID, "%s is %d", name, choice);
    return inf_build_ok(&s->b) ? choice : fallback;
}

static void lower_flat(struct inf_onnx_scope *s)
{
    static const char *const transforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO",
                                             "PROBIT"};
    struct flat flat = {.trees = {.count = 0}};
    struct inf_trees *trees = &flat.trees;
    enum inf_dtype dtype = inf_build_dtype(&s->b, s->inputs[0]);
    int32_t transform = read_choice(s, "post_transform", 0, INF_ARRAY_LENGTH(transforms));
    int32_t aggregate =
        read_choice(s, "aggregate_function", INF_TREE_SUM, INF_TREE_AGGREGATE_COUNT);
    (void)inf_onnx_find_attr(s, "nodes_hitrates");
    flat.splits = read_floats(s, "nodes_splits");
    flat.weights = read_floats(s, "leaf_weights");
    if (inf_build_rank(&s->b, s->inputs[0]) != 2 || !inf_dtype_is_float(dtype))
        inf_build_fail(&s->b, INF_INVALID, "x is no matrix of floats");
    flat.inner = inf_build_known_dim(&s->b, flat.splits, 0);
    flat.leaves = inf_build_known_dim(&s->b, flat.weights, 0);
    trees->count = flat.inner + flat.leaves;
    inf_trees_make_tables(s, trees);
    // The splits of leaves are not read.
    trees->value_table = inf_build_pad(&s->b, flat.splits, (int64_t[]){0, flat.leaves}, 1,
                                       INF_PAD_CONSTANT, INF_VALUE_NONE);
    read_nodes(s, &flat);
    link_side(s, &flat, "nodes_truenodeids", "nodes_trueleafs", trees->true_nodes);
    link_side(s, &flat, "nodes_falsenodeids", "nodes_falseleafs", trees->false_nodes);
    if (inf_build_ok(&s->b))
        inf_trees_read_tracks(s, trees, flat.inner);
    if (inf_build_ok(&s->b) && (trees->modes_used & 1u << INF_TREE_MEMBER) != 0)
        read_members(s, &flat);
    else
        (void)inf_onnx_find_attr(s, "membership_values");
    if (inf_build_ok(&s->b))
        read_roots(s, &flat);
    uint32_t weights = add_weights(s, &flat, inf_onnx_attr_int(s, "n_targets", 1),
                                   (enum inf_tree_aggregate)aggregate,
                                   dtype == INF_DTYPE_F64 ? dtype : INF_DTYPE_F32);
    if (!inf_build_ok(&s->b))
        return;
    uint32_t y = inf_trees_add_scores(s, trees, weights, (enum inf_tree_aggregate)aggregate);
    y = inf_onnx_apply_transform(s, inf_build_cast(&s->b, y, INF_DTYPE_F32), transforms[transform]);
    s->outputs[0] = inf_build_cast(&s->b, y, dtype);
}

static const struct inf_onnx_op ops[] = {
    {"ai.onnx.ml::TreeEnsemble", lower_flat, 1, 1, 1, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_trees_flat = {ops, INF_ARRAY_LENGTH(ops)};
