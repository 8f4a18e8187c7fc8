// SPDX-License-Identifier: Apache-2.0
// Runs the passes in rounds until no pass changes the graph, at most ROUNDS_MAX. After each change
// shapes are inferred again and the graph is verified, so that a faulty pass is found at once.
// Subgraphs get the same passes.
#include "backends/graph/pass/pass.h"

#include <string.h>

#include "backends/base/cancel.h"
#include "backends/graph/pass/passes.h"
#include "backends/graph/pass/rewrite.h"
#include "backends/graph/print.h"
#include "backends/graph/shape/infer.h"
#include "backends/graph/shape/verify.h"

#define ROUNDS_MAX 8
// In the first ROUNDS_BYTES rounds, constants that are dequantised from 8 bits are not folded to
// floats. They stay bytes, so that one round can move transposes away and the next can replace
// float operators by operators on bytes.
#define ROUNDS_BYTES 3
// Bytes that folding may add: FOLD_EXTRA_BYTES, plus FOLD_GROWTH times the constants of the model.
// The limit is enough for real models, whose weights are transposed, widened or dequantised from 8
// bits once, and too small for a hostile file.
#define FOLD_EXTRA_BYTES ((size_t)64 << 20)
#define FOLD_GROWTH      4u
// Bytes that scaled copies of shared filters may add: the constants of the model divided by
// COPY_DIVISOR. Detection heads whose convolutions share filters, but not the normalisation behind
// them, need less; without a limit, N convolutions of one filter would have N copies of it.
#define COPY_DIVISOR 2u
// Limit of the work of all folds, in units of inf_node_work(): FOLD_EXTRA_WORK, which is about half
// a second of the reference kernels, plus FOLD_WORK_EACH_BYTE for each byte of the constants.
#define FOLD_EXTRA_WORK     ((uint64_t)1 << 26)
#define FOLD_WORK_EACH_BYTE 4u

static const struct {
    const char *name;
    enum inf_code (*run)(struct inf_rewrite *rewrite);
    // the pass replaces the whole list of nodes, so it runs without inf_rewrite_begin() and
    // inf_rewrite_end()
    bool is_whole;
} passes[INF_PASS_COUNT] = {
    [INF_PASS_INLINE] = {"inline", inf_pass_inline, .is_whole = true},
    [INF_PASS_WIDEN] = {"widen", inf_pass_widen},
    [INF_PASS_DROP_IDENTITIES] = {"drop_identities", inf_pass_drop_identities},
    [INF_PASS_FOLD_CONSTANTS] = {"fold_constants", inf_pass_fold_constants},
    [INF_PASS_RECOGNIZE] = {"recognize", inf_pass_recognize},
    [INF_PASS_SHARE_HEADS] = {"share_heads", inf_pass_share_heads, .is_whole = true},
    [INF_PASS_LAYOUT] = {"layout", inf_pass_layout},
    [INF_PASS_FUSE_DILATION] = {"fuse_dilation", inf_pass_fuse_dilation},
    [INF_PASS_QUANTIZE] = {"quantize", inf_pass_quantize},
    [INF_PASS_FOLD_BATCH_NORM] = {"fold_batch_norm", inf_pass_fold_batch_norm},
    [INF_PASS_FOLD_OPERAND] = {"fold_operand", inf_pass_fold_operand},
    [INF_PASS_FUSE_BIAS] = {"fuse_bias", inf_pass_fuse_bias},
    [INF_PASS_FUSE_ACTIVATION] = {"fuse_activation", inf_pass_fuse_activation},
    [INF_PASS_FUSE_PAD] = {"fuse_pad", inf_pass_fuse_pad},
    [INF_PASS_FUSE_TRANSPOSE] = {"fuse_transpose", inf_pass_fuse_transpose},
    [INF_PASS_DROP_DEAD] = {"drop_dead", inf_pass_drop_dead},
};

const char *inf_pass_name(enum inf_pass pass)
{
    return (uint32_t)pass < INF_PASS_COUNT ? passes[pass].name : "?";
}

enum inf_pass inf_pass_parse(const char *name)
{
    for (int pass = 0; pass < INF_PASS_COUNT; pass++)
        if (strcmp(passes[pass].name, name) == 0)
            return (enum inf_pass)pass;
    return INF_PASS_COUNT;
}

// Runs one pass. If it changed the graph, infers the shapes again and verifies the graph.
static enum inf_code run_pass(struct inf_rewrite *rewrite, enum inf_pass pass, bool *changed)
{
    rewrite->changed = false;
    enum inf_code code = passes[pass].is_whole ? INF_OK : inf_rewrite_begin(rewrite);
    if (code == INF_OK)
        code = passes[pass].run(rewrite);
    if (code == INF_OK && !passes[pass].is_whole)
        code = inf_rewrite_end(rewrite);
    inf_rewrite_fini(rewrite);
    if (code == INF_OK && rewrite->changed)
        code = inf_shape_infer(rewrite->graph, rewrite->err);
    if (code == INF_OK && rewrite->changed)
        code = inf_graph_verify(rewrite->graph, rewrite->err);
    if (code != INF_OK)
        return inf_error_prefix(rewrite->err, code, "pass %s", passes[pass].name);
    *changed |= rewrite->changed;
    return INF_OK;
}

