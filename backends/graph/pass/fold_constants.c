// SPDX-License-Identifier: Apache-2.0
// Computes nodes whose inputs are all constants, once, when the model is loaded.
//
// Example: weights that a file stores transposed or dequantized, and the small integer arithmetic
// by which exporters compute shapes.
//
// Hazard: a node of a few bytes in a hostile file can ask for a large tensor or for a long loop.
// Therefore three limits hold. A single fold stays below FOLD_BYTES_MAX, or makes at most
// FOLD_GROWTH_MAX times the bytes of its inputs. All folds together may add
// at most fold_budget_bytes to the graph; this budget grows with the constants that the file itself
// has. All folds together may cost at most fold_budget_work, by an estimate that is made before
// each fold. A node beyond the limits stays in the graph and is computed in each run. A node whose
// evaluation fails also stays in the graph, so that the run reports the error.
#include <stdlib.h>

#include "backends/base/cancel.h"
#include "backends/graph/pass/passes.h"
#include "backends/graph/pass/rewrite.h"
#include "backends/graph/shape/infer.h"
#include "proto/core/span.h"

// Limit of the bytes of one fold, so that a small file cannot make a large graph. The limit does
// not hold for a fold whose result has at most FOLD_GROWTH_MAX times the bytes of its inputs,
// because the file must contain the inputs. Weights of 8 bits that are dequantised to floats grow
// by FOLD_GROWTH_MAX.
#define FOLD_BYTES_MAX  ((size_t)64 << 20)
#define FOLD_GROWTH_MAX 4u
// A table of bytes is not dequantised at load if its floats have at least this many bytes, and if
// only element-wise operators of a run read them. This saves memory, and each run dequantises the
// table.
#define TABLE_BYTES_MIN ((size_t)64 << 10)

static bool has_const_inputs(const struct inf_graph *graph, const struct inf_node *node)
{
    if (node->op == INF_OP_BRANCH || node->op == INF_OP_LOOP)
        return false; // branches and loops have no kernel that could compute them at load
    if (node->op == INF_OP_RANDOM && node->attrs.random.seed == 0)
        return false; // seed 0 asks for different random numbers in every run
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != INF_VALUE_NONE && !inf_graph_is_const(graph, node->inputs[i]))
            return false;
    return true;
}

// Returns the bytes of the node's inputs, which are constants.
static size_t count_input_bytes(const struct inf_graph *graph, const struct inf_node *node)
{
    size_t total_bytes = 0;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != INF_VALUE_NONE && graph->values[node->inputs[i]].data != NULL)
            total_bytes += graph->values[node->inputs[i]].data->size_bytes;
    return total_bytes;
}

// Returns whether the outputs have known sizes within the limits. Stores the sum of their sizes in
// *total_bytes.
static bool outputs_fit(const struct inf_rewrite *rewrite, const struct inf_node *node,
                        size_t *total_bytes)
{
    *total_bytes = 0;
    for (uint32_t i = 0; i < node->output_count; i++) {
        const struct inf_value *value = &rewrite->graph->values[node->outputs[i]];
        size_t size_bytes;
        if (!inf_shape_bytes(&value->shape, value->dtype, &size_bytes) ||
            !inf_size_add(*total_bytes, size_bytes, total_bytes))
            return false;
    }
    bool small = *total_bytes < FOLD_BYTES_MAX ||
                 *total_bytes / FOLD_GROWTH_MAX <= count_input_bytes(rewrite->graph, node);
    return small && *total_bytes <= *rewrite->fold_budget_bytes;
}

// Subtracts the node's estimated work from the work that folding may still do. Returns false if
// less work is left than the node needs.
static bool afford_work(struct inf_rewrite *rewrite, const struct inf_node *node)
{
    uint64_t work = inf_node_work(rewrite->graph, node);
    if (work > *rewrite->fold_budget_work)
        return false;
    *rewrite->fold_budget_work -= work;
    return true;
}

