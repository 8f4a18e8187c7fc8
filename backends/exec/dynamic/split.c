// SPDX-License-Identifier: Apache-2.0
// Splits a graph in two parts. The planned part has the nodes whose shapes are known and that
// depend on no interpreted node. The interpreted part, called `rest`, has all other nodes. A value
// that the rest reads from the planned part is an output of that part and an input of the rest.
#include "backends/exec/dynamic/split.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/graph/shape/verify.h"

// The state of the split while nodes are classified and the parts are made.
struct splitter {
    const struct inf_graph *graph;
    struct inf_split *split;
    bool *node_planned;
    bool
        *value_planned; // value_planned[v]: v is an input or a constant, or a planned node makes it
    // value_output[v]: index of value v among the planned part's outputs, or INF_SPLIT_NONE
    uint32_t *value_output;
};

static bool is_planned(const struct splitter *splitter, const struct inf_graph *graph,
                       const struct inf_node *node)
{
    if (node->op == INF_OP_BRANCH || node->op == INF_OP_LOOP)
        return false;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != INF_VALUE_NONE && !splitter->value_planned[node->inputs[i]])
            return false;
    for (uint32_t i = 0; i < node->output_count; i++)
        if (!inf_shape_known(&graph->values[node->outputs[i]].shape))
            return false;
    return true;
}

static void mark_nodes(struct splitter *splitter)
{
    const struct inf_graph *graph = splitter->graph;
    for (uint32_t v = 0; v < graph->value_count; v++) {
        splitter->value_planned[v] = graph->values[v].producer == INF_NODE_NONE;
        splitter->value_output[v] = INF_SPLIT_NONE;
    }
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct inf_node *node = &graph->nodes[i];
        splitter->node_planned[i] = is_planned(splitter, graph, node);
        for (uint32_t k = 0; k < node->output_count; k++)
            splitter->value_planned[node->outputs[k]] = splitter->node_planned[i];
    }
}

// Copies the graph with only the planned nodes if `planned` is true, or else with only the
// interpreted nodes. The copy has no outputs yet, and the copy for interpreted nodes no inputs.
static enum inf_code clone_part(const struct splitter *splitter, bool planned,
                                struct inf_graph **out_graph, struct inf_error *err)
{
    const struct inf_graph *graph = splitter->graph;
    INF_TRY(inf_graph_clone(out_graph, graph, err));
    uint32_t *map = calloc((size_t)graph->node_count + 1, sizeof *map);
    if (map == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory to split a graph");
    uint32_t kept = 0;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        map[i] = splitter->node_planned[i] == planned ? kept++ : INF_NODE_NONE;
        if (planned && map[i] != INF_NODE_NONE)
            splitter->split->planned_nodes[map[i]] = i;
    }
    inf_graph_compact_nodes(*out_graph, map);
    free(map);
    (void)inf_graph_compact_subgraphs(*out_graph);
    (*out_graph)->output_count = 0;
    if (!planned)
        (*out_graph)->input_count = 0;
    return INF_OK;
}

// Makes `value` an output of the planned part, unless it already is one.
static enum inf_code add_planned_output(struct splitter *splitter, uint32_t value,
                                        struct inf_error *err)
{
    char name[32];
    if (splitter->value_output[value] != INF_SPLIT_NONE)
        return INF_OK;
    splitter->value_output[value] = splitter->split->planned->output_count;
    snprintf(name, sizeof name, "%u", value);
    return inf_graph_add_output(splitter->split->planned, name, value, err);
}

static uint32_t find_input(const struct inf_graph *graph, uint32_t value)
{
    for (uint32_t i = 0; i < graph->input_count; i++)
        if (graph->inputs[i].value == value)
            return i;
    return INF_SPLIT_NONE;
}

// Makes `value`, which is known before the interpreted part runs, an input of the interpreted part.
static enum inf_code add_boundary(struct splitter *splitter, uint32_t value, struct inf_error *err)
{
    struct inf_split *split = splitter->split;
    struct inf_split_source source = {.input = find_input(splitter->graph, value),
                                      .planned = INF_SPLIT_NONE};
    char name[32];
    if (source.input == INF_SPLIT_NONE) {
        INF_TRY(add_planned_output(splitter, value, err));
        source.planned = splitter->value_output[value];
        split->is_boundary[source.planned] = true;
    }
    split->rest_sources[split->rest->input_count] = source;
    snprintf(name, sizeof name, "%u", value);
    return inf_graph_add_input(split->rest, name, value, err);
}

// Adds all inputs of the interpreted part. seen[v] is true if value v already is an input.
static enum inf_code add_boundaries(struct splitter *splitter, bool *seen, struct inf_error *err)
{
    const struct inf_graph *graph = splitter->graph;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct inf_node *node = &graph->nodes[i];
        for (uint32_t k = 0; !splitter->node_planned[i] && k < node->input_count; k++) {
            uint32_t value = node->inputs[k];
            if (value == INF_VALUE_NONE || seen[value] || !splitter->value_planned[value] ||
                graph->values[value].data != NULL)
                continue;
            seen[value] = true;
            INF_TRY(add_boundary(splitter, value, err));
        }
    }
    return INF_OK;
}

