// SPDX-License-Identifier: Apache-2.0
// TreeEnsembleRegressor and TreeEnsembleClassifier. All trees are walked in parallel. A tensor
// [rows, trees] holds the index of the current node of each row in each tree. A step replaces each
// index by the index of a child. A leaf is its own child, so all trees take as many steps as the
// deepest tree.
//
//   node    0: x[1] <= 5 ? 1 : 2      1: leaf      2: x[0] <= 3 ? 3 : 4      3: leaf      4: leaf
//   tables  feature 1 - 0 - -, value 5 - 3 - -, true 1 1 3 3 4, false 2 1 4 3 4
//
// The weights are a table with one row for each node. The rows of the reached leaves are gathered
// and summed.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/keys.h"
#include "backends/import/onnx/op_table.h"
#include "backends/import/onnx/ops/classic.h"

// The largest depth of a tree. It bounds the number of graph nodes that one operator adds.
#define DEPTH_MAX 64

// The trees as tables with one element for each node, in the order of the attributes. The members
// that end in _table are constants of the graph, into which `features`, `true_nodes`, `false_nodes`
// and `tracks` point.
struct trees {
    const int64_t *tree_ids, *node_ids;
    uint32_t *order; // indices of the nodes, sorted by tree id and then by node id
    int32_t *features, *true_nodes, *false_nodes;
    uint8_t *tracks; // 1: from this node, a row whose feature is NaN goes to the true node
    uint32_t feature_table, value_table, true_table, false_table, track_table;
    enum inf_compare_kind mode;
    int64_t count; // number of nodes of all trees
    uint32_t roots;
    int64_t root_count;
    int32_t depth;
    bool has_tracks;
};

