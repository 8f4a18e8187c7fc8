// SPDX-License-Identifier: Apache-2.0
// TreeEnsembleRegressor and TreeEnsembleClassifier, which list nodes and leaves by the ids of their
// trees and nodes. trees.c walks the tables that are made of the lists here.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/classic/classes.h"
#include "backends/import/onnx/classic/trees.h"
#include "backends/import/onnx/keys.h"
#include "backends/import/onnx/op_table.h"

// The trees, and what finds their nodes by their ids.
struct listed {
    struct inf_trees trees;
    const int64_t *tree_ids, *node_ids;
    uint32_t *order; // indices of the nodes, sorted by tree id and then by node id
};

static int compare_places(const struct listed *listed, uint32_t a, int64_t tree, int64_t node)
{
    if (listed->tree_ids[a] != tree)
        return listed->tree_ids[a] < tree ? -1 : 1;
    return (listed->node_ids[a] > node) - (listed->node_ids[a] < node);
}

static int compare_nodes(const void *a, const void *b, void *context)
{
    const struct listed *listed = context;
    uint32_t other = *(const uint32_t *)b;
    return compare_places(listed, *(const uint32_t *)a, listed->tree_ids[other],
                          listed->node_ids[other]);
}

// Returns the index of the node with id `node` in the tree with id `tree`; -1 if there is none.
static int64_t find_node(const struct listed *listed, int64_t tree, int64_t node)
{
    int64_t low = 0, high = listed->trees.count;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        int order = compare_places(listed, listed->order[middle], tree, node);
        if (order == 0)
            return listed->order[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

// Reads the attribute nodes_modes. Sets is_leaf[i] for each node i.
static void read_modes(struct inf_onnx_scope *s, struct inf_trees *trees, bool *is_leaf)
{
    static const char *const names[] = {
        [INF_TREE_LEQ] = "BRANCH_LEQ", [INF_TREE_LT] = "BRANCH_LT", [INF_TREE_GTE] = "BRANCH_GTE",
        [INF_TREE_GT] = "BRANCH_GT",   [INF_TREE_EQ] = "BRANCH_EQ", [INF_TREE_NEQ] = "BRANCH_NEQ"};
    const char *const *texts;
    uint32_t count = inf_onnx_attr_texts(s, "nodes_modes", &texts);
    if (count != trees->count)
        inf_build_fail(&s->b, INF_INVALID, "nodes_modes has %u texts for %lld nodes", count,
                       (long long)trees->count);
    for (int64_t i = 0; inf_build_ok(&s->b) && i < trees->count; i++) {
        uint32_t mode = 0;
        is_leaf[i] = strcmp(texts[i], "LEAF") == 0;
        if (is_leaf[i])
            continue;
        while (mode < INF_ARRAY_LENGTH(names) && strcmp(names[mode], texts[i]) != 0)
            mode++;
        if (mode == INF_ARRAY_LENGTH(names))
            inf_build_fail(&s->b, INF_UNSUPPORTED, "nodes compare by %.20s", texts[i]);
        trees->modes[i] = (int32_t)mode;
        trees->modes_used |= 1u << mode;
    }
}

// Fills the tables of features and children, and counts the parents of each node in `parents`.
// Latches a failure if a child does not exist or has two parents.
static void link_nodes(struct inf_onnx_scope *s, struct listed *listed, const bool *is_leaf,
                       uint8_t *parents)
{
    struct inf_trees *trees = &listed->trees;
    const int64_t *to[2] = {inf_trees_read_ints(s, "nodes_truenodeids", trees->count, NULL),
                            inf_trees_read_ints(s, "nodes_falsenodeids", trees->count, NULL)};
    const int64_t *features = inf_trees_read_ints(s, "nodes_featureids", trees->count, NULL);
    int64_t width = inf_trees_count_features(s);
    for (int64_t i = 0; inf_build_ok(&s->b) && i < trees->count; i++) {
        int32_t *const tables[] = {trees->true_nodes, trees->false_nodes};
        trees->features[i] = is_leaf[i] ? 0 : (int32_t)features[i];
        if (!is_leaf[i] && (features[i] < 0 || features[i] >= width))
            inf_build_fail(&s->b, INF_INVALID, "node %lld reads feature %lld of %lld", (long long)i,
                           (long long)features[i], (long long)width);
        for (int side = 0; inf_build_ok(&s->b) && side < 2; side++) {
            int64_t child = is_leaf[i] ? i : find_node(listed, listed->tree_ids[i], to[side][i]);
            if (child < 0 || (!is_leaf[i] && (child == i || parents[child]++ > 0)))
                inf_build_fail(&s->b, INF_INVALID, "node %lld has a child that is none",
                               (long long)i);
            tables[side][i] = (int32_t)child;
        }
    }
}

// Latches a failure unless every tree has exactly one root from which all its nodes are reached.
static void check_roots(struct inf_onnx_scope *s, const struct listed *listed,
                        const uint8_t *parents, const int32_t *depths)
{
    const int64_t *rooted = NULL; // tree id of the root that was found last
    for (int64_t i = 0; inf_build_ok(&s->b) && i < listed->trees.count; i++) {
        uint32_t node = listed->order[i];
        const int64_t *tree = &listed->tree_ids[node];
        bool is_root = parents[node] == 0;
        if (is_root ? rooted != NULL && *rooted == *tree : depths[node] == 0)
            inf_build_fail(&s->b, INF_INVALID, "node %u is in no tree with a root of its own",
                           node);
        rooted = is_root ? tree : rooted;
    }
}

// Finds the roots, and the depth of each node and of the deepest tree. Every node has at most one
// parent, so a walk from the roots ends. Nodes in a cycle are not reached, so their depth stays 0.
static void find_roots(struct inf_onnx_scope *s, struct listed *listed, const bool *is_leaf,
                       const uint8_t *parents, int32_t *depths)
{
    struct inf_trees *trees = &listed->trees;
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
    for (int32_t level = 0; level <= INF_TREES_DEPTH_MAX; level++)
        for (int64_t i = 0; i < trees->count; i++) {
            if (is_leaf[i] || (level == 0 ? parents[i] != 0 : depths[i] != level))
                continue;
            depths[trees->true_nodes[i]] = depths[trees->false_nodes[i]] = level + 1;
            trees->depth = level + 1;
        }
    if (trees->depth > INF_TREES_DEPTH_MAX)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "a tree is deeper than %d", INF_TREES_DEPTH_MAX);
    check_roots(s, listed, parents, depths);
}

// Reads the numbers of attribute `name`, or of NAME_as_tensor if that is there. Returns a constant
// of shape [count]; latches a failure if there are not `count` numbers.
static uint32_t read_numbers(struct inf_onnx_scope *s, const char *name, int64_t count)
{
    char tensor_name[48];
    snprintf(tensor_name, sizeof tensor_name, "%s_as_tensor", name);
    uint32_t value = inf_onnx_attr_tensor(s, tensor_name);
    uint32_t floats = inf_onnx_attr_floats(s, name);
    if (value == INF_VALUE_NONE || inf_build_dim(&s->b, value, 0) == 0)
        value = floats;
    if (inf_build_ok(&s->b) && (value == INF_VALUE_NONE || inf_build_rank(&s->b, value) != 1 ||
                                inf_build_dim(&s->b, value, 0) != count ||
                                !inf_dtype_is_float(inf_build_dtype(&s->b, value))))
        inf_build_fail(&s->b, INF_INVALID, "%s is not one number for each of %lld", name,
                       (long long)count);
    return value;
}

// Adds the tables of the trees as constants and fills them from the attributes.
static void read_trees(struct inf_onnx_scope *s, struct listed *listed, bool *is_leaf,
                       uint8_t *parents, int32_t *depths)
{
    struct inf_trees *trees = &listed->trees;
    inf_trees_make_tables(s, trees);
    trees->value_table = read_numbers(s, "nodes_values", trees->count);
    if (inf_build_ok(&s->b))
        inf_trees_read_tracks(s, trees, trees->count);
    read_modes(s, trees, is_leaf);
    for (int64_t i = 0; inf_build_ok(&s->b) && i < trees->count; i++)
        listed->order[i] = (uint32_t)i;
    if (inf_build_ok(&s->b))
        qsort_r(listed->order, (size_t)trees->count, sizeof *listed->order, compare_nodes, listed);
    link_nodes(s, listed, is_leaf, parents);
    if (inf_build_ok(&s->b))
        find_roots(s, listed, is_leaf, parents, depths);
}

// --- scores ---

static enum inf_tree_aggregate read_aggregate(struct inf_onnx_scope *s)
{
    static const char *const names[] = {[INF_TREE_AVERAGE] = "AVERAGE",
                                        [INF_TREE_SUM] = "SUM",
                                        [INF_TREE_MIN] = "MIN",
                                        [INF_TREE_MAX] = "MAX"};
    const char *name = inf_onnx_attr_text(s, "aggregate_function", "SUM");
    for (int i = 0; i < INF_TREE_AGGREGATE_COUNT; i++)
        if (strcmp(names[i], name) == 0)
            return (enum inf_tree_aggregate)i;
    inf_build_fail(&s->b, INF_INVALID, "aggregate_function is '%.20s'", name);
    return INF_TREE_SUM;
}

// Puts the weight of one leaf into the table. A leaf that has two weights for one output has their
// sum, or the smaller or larger one.
static void put_weight(double *element, double weight, enum inf_tree_aggregate aggregate)
{
    if (aggregate == INF_TREE_MIN)
        *element = INF_MIN(*element, weight);
    else if (aggregate == INF_TREE_MAX)
        *element = INF_MAX(*element, weight);
    else
        *element += weight;
}

// The weights of the leaves, as the attributes list them.
struct weights {
    const char *prefix; // begins the names of the attributes: "target" or "class"
    const int64_t *ids; // output of each weight
    int64_t count;
    const double *numbers;
    uint32_t table; // constant [nodes, outputs]
};

// Reads the weights, and adds the table of the weight of each node for each output. If `single` is
// true, all weights are for output 0, whatever their ids are.
static void read_weights(struct inf_onnx_scope *s, const struct listed *listed,
                         struct weights *weights, int64_t outputs, bool single,
                         enum inf_tree_aggregate aggregate)
{
    char names[3][32];
    double *table;
    snprintf(names[0], sizeof names[0], "%s_treeids", weights->prefix);
    snprintf(names[1], sizeof names[1], "%s_nodeids", weights->prefix);
    snprintf(names[2], sizeof names[2], "%s_weights", weights->prefix);
    const int64_t *tree_ids = inf_trees_read_ints(s, names[0], weights->count, NULL);
    const int64_t *node_ids = inf_trees_read_ints(s, names[1], weights->count, NULL);
    uint32_t given = read_numbers(s, names[2], weights->count);
    weights->numbers = inf_trees_read_doubles(s, given);
    bool is_double = inf_build_dtype(&s->b, given) == INF_DTYPE_F64 ||
                     inf_build_dtype(&s->b, s->inputs[0]) == INF_DTYPE_F64;
    if (inf_build_ok(&s->b) && (outputs < 1 || outputs > INF_LIMIT_NODE_INPUTS))
        inf_build_fail(&s->b, INF_INVALID, "has %lld outputs", (long long)outputs);
    if (!inf_build_ok(&s->b))
        return;
    weights->table =
        inf_build_const(&s->b, INF_DTYPE_F64, &INF_SHAPE(listed->trees.count, outputs), &table);
    if (table == NULL)
        return;
    for (int64_t i = 0; i < listed->trees.count * outputs; i++)
        table[i] = (double)inf_trees_no_weight(aggregate);
    for (int64_t i = 0; inf_build_ok(&s->b) && i < weights->count; i++) {
        int64_t node = find_node(listed, tree_ids[i], node_ids[i]);
        int64_t output = single ? 0 : weights->ids[i];
        if (node < 0 || output < 0 || output >= outputs)
            inf_build_fail(&s->b, INF_INVALID, "weight %lld is for no node or no output",
                           (long long)i);
        else
            put_weight(&table[node * outputs + output], weights->numbers[i], aggregate);
    }
    if (!is_double)
        weights->table = inf_build_cast(&s->b, weights->table, INF_DTYPE_F32);
}

// Adds the scores [rows, outputs] as FP32, with base_values added if there are as many of them.
static uint32_t add_scores(struct inf_onnx_scope *s, const struct listed *listed,
                           const struct weights *weights, enum inf_tree_aggregate aggregate,
                           int64_t outputs)
{
    bool has_base = inf_onnx_find_attr(s, "base_values") != NULL ||
                    inf_onnx_find_attr(s, "base_values_as_tensor") != NULL;
    uint32_t base = has_base ? read_numbers(s, "base_values", outputs) : INF_VALUE_NONE;
    (void)inf_onnx_find_attr(s, "nodes_hitrates");
    (void)inf_onnx_find_attr(s, "nodes_hitrates_as_tensor");
    if (!inf_build_ok(&s->b))
        return INF_VALUE_NONE;
    uint32_t y = inf_trees_add_scores(s, &listed->trees, weights->table, aggregate);
    if (has_base)
        y = inf_build_add(&s->b, y, inf_build_cast(&s->b, base, inf_build_dtype(&s->b, y)));
    return inf_build_cast(&s->b, y, INF_DTYPE_F32);
}

static void lower_regressor(struct inf_onnx_scope *s, const struct listed *listed)
{
    struct weights weights = {.prefix = "target"};
    int64_t outputs = inf_onnx_attr_int(s, "n_targets", 1);
    enum inf_tree_aggregate aggregate = read_aggregate(s);
    weights.ids = inf_trees_read_ints(s, "target_ids", -1, &weights.count);
    read_weights(s, listed, &weights, outputs, false, aggregate);
    uint32_t y = add_scores(s, listed, &weights, aggregate, outputs);
    s->outputs[0] = inf_onnx_post_transform(s, y);
}

// Sets the outputs of a classifier of two classes if all weights are for one of them, as ONNX
// Runtime does. `y` is the sum of the weights, which decides: it is compared with 1/2 if no weight
// is negative, else with 0. If the weights are for the first class, which is how converters write
// it, the sum is the score of the second class all the same, and that of the first follows from it.
static void choose_by_sum(struct inf_onnx_scope *s, const struct inf_onnx_classes *classes,
                          const struct weights *weights, uint32_t y)
{
    bool positive = true, has_base = inf_onnx_find_attr(s, "base_values") != NULL;
    if (!inf_build_ok(&s->b))
        return;
    for (int64_t i = 0; i < weights->count; i++)
        positive &= weights->numbers[i] >= 0;
    inf_onnx_choose_of_two(s, classes, y, positive ? 0.5 : 0);
    if (weights->ids[0] == 0) {
        inf_onnx_set_scores(s, inf_onnx_pair_scores(s, y, positive));
        return;
    }
    if (has_base)
        inf_build_fail(&s->b, INF_UNSUPPORTED,
                       "has base_values beside weights of the second class alone: add them to the "
                       "weights of one tree");
    const uint32_t both[] = {inf_build_binary_number(&s->b, INF_BINARY_MUL, y, 0), y};
    inf_onnx_set_scores(s, inf_onnx_post_transform(s, inf_build_concat(&s->b, both, 2, 1)));
}

static void lower_classifier(struct inf_onnx_scope *s, const struct listed *listed)
{
    struct weights weights = {.prefix = "class"};
    struct inf_onnx_classes classes = {
        .labels = inf_onnx_attr_labels(s, "classlabels_int64s", "classlabels_strings")};
    weights.ids = inf_trees_read_ints(s, "class_ids", -1, &weights.count);
    classes.count = inf_build_ok(&s->b) ? inf_build_known_dim(&s->b, classes.labels, 0) : 0;
    bool single = classes.count == 2;
    for (int64_t i = 0; inf_build_ok(&s->b) && i < weights.count; i++)
        single &= weights.ids[i] == weights.ids[0];
    int64_t outputs = single ? 1 : classes.count;
    read_weights(s, listed, &weights, outputs, single, INF_TREE_SUM);
    uint32_t y = add_scores(s, listed, &weights, INF_TREE_SUM, outputs);
    if (single)
        choose_by_sum(s, &classes, &weights, y);
    else
        inf_onnx_choose_class(s, &classes, y);
}

static void lower_ensemble(struct inf_onnx_scope *s)
{
    struct listed listed = {.trees = {.count = 0}};
    struct inf_trees *trees = &listed.trees;
    listed.tree_ids = inf_trees_read_ints(s, "nodes_treeids", -1, &trees->count);
    listed.node_ids = inf_trees_read_ints(s, "nodes_nodeids", trees->count, NULL);
    size_t count = (size_t)trees->count + 1;
    bool *is_leaf = calloc(count, sizeof *is_leaf);
    uint8_t *parents = calloc(count, sizeof *parents);
    int32_t *depths = calloc(count, sizeof *depths);
    listed.order = calloc(count, sizeof *listed.order);
    if (is_leaf == NULL || parents == NULL || depths == NULL || listed.order == NULL)
        inf_build_fail(&s->b, INF_EXHAUSTED, "no memory");
    if (inf_build_rank(&s->b, s->inputs[0]) != 2)
        inf_build_fail(&s->b, INF_INVALID, "x is no matrix");
    if (inf_build_ok(&s->b))
        read_trees(s, &listed, is_leaf, parents, depths);
    if (inf_build_ok(&s->b) && s->op->kind == 0)
        lower_regressor(s, &listed);
    else if (inf_build_ok(&s->b))
        lower_classifier(s, &listed);
    free(listed.order);
    free(depths);
    free(parents);
    free(is_leaf);
}

static const struct inf_onnx_op ops[] = {
    {"ai.onnx.ml::TreeEnsembleRegressor", lower_ensemble, 1, 1, 1, 0},
    {"ai.onnx.ml::TreeEnsembleClassifier", lower_ensemble, 1, 1, 2, 1},
};

const struct inf_onnx_op_table inf_onnx_ops_trees = {ops, INF_ARRAY_LENGTH(ops)};
