// SPDX-License-Identifier: Apache-2.0
// The trees of an ensemble as tables with one element for each node, which trees.c walks. Two forms
// of attributes are read into these tables: that of TreeEnsembleRegressor and
// TreeEnsembleClassifier (trees_listed.c), and that of TreeEnsemble (trees_flat.c).
#ifndef INF_BACKENDS_IMPORT_ONNX_CLASSIC_TREES_H
#define INF_BACKENDS_IMPORT_ONNX_CLASSIC_TREES_H

#include "backends/import/onnx/scope.h"

// The largest depth of a tree. It bounds the number of graph nodes that one operator adds.
#define INF_TREES_DEPTH_MAX 64

// How an inner node compares the value of its feature with its own value. The numbers are those of
// the attribute nodes_modes of TreeEnsemble.
enum inf_tree_mode {
    INF_TREE_LEQ,
    INF_TREE_LT,
    INF_TREE_GTE,
    INF_TREE_GT,
    INF_TREE_EQ,
    INF_TREE_NEQ,
    INF_TREE_MEMBER, // whether the value is in the node's set
    INF_TREE_MODE_COUNT,
};

// How the weights of the leaves that a row reaches become a score. The numbers are those of the
// attribute aggregate_function of TreeEnsemble.
enum inf_tree_aggregate {
    INF_TREE_AVERAGE,
    INF_TREE_SUM,
    INF_TREE_MIN,
    INF_TREE_MAX,
    INF_TREE_AGGREGATE_COUNT,
};

// The members that end in _table are constants of the graph, into which `features`, `modes`,
// `true_nodes`, `false_nodes` and `tracks` point. A leaf is its own child.
struct inf_trees {
    int64_t count; // number of nodes of all trees, leaves included
    int32_t *features, *modes, *true_nodes, *false_nodes;
    uint8_t *tracks; // 1: from this node, a row whose feature is NaN goes to the true node
    uint32_t feature_table, mode_table, value_table, true_table, false_table, track_table;
    uint32_t member_table; // [count, size of the largest set], filled up with NaN; or none
    uint32_t modes_used;   // bit i: an inner node has mode i
    uint32_t roots;        // constant [root_count] of the indices of the roots
    int64_t root_count;
    int32_t depth;   // edges from a root to the farthest leaf
    bool has_tracks; // true: an element of `tracks` is 1
};

// Adds all tables except value_table and member_table, with all elements 0. Latches a failure
// unless `count` is at least 1.
void inf_trees_make_tables(struct inf_onnx_scope *s, struct inf_trees *trees);

// Reads the attribute nodes_missing_value_tracks_true, which may be absent, for the first `count`
// nodes.
void inf_trees_read_tracks(struct inf_onnx_scope *s, struct inf_trees *trees, int64_t count);

// Returns the integers of attribute `name`, and stores their number in *out_count unless out_count
// is NULL. Latches a failure and returns NULL unless there are `count` integers, or at least one if
// `count` is -1.
const int64_t *inf_trees_read_ints(struct inf_onnx_scope *s, const char *name, int64_t count,
                                   int64_t *out_count);

// Returns the number of features that a node may read: that of x, or INF_LIMIT_DIM if only a run
// knows it. In that case, the run fails if x lacks a feature.
int64_t inf_trees_count_features(struct inf_onnx_scope *s);

// Returns the elements of a constant of floats as doubles. Latches a failure and returns NULL if
// `value` is no constant, or cannot be converted because the import has no evaluator.
const double *inf_trees_read_doubles(struct inf_onnx_scope *s, uint32_t value);

// Adds nodes that compute the scores [rows, outputs] of x [rows, features] from the weights
// [nodes, outputs] of the leaves that a row reaches. In MIN and MAX, a weight of the opposite
// infinity stands for an output that a leaf does not have; the score of an output that no leaf has
// is 0. The scores have the type of the weights.
uint32_t inf_trees_add_scores(struct inf_onnx_scope *s, const struct inf_trees *trees,
                              uint32_t weights, enum inf_tree_aggregate aggregate);

// Returns the weight that stands for an output that a leaf does not have.
float inf_trees_no_weight(enum inf_tree_aggregate aggregate);

#endif