// Returns the integers of attribute `name`, and stores their number in *out_count unless out_count
// is NULL. Latches a failure and returns NULL unless there are `count` integers, or at least one if
// `count` is -1.
static const int64_t *read_ints(struct inf_onnx_scope *s, const char *name, int64_t count,
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

static int compare_places(const struct trees *trees, uint32_t a, int64_t tree, int64_t node)
{
    if (trees->tree_ids[a] != tree)
        return trees->tree_ids[a] < tree ? -1 : 1;
    return (trees->node_ids[a] > node) - (trees->node_ids[a] < node);
}

static int compare_nodes(const void *a, const void *b, void *context)
{
    const struct trees *trees = context;
    uint32_t other = *(const uint32_t *)b;
    return compare_places(trees, *(const uint32_t *)a, trees->tree_ids[other],
                          trees->node_ids[other]);
}

// Returns the index of the node with id `node` in the tree with id `tree`; -1 if there is none.
static int64_t find_node(const struct trees *trees, int64_t tree, int64_t node)
{
    int64_t low = 0, high = trees->count;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        int order = compare_places(trees, trees->order[middle], tree, node);
        if (order == 0)
            return trees->order[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

// Reads the attribute nodes_modes. Sets is_leaf[i] for each node i. Sets trees->mode to the
// comparison of the inner nodes, and latches a failure unless all inner nodes have the same one.
static void read_modes(struct inf_onnx_scope *s, struct trees *trees, bool *is_leaf)
{
    static const struct {
        const char *name;
        enum inf_compare_kind kind;
    } modes[] = {{"BRANCH_LEQ", INF_COMPARE_LESS_EQUAL},    {"BRANCH_LT", INF_COMPARE_LESS},
                 {"BRANCH_GTE", INF_COMPARE_GREATER_EQUAL}, {"BRANCH_GT", INF_COMPARE_GREATER},
                 {"BRANCH_EQ", INF_COMPARE_EQUAL},          {"BRANCH_NEQ", INF_COMPARE_NOT_EQUAL}};
    const char *const *texts, *first = NULL;
    uint32_t count = inf_onnx_attr_texts(s, "nodes_modes", &texts);
    if (count != trees->count)
        inf_build_fail(&s->b, INF_INVALID, "nodes_modes has %u texts for %lld nodes", count,
                       (long long)trees->count);
    for (int64_t i = 0; inf_build_ok(&s->b) && i < trees->count; i++) {
        is_leaf[i] = strcmp(texts[i], "LEAF") == 0;
        if (!is_leaf[i] && first != NULL && strcmp(first, texts[i]) != 0)
            inf_build_fail(&s->b, INF_UNSUPPORTED, "nodes compare by %.20s and %.20s", first,
                           texts[i]);
        first = is_leaf[i] ? first : texts[i];
    }
    trees->mode = INF_COMPARE_COUNT;
    for (size_t i = 0; first != NULL && i < INF_ARRAY_LENGTH(modes); i++)
        if (strcmp(modes[i].name, first) == 0)
            trees->mode = modes[i].kind;
    if (inf_build_ok(&s->b) && first != NULL && trees->mode == INF_COMPARE_COUNT)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "nodes compare by %.20s", first);
}

// Fills the tables of features and children, and counts the parents of each node in `parents`.
// Latches a failure if a child does not exist or has two parents.
static void link_nodes(struct inf_onnx_scope *s, struct trees *trees, const bool *is_leaf,
                       uint8_t *parents)
{
    const int64_t *to[2] = {read_ints(s, "nodes_truenodeids", trees->count, NULL),
                            read_ints(s, "nodes_falsenodeids", trees->count, NULL)};
    const int64_t *features = read_ints(s, "nodes_featureids", trees->count, NULL);
    int64_t width = inf_build_known_dim(&s->b, s->inputs[0], 1);
    for (int64_t i = 0; inf_build_ok(&s->b) && i < trees->count; i++) {
        int32_t *const tables[] = {trees->true_nodes, trees->false_nodes};
        trees->features[i] = is_leaf[i] ? 0 : (int32_t)features[i];
        if (!is_leaf[i] && (features[i] < 0 || features[i] >= width))
            inf_build_fail(&s->b, INF_INVALID, "node %lld reads feature %lld of %lld", (long long)i,
                           (long long)features[i], (long long)width);
        for (int side = 0; inf_build_ok(&s->b) && side < 2; side++) {
            int64_t child = is_leaf[i] ? i : find_node(trees, trees->tree_ids[i], to[side][i]);
            if (child < 0 || (!is_leaf[i] && (child == i || parents[child]++ > 0)))
                inf_build_fail(&s->b, INF_INVALID, "node %lld has a child that is none",
                               (long long)i);
            tables[side][i] = (int32_t)child;
        }
    }
}

// Latches a failure unless every tree has exactly one root from which all its nodes are reached.
static void check_roots(struct inf_onnx_scope *s, const struct trees *trees, const uint8_t *parents,
                        const int32_t *depths)
{
    const int64_t *rooted = NULL; // tree id of the root that was found last
    for (int64_t i = 0; inf_build_ok(&s->b) && i < trees->count; i++) {
        uint32_t node = trees->order[i];
        const int64_t *tree = &trees->tree_ids[node];
        bool is_root = parents[node] == 0;
        if (is_root ? rooted != NULL && *rooted == *tree : depths[node] == 0)
            inf_build_fail(&s->b, INF_INVALID, "node %u is in no tree with a root of its own",
                           node);
        rooted = is_root ? tree : rooted;
    }
}

// Finds the roots, and the depth of each node and of the deepest tree. Every node has at most one
// parent, so a walk from the roots ends. Nodes in a cycle are not reached, so their depth stays 0.
static void find_roots(struct inf_onnx_scope *s, struct trees *trees, const bool *is_leaf,
                       const uint8_t *parents, int32_t *depths)
{
    int32_t *roots;
    for (int64_t i = 0; i < trees->count; i++)
        trees->root_count += parents[i] == 0;
    trees->roots = inf_build_const(&s->b, INF_DTYPE_I32, &INF_SHAPE(trees->root_count), &roots);
    if (roots == NULL || trees->root_count == 0) {
        inf_build_fail(&s->b, INF_INVALID, "the trees have no root");
        return;
    }
    for (int64_t i = 0, at = 0; i < trees->count; i++)
        if (parents[i] == 0)
            roots[at++] = (int32_t)i;
    for (int32_t level = 0; level <= DEPTH_MAX; level++)
        for (int64_t i = 0; i < trees->count; i++) {
            if (is_leaf[i] || (level == 0 ? parents[i] != 0 : depths[i] != level))
                continue;
            depths[trees->true_nodes[i]] = depths[trees->false_nodes[i]] = level + 1;
            trees->depth = level + 1;
        }
    if (trees->depth > DEPTH_MAX)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "a tree is deeper than %d", DEPTH_MAX);
    check_roots(s, trees, parents, depths);
}

// Adds the tables of the trees as constants and fills them from the attributes.
static void read_trees(struct inf_onnx_scope *s, struct trees *trees, bool *is_leaf,
                       uint8_t *parents, int32_t *depths)
{
    const struct inf_shape shape = INF_SHAPE(trees->count);
    uint32_t tracks = inf_onnx_attr_long_ints(s, "nodes_missing_value_tracks_true");
    trees->value_table = inf_onnx_attr_floats(s, "nodes_values");
    trees->feature_table = inf_build_const(&s->b, INF_DTYPE_I32, &shape, &trees->features);
    trees->true_table = inf_build_const(&s->b, INF_DTYPE_I32, &shape, &trees->true_nodes);
    trees->false_table = inf_build_const(&s->b, INF_DTYPE_I32, &shape, &trees->false_nodes);
    trees->track_table = inf_build_const(&s->b, INF_DTYPE_BOOL, &shape, &trees->tracks);
    if (trees->value_table == INF_VALUE_NONE ||
        inf_build_dim(&s->b, trees->value_table, 0) != trees->count)
        inf_build_fail(&s->b, INF_INVALID, "nodes_values is not one number for each node");
    if (inf_build_ok(&s->b) && tracks != INF_VALUE_NONE &&
        inf_build_dim(&s->b, tracks, 0) == trees->count) {
        const int64_t *flags = s->b.graph->values[tracks].data->data;
        for (int64_t i = 0; i < trees->count; i++) {
            trees->tracks[i] = flags[i] != 0;
            trees->has_tracks |= flags[i] != 0;
        }
    }
    read_modes(s, trees, is_leaf);
    for (int64_t i = 0; inf_build_ok(&s->b) && i < trees->count; i++)
        trees->order[i] = (uint32_t)i;
    if (inf_build_ok(&s->b))
        qsort_r(trees->order, (size_t)trees->count, sizeof *trees->order, compare_nodes, trees);
    link_nodes(s, trees, is_leaf, parents);
    if (inf_build_ok(&s->b))
        find_roots(s, trees, is_leaf, parents, depths);
}

// Adds nodes that compute the index of the leaf that each row of x reaches in each tree, [rows,
// trees].
static uint32_t walk_trees(struct inf_onnx_scope *s, const struct trees *trees, uint32_t x)
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
        uint32_t right =
            inf_build_compare(&s->b, trees->depth > 0 ? trees->mode : INF_COMPARE_EQUAL, value,
                              inf_build_gather(&s->b, trees->value_table, at, 0));
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

// Adds a constant [nodes, outputs], the weight of each node for each output. `prefix` begins the
// names of the attributes with the weights: "target" or "class".
static uint32_t add_weights(struct inf_onnx_scope *s, const struct trees *trees, const char *prefix,
                            int64_t outputs)
{
    char names[4][32];
    static const char *const ends[] = {"treeids", "nodeids", "ids", "weights"};
    const int64_t *ids[3];
    int64_t count = -1;
    float *table;
    for (int i = 0; i < 4; i++)
        snprintf(names[i], sizeof names[i], "%s_%s", prefix, ends[i]);
    for (int i = 0; i < 3; i++)
        ids[i] = read_ints(s, names[i], count, &count);
    uint32_t value = inf_onnx_attr_floats(s, names[3]);
    if (value == INF_VALUE_NONE || inf_build_dim(&s->b, value, 0) != count || outputs < 1 ||
        outputs > INF_LIMIT_NODE_INPUTS)
        inf_build_fail(&s->b, INF_INVALID, "%s is not one number for each leaf", names[3]);
    if (!inf_build_ok(&s->b))
        return INF_VALUE_NONE;
    uint32_t result =
        inf_build_const(&s->b, INF_DTYPE_F32, &INF_SHAPE(trees->count, outputs), &table);
    const float *weights = s->b.code == INF_OK ? s->b.graph->values[value].data->data : NULL;
    for (int64_t i = 0; inf_build_ok(&s->b) && i < count; i++) {
        int64_t node = find_node(trees, ids[0][i], ids[1][i]);
        if (node < 0 || ids[2][i] < 0 || ids[2][i] >= outputs)
            inf_build_fail(&s->b, INF_INVALID, "weight %lld is for no node or no output",
                           (long long)i);
        else
            table[node * outputs + ids[2][i]] += weights[i];
    }
    return result;
}

// Adds nodes that compute the scores [rows, outputs]: the sum or average of the weights of the
// leaves that a row reaches, plus base_values.
static uint32_t add_scores(struct inf_onnx_scope *s, const struct trees *trees, const char *prefix,
                           int64_t outputs)
{
    const struct inf_ints axis = {.count = 1, .values = {1}};
    const char *function = inf_onnx_attr_text(s, "aggregate_function", "SUM");
    bool mean = strcmp(function, "AVERAGE") == 0;
    uint32_t base = inf_onnx_attr_floats(s, "base_values");
    uint32_t weights = add_weights(s, trees, prefix, outputs);
    uint32_t x = inf_build_cast(&s->b, s->inputs[0], INF_DTYPE_F32);
    (void)inf_onnx_find_attr(s, "nodes_hitrates");
    if (!mean && strcmp(function, "SUM") != 0)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "aggregate_function is '%.20s'", function);
    if (!inf_build_ok(&s->b))
        return INF_VALUE_NONE;
    uint32_t y = inf_build_gather(&s->b, weights, walk_trees(s, trees, x), 0);
    y = inf_build_reduce(&s->b, INF_REDUCE_SUM, y, &axis, false);
    if (mean)
        y = inf_build_binary_number(&s->b, INF_BINARY_DIV, y, (double)trees->root_count);
    return base == INF_VALUE_NONE ? y : inf_build_add(&s->b, y, base);
}