static enum inf_code add_outputs(struct splitter *splitter, struct inf_error *err)
{
    struct inf_split *split = splitter->split;
    for (uint32_t i = 0; i < splitter->graph->output_count; i++) {
        const struct inf_port *port = &splitter->graph->outputs[i];
        split->rest_outputs[i] = split->planned_outputs[i] = INF_SPLIT_NONE;
        if (splitter->value_planned[port->value]) {
            INF_TRY(add_planned_output(splitter, port->value, err));
            split->planned_outputs[i] = splitter->value_output[port->value];
            split->graph_outputs[split->planned_outputs[i]] = i;
        } else {
            split->rest_outputs[i] = split->rest->output_count;
            INF_TRY(inf_graph_add_output(split->rest, port->name, port->value, err));
        }
    }
    return INF_OK;
}

// Drops the data of constants that no node of one part of the split graph uses.
static enum inf_code drop_unused(struct inf_graph *graph, bool *used, struct inf_error *err)
{
    for (uint32_t i = 0; i < graph->node_count; i++)
        for (uint32_t k = 0; k < graph->nodes[i].input_count; k++)
            if (graph->nodes[i].inputs[k] != INF_VALUE_NONE)
                used[graph->nodes[i].inputs[k]] = true;
    for (uint32_t i = 0; i < graph->output_count; i++)
        used[graph->outputs[i].value] = true;
    for (uint32_t v = 0; v < graph->value_count; v++)
        if (!used[v])
            inf_blob_unref(&graph->values[v].data);
    return inf_graph_verify_part(graph, err);
}

static enum inf_code make_parts(struct splitter *splitter, struct inf_error *err)
{
    struct inf_split *split = splitter->split;
    size_t values = (size_t)splitter->graph->value_count + 1;
    bool *flags = calloc(values, 3 * sizeof *flags);
    if (flags == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory to split a graph");
    mark_nodes(splitter);
    enum inf_code code = clone_part(splitter, true, &splitter->split->planned, err);
    if (code == INF_OK)
        code = clone_part(splitter, false, &split->rest, err);
    if (code == INF_OK)
        code = add_boundaries(splitter, flags, err);
    if (code == INF_OK)
        code = add_outputs(splitter, err);
    if (code == INF_OK)
        code = drop_unused(splitter->split->planned, flags + values, err);
    if (code == INF_OK)
        code = drop_unused(split->rest, flags + 2 * values, err);
    free(flags);
    if (code == INF_OK) {
        inf_graph_trim(splitter->split->planned);
        inf_graph_trim(split->rest);
    }
    return code;
}

static enum inf_code alloc_tables(struct splitter *splitter, struct inf_error *err)
{
    struct inf_split *split = splitter->split;
    size_t values = (size_t)splitter->graph->value_count + 1;
    size_t nodes = (size_t)splitter->graph->node_count + 1;
    size_t outputs = (size_t)splitter->graph->output_count + 1;
    splitter->node_planned = calloc(nodes, sizeof *splitter->node_planned);
    splitter->value_planned = calloc(values, sizeof *splitter->value_planned);
    splitter->value_output = calloc(values, sizeof *splitter->value_output);
    split->planned_nodes = calloc(nodes, sizeof *split->planned_nodes);
    split->rest_sources = calloc(values, sizeof *split->rest_sources);
    split->graph_outputs = malloc(values * sizeof *split->graph_outputs);
    split->is_boundary = calloc(values, sizeof *split->is_boundary);
    split->rest_outputs = calloc(outputs, sizeof *split->rest_outputs);
    split->planned_outputs = calloc(outputs, sizeof *split->planned_outputs);
    if (splitter->node_planned == NULL || splitter->value_planned == NULL ||
        splitter->value_output == NULL || split->planned_nodes == NULL ||
        split->rest_sources == NULL || split->graph_outputs == NULL || split->is_boundary == NULL ||
        split->rest_outputs == NULL || split->planned_outputs == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory to split a graph");
    // sets every entry to INF_SPLIT_NONE
    memset(split->graph_outputs, 0xff, values * sizeof *split->graph_outputs);
    return INF_OK;
}

enum inf_code inf_split_init(struct inf_split *split, const struct inf_graph *graph,
                             struct inf_error *err)
{
    struct splitter splitter = {.graph = graph, .split = split};
    enum inf_code code = alloc_tables(&splitter, err);
    if (code == INF_OK)
        code = make_parts(&splitter, err);
    free(splitter.node_planned);
    free(splitter.value_planned);
    free(splitter.value_output);
    return code;
}

void inf_split_fini(struct inf_split *split)
{
    inf_graph_destroy(&split->planned);
    inf_graph_destroy(&split->rest);
    free(split->planned_nodes);
    free(split->rest_sources);
    free(split->rest_outputs);
    free(split->planned_outputs);
    free(split->graph_outputs);
    free(split->is_boundary);
    *split = (struct inf_split){0};
}