static enum inf_code run_round(struct inf_rewrite *rewrite, const struct inf_pass_options *options,
                               int round, bool *changed)
{
    for (int pass = 0; pass < INF_PASS_COUNT; pass++) {
        if (options->disabled & 1u << pass)
            continue;
        if (inf_is_cancelled(options->cancelled))
            return inf_fail(rewrite->err, INF_CANCELLED, "cancelled before pass %s",
                            passes[pass].name);
        INF_TRY(run_pass(rewrite, (enum inf_pass)pass, changed));
        if (options->dump == NULL)
            continue;
        fprintf(options->dump, "# round %d, after %s%s\n", round, passes[pass].name,
                rewrite->changed ? "" : ": no change");
        if (rewrite->changed)
            inf_graph_print(rewrite->graph, options->dump);
    }
    return INF_OK;
}

// If a node always passes the same constant to its subgraph, adds that constant to the subgraph,
// and lets the subgraph's nodes read it instead of the input. The input remains, but no node reads
// it.
static enum inf_code hand_in_constants(struct inf_graph *graph, const struct inf_node *node,
                                       struct inf_graph *subgraph, struct inf_error *err)
{
    uint32_t first = node->input_count - subgraph->input_count;
    // Skip the first inputs of a loop, one for each output: they are the loop variables, whose
    // values change between iterations.
    uint32_t begin = node->op == INF_OP_LOOP ? node->output_count : 0;
    for (uint32_t i = begin; i < subgraph->input_count; i++) {
        const struct inf_value *value = &graph->values[node->inputs[first + i]];
        uint32_t constant;
        if (value->data == NULL)
            continue;
        INF_TRY(inf_graph_add_const(subgraph, value->name, value->dtype, &value->shape,
                                    inf_blob_ref(value->data), &constant, err));
        inf_graph_replace_uses(subgraph, subgraph->inputs[i].value, constant);
    }
    return INF_OK;
}

// Runs the passes in the subgraphs, recursively. The recursion depth is at most
// INF_LIMIT_GRAPH_DEPTH.
static enum inf_code run_subgraphs(struct inf_graph *graph, const struct inf_pass_options *options,
                                   struct inf_error *err)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        int32_t *indices[2];
        if (!inf_node_subgraphs(&graph->nodes[i], indices))
            continue;
        for (int k = 0; k < 2; k++) {
            struct inf_graph *subgraph = graph->subgraphs[*indices[k]];
            if (!(options->disabled & 1u << INF_PASS_FOLD_CONSTANTS))
                INF_TRY(hand_in_constants(graph, &graph->nodes[i], subgraph, err));
            enum inf_code code = inf_passes_run(subgraph, options, err);
            if (code != INF_OK)
                return inf_error_prefix(err, code, "in node '%s'", graph->nodes[i].name);
        }
    }
    return INF_OK;
}

static bool has_dequantize(const struct inf_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (graph->nodes[i].op == INF_OP_DEQUANTIZE)
            return true;
    return false;
}

enum inf_code inf_passes_run(struct inf_graph *graph, const struct inf_pass_options *options,
                             struct inf_error *err)
{
    INF_TRY(inf_shape_infer(graph, err));
    INF_TRY(inf_graph_verify(graph, err));
    uint64_t const_bytes = INF_MIN(inf_graph_cost(graph).const_bytes, SIZE_MAX / 8);
    size_t fold_budget_bytes = FOLD_EXTRA_BYTES + FOLD_GROWTH * (size_t)const_bytes;
    size_t copy_budget_bytes = (size_t)const_bytes / COPY_DIVISOR;
    uint64_t fold_budget_work = FOLD_EXTRA_WORK + FOLD_WORK_EACH_BYTE * const_bytes;
    struct inf_rewrite rewrite = {.graph = graph,
                                  .evaluator = options->evaluator,
                                  .cancelled = options->cancelled,
                                  .fold_budget_bytes = &fold_budget_bytes,
                                  .copy_budget_bytes = &copy_budget_bytes,
                                  .fold_budget_work = &fold_budget_work,
                                  .err = err};
    bool changed = true;
    bool has_bytes = has_dequantize(graph);
    // Remove nodes that nothing reads before the first round, because the budgets of folds would
    // also be spent on these nodes.
    if (!(options->disabled & 1u << INF_PASS_DROP_DEAD))
        INF_TRY(run_pass(&rewrite, INF_PASS_DROP_DEAD, &changed));
    for (int round = 1; round <= ROUNDS_MAX && changed; round++) {
        rewrite.keep_bytes =
            !(options->disabled & 1u << INF_PASS_QUANTIZE) && has_bytes && round <= ROUNDS_BYTES;
        changed = rewrite.keep_bytes;
        INF_TRY(run_round(&rewrite, options, round, &changed));
    }
    if (graph->subgraph_count == 0)
        return INF_OK;
    INF_TRY(run_subgraphs(graph, options, err));
    // Infer again, because the passes may have made more shapes of the subgraphs known.
    INF_TRY(inf_shape_infer(graph, err));
    return inf_graph_verify(graph, err);
}