static void lower_regressor(struct inf_onnx_scope *s, const struct trees *trees)
{
    uint32_t y = add_scores(s, trees, "target", inf_onnx_attr_int(s, "n_targets", 1));
    s->outputs[0] = inf_onnx_post_transform(s, y);
}

// Lowers a classifier. A classifier is refused if all its weights are for one
// class: ONNX computes the scores of the second class from those of the first by special rules.
static void lower_classifier(struct inf_onnx_scope *s, const struct trees *trees)
{
    int64_t outputs = 0, count = 0;
    uint32_t labels = inf_onnx_attr_labels(s, "classlabels_int64s", "classlabels_strings");
    const int64_t *ids = read_ints(s, "class_ids", -1, &count);
    outputs = inf_build_ok(&s->b) ? inf_build_known_dim(&s->b, labels, 0) : 0;
    bool is_single = true;
    for (int64_t i = 0; inf_build_ok(&s->b) && i < count; i++)
        is_single &= ids[i] == ids[0];
    if (inf_build_ok(&s->b) && is_single)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "only one class of %lld has weights",
                       (long long)outputs);
    uint32_t y = add_scores(s, trees, "class", outputs);
    if (!inf_build_ok(&s->b))
        return;
    struct inf_build_node node = inf_build_describe(INF_OP_ARG, y, INF_VALUE_NONE, INF_VALUE_NONE);
    node.attrs.arg.axis = 1;
    s->outputs[0] = inf_build_gather(&s->b, labels, inf_build_value(&s->b, &node), 0);
    if (s->output_count > 1)
        s->outputs[1] = inf_onnx_post_transform(s, y);
}

