// SPDX-License-Identifier: Apache-2.0
// Imports a graph model: reads graph, tables, signature and weights, then lowers inputs, nodes and
// outputs.
#include "backends/import/tfjs/tfjs.h"

#include <stdio.h>

#include "backends/graph/shape/infer.h"
#include "backends/graph/shape/verify.h"
#include "backends/import/common/contents.h"
#include "backends/import/tfjs/control.h"
#include "backends/import/tfjs/missing.h"
#include "backends/import/tfjs/op_table.h"
#include "backends/import/tfjs/region.h"
#include "backends/import/tfjs/signature.h"
#include "backends/import/tfjs/table.h"
#include "proto/core/limits.h"

static enum inf_code add_inputs(struct inf_tfjs_scope *scope,
                                const struct inf_tfjs_signature *signature, struct inf_error *err)
{
    for (uint32_t i = 0; i < signature->input_count; i++) {
        const struct inf_tfjs_port *port = &signature->inputs[i];
        scope->node = &scope->source->nodes[port->ref.node];
        INF_TRY(inf_tfjs_placeholder(scope, &port->shape, err));
        INF_TRY(inf_graph_add_input(scope->graph, port->name, scope->node->values[0], err));
    }
    return INF_OK;
}

static enum inf_code add_outputs(struct inf_tfjs_scope *scope,
                                 const struct inf_tfjs_signature *signature, struct inf_error *err)
{
    for (uint32_t i = 0; i < signature->output_count; i++) {
        const struct inf_tfjs_port *port = &signature->outputs[i];
        char where[128];
        uint32_t value = INF_VALUE_NONE;
        snprintf(where, sizeof where, "signature: output '%.100s'", port->name);
        INF_TRY(inf_tfjs_value(scope, &port->ref, &value, where, err));
        // A node must compute each output, so an output that is an input or constant gets an
        // identity node.
        if (scope->graph->values[value].producer == INF_NODE_NONE) {
            scope->node = &scope->source->nodes[port->ref.node];
            struct inf_build_node copy =
                inf_build_describe(INF_OP_IDENTITY, value, INF_VALUE_NONE, INF_VALUE_NONE);
            INF_TRY(inf_tfjs_emit(scope, &copy, &value, err));
        }
        INF_TRY(inf_graph_add_output(scope->graph, port->name, value, err));
    }
    return INF_OK;
}

// Lowers inputs, nodes and outputs.
static enum inf_code lower_graph(struct inf_tfjs_scope *scope,
                                 const struct inf_tfjs_signature *signature, struct inf_error *err)
{
    struct inf_tfjs_ref roots[INF_LIMIT_TENSORS];
    scope->inputs =
        inf_arena_alloc(&scope->source->arena, INF_LIMIT_NODE_INPUTS * sizeof *scope->inputs);
    if (scope->inputs == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory to build the graph");
    for (uint32_t i = 0; i < signature->output_count; i++)
        roots[i] = signature->outputs[i].ref;
    INF_TRY(inf_tfjs_control_find(scope->source, err));
    INF_TRY(add_inputs(scope, signature, err));
    INF_TRY(inf_tfjs_lower_refs(scope, roots, signature->output_count, err));
    INF_TRY(add_outputs(scope, signature, err));
    INF_TRY(inf_shape_infer(scope->graph, err));
    return inf_graph_verify(scope->graph, err);
}

// Lowers the model into the graph, which is the outermost region.
static enum inf_code lower_model(struct inf_tfjs_scope *scope,
                                 const struct inf_tfjs_signature *signature, struct inf_error *err)
{
    INF_TRY(inf_tfjs_region_begin(scope, err));
    enum inf_code code = lower_graph(scope, signature, err);
    inf_tfjs_region_end(scope);
    return code;
}

// Prints the operator of each node that the outputs need, a line each.
static void print_operators(const struct inf_tfjs_graph *graph,
                            const struct inf_file_contents *contents)
{
    if (contents == NULL || contents->operators == NULL)
        return;
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (graph->nodes[i].reachable)
            fprintf(contents->operators, "%s\n", graph->nodes[i].op);
}

static enum inf_code read_model(struct inf_graph *graph, const struct inf_json *document,
                                const struct inf_shard_place *place, struct inf_tally *tally,
                                const struct inf_import_options *options, struct inf_error *err)
{
    struct inf_json topology, manifest;
    struct inf_tfjs_signature signature;
    INF_CLEANUP(inf_tfjs_graph_destroy) struct inf_tfjs_graph *source = NULL;
    INF_CLEANUP(inf_tfjs_library_fini) struct inf_tfjs_library library = {0};
    INF_CLEANUP(inf_weights_destroy) struct inf_weights *weights = NULL;
    INF_CLEANUP(inf_tfjs_tables_fini) struct inf_tfjs_tables tables = {0};
    INF_TRY(inf_json_get(document, "modelTopology", &topology, err));
    INF_TRY(inf_tfjs_graph_create(&source, &topology, err));
    INF_TRY(inf_tfjs_tables_read(&tables, document, source, err));
    INF_TRY(inf_tfjs_signature_read(&signature, document, source, err));
    print_operators(source, options->contents);
    INF_TRY(inf_tfjs_missing_check(source, inf_tfjs_op_find, options->report, err));
    INF_TRY(inf_json_find(document, "weightsManifest", &manifest, err));
    INF_TRY(inf_weights_read(&weights, &manifest, place, tally, err));
    INF_TRY(inf_tfjs_library_init(&library, &topology, err));
    library.cancelled = options->cancelled;
    library.find_op = inf_tfjs_op_find;
    library.lower_merge = inf_tfjs_lower_merge;
    library.lower_exit = inf_tfjs_lower_exit;
    struct inf_tfjs_scope scope = {
        .graph = graph, .source = source, .library = &library, .weights = weights};
    return lower_model(&scope, &signature, err);
}

enum inf_code inf_tfjs_import(struct inf_graph **out_graph, const struct inf_json *document,
                              const struct inf_shard_place *place, struct inf_tally *tally,
                              const struct inf_import_options *options, struct inf_error *err)
{
    struct inf_graph *graph = NULL;
    INF_TRY(inf_graph_create(&graph, err));
    enum inf_code code = read_model(graph, document, place, tally, options, err);
    if (code == INF_OK)
        *out_graph = graph;
    else
        inf_graph_destroy(&graph);
    return code;
}