static enum inf_code fold_node(struct inf_rewrite *rewrite, uint32_t index, size_t total_bytes)
{
    struct inf_graph *graph = rewrite->graph;
    uint32_t count = graph->nodes[index].output_count;
    const uint32_t *outputs = graph->nodes[index].outputs;
    struct inf_blob **blobs = calloc(count, sizeof *blobs);
    if (blobs == NULL)
        return inf_fail_reason(rewrite->err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory");
    // A node that cannot be computed stays in the graph and fails at run time, as it should.
    enum inf_code code = inf_evaluator_compute(rewrite->evaluator, graph, index, blobs);
    bool folded = code == INF_OK;
    if (code == INF_EXHAUSTED)
        inf_fail_reason(rewrite->err, code, INF_REASON_HOST_OOM,
                        "node '%s': no memory for its %zu constant bytes", graph->nodes[index].name,
                        total_bytes);
    if (folded) {
        inf_rewrite_remove(rewrite, index);
        *rewrite->fold_budget_bytes -= total_bytes;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (folded && rewrite->uses[outputs[i]] > 0)
            graph->values[outputs[i]].data = blobs[i];
        else
            inf_blob_unref(&blobs[i]);
    }
    free(blobs);
    return code == INF_EXHAUSTED ? code : INF_OK;
}

// Determines the sizes of outputs that depend on the values of inputs, which are constants here.
// The measured shapes are used for folding only and are not kept in the graph.
static bool measure_outputs(struct inf_rewrite *rewrite, uint32_t index)
{
    const struct inf_evaluator *evaluator = rewrite->evaluator;
    const struct inf_node *node = &rewrite->graph->nodes[index];
    struct inf_shape shapes[4];
    struct inf_error ignored = {0};
    bool known = true;
    for (uint32_t i = 0; i < node->output_count; i++)
        known &= inf_shape_known(&rewrite->graph->values[node->outputs[i]].shape);
    if (known)
        return true;
    if (evaluator->measure == NULL || node->output_count > INF_ARRAY_LENGTH(shapes))
        return false;
    for (uint32_t i = 0; i < node->output_count; i++)
        shapes[i] = rewrite->graph->values[node->outputs[i]].shape;
    if (evaluator->measure(evaluator->context, rewrite->graph, index, shapes, &ignored) != INF_OK)
        return false;
    for (uint32_t i = 0; i < node->output_count; i++)
        rewrite->graph->values[node->outputs[i]].shape = shapes[i];
    return true;
}

static bool is_dequantized_bytes(const struct inf_graph *graph, const struct inf_node *node)
{
    return node->op == INF_OP_DEQUANTIZE &&
           inf_dtype_size(graph->values[node->inputs[0]].dtype) == 1;
}

// Returns true if the node dequantises a large table of bytes, and only element-wise operators read
// the floats, each with another operand that a run computes. An operator whose other operand is a
// constant, such as a factor of weights, is folded together with the node.
static bool makes_table(const struct inf_graph *graph, const struct inf_node *node)
{
    const struct inf_value *table = &graph->values[node->outputs[0]];
    size_t size_bytes;
    if (!is_dequantized_bytes(graph, node) ||
        !inf_shape_bytes(&table->shape, table->dtype, &size_bytes) || size_bytes < TABLE_BYTES_MIN)
        return false;
    for (uint32_t i = 0; i < graph->output_count; i++)
        if (graph->outputs[i].value == node->outputs[0])
            return false;
    for (uint32_t i = 0; i < graph->node_count; i++)
        for (uint32_t k = 0; k < graph->nodes[i].input_count; k++)
            if (graph->nodes[i].inputs[k] == node->outputs[0] &&
                (graph->nodes[i].op != INF_OP_BINARY ||
                 inf_graph_is_const(graph, graph->nodes[i].inputs[1 - k])))
                return false;
    return true;
}

enum inf_code inf_pass_fold_constants(struct inf_rewrite *rewrite)
{
    struct inf_graph *graph = rewrite->graph;
    if (rewrite->evaluator == NULL)
        return INF_OK;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct inf_node *node = &graph->nodes[i];
        size_t total_bytes;
        // Infer the shape again, because folding an earlier node may have made it known.
        if (rewrite->changed)
            INF_TRY(inf_shape_infer_node(graph, i, rewrite->err));
        bool known = node->op == INF_OP_SHAPE
                         ? inf_shape_known(&graph->values[node->inputs[0]].shape)
                         : has_const_inputs(graph, node);
        if ((rewrite->keep_bytes && is_dequantized_bytes(graph, node)) || makes_table(graph, node))
            continue;
        if (!known || !afford_work(rewrite, node) || !measure_outputs(rewrite, i))
            continue;
        if (inf_is_cancelled(rewrite->cancelled))
            return inf_fail(rewrite->err, INF_CANCELLED, "cancelled before node '%s' was folded",
                            node->name);
        if (outputs_fit(rewrite, node, &total_bytes))
            INF_TRY(fold_node(rewrite, i, total_bytes));
        // the node was not folded, so replace the measured shapes by the inferred ones
        if (!rewrite->removed[i])
            INF_TRY(inf_shape_infer_node(graph, i, rewrite->err));
    }
    return INF_OK;
}