static void lower_ensemble(struct inf_onnx_scope *s)
{
    struct trees trees = {.count = 0};
    trees.tree_ids = read_ints(s, "nodes_treeids", -1, &trees.count);
    trees.node_ids = read_ints(s, "nodes_nodeids", trees.count, NULL);
    size_t count = (size_t)trees.count + 1;
    bool *is_leaf = calloc(count, sizeof *is_leaf);
    uint8_t *parents = calloc(count, sizeof *parents);
    int32_t *depths = calloc(count, sizeof *depths);
    trees.order = calloc(count, sizeof *trees.order);
    if (is_leaf == NULL || parents == NULL || depths == NULL || trees.order == NULL)
        inf_build_fail(&s->b, INF_EXHAUSTED, "no memory");
    if (inf_build_rank(&s->b, s->inputs[0]) != 2)
        inf_build_fail(&s->b, INF_INVALID, "x is no matrix");
    if (inf_build_ok(&s->b))
        read_trees(s, &trees, is_leaf, parents, depths);
    if (inf_build_ok(&s->b) && s->op->kind == 0)
        lower_regressor(s, &trees);
    else if (inf_build_ok(&s->b))
        lower_classifier(s, &trees);
    free(trees.order);
    free(depths);
    free(parents);
    free(is_leaf);
}

static const struct inf_onnx_op ops[] = {
    {"ai.onnx.ml::TreeEnsembleRegressor", lower_ensemble, 1, 1, 1, 0},
    {"ai.onnx.ml::TreeEnsembleClassifier", lower_ensemble, 1, 1, 2, 1},
};

const struct inf_onnx_op_table inf_onnx_ops_trees = {ops, INF_ARRAY_LENGTH(ops)};
