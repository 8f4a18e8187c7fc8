// SPDX-License-Identifier: Apache-2.0
// Shrinks the arrays of a graph to the number of elements in use.
#include <stdlib.h>

#include "backends/graph/graph.h"

// Shrinks an array to `count` elements. If reallocation fails, the array keeps its old capacity.
static void fit_array(void **array, uint32_t *capacity, uint32_t count, size_t element_bytes)
{
    if (count == *capacity || count == 0)
        return;
    void *fitting = realloc(*array, count * element_bytes);
    if (fitting == NULL)
        return;
    *array = fitting;
    *capacity = count;
}

static void mark_used(uint32_t *map, const uint32_t *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (values[i] != INF_VALUE_NONE)
            map[values[i]] = 0;
}

// Sets map[v] to 0 if a node, input or output of the graph uses value v, else to INF_VALUE_NONE.
static void find_uses(const struct inf_graph *graph, uint32_t *map)
{
    for (uint32_t v = 0; v < graph->value_count; v++)
        map[v] = INF_VALUE_NONE;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        mark_used(map, graph->nodes[n].inputs, graph->nodes[n].input_count);
        mark_used(map, graph->nodes[n].outputs, graph->nodes[n].output_count);
    }
    for (uint32_t i = 0; i < graph->input_count; i++)
        map[graph->inputs[i].value] = 0;
    for (uint32_t i = 0; i < graph->output_count; i++)
        map[graph->outputs[i].value] = 0;
}

// Moves the values whose map[v] is not INF_VALUE_NONE to the front of the array of values, frees
// the others, and sets map[v] to the new index of value v.
static void compact_values(struct inf_graph *graph, uint32_t *map)
{
    uint32_t kept = 0;
    for (uint32_t v = 0; v < graph->value_count; v++) {
        if (map[v] == INF_VALUE_NONE) {
            inf_blob_unref(&graph->values[v].data);
            continue;
        }
        map[v] = kept;
        graph->values[kept++] = graph->values[v];
    }
    graph->value_count = kept;
}

static void renumber_value(uint32_t *values, uint32_t count, const uint32_t *map)
{
    for (uint32_t i = 0; i < count; i++)
        if (values[i] != INF_VALUE_NONE)
            values[i] = map[values[i]];
}

static void drop_values(struct inf_graph *graph)
{
    uint32_t *map = calloc((size_t)graph->value_count + 1, sizeof *map);
    if (map == NULL)
        return; // without memory, the unused values stay
    find_uses(graph, map);
    compact_values(graph, map);
    for (uint32_t n = 0; n < graph->node_count; n++) {
        renumber_value(graph->nodes[n].inputs, graph->nodes[n].input_count, map);
        renumber_value(graph->nodes[n].outputs, graph->nodes[n].output_count, map);
    }
    for (uint32_t i = 0; i < graph->input_count; i++)
        graph->inputs[i].value = map[graph->inputs[i].value];
    for (uint32_t i = 0; i < graph->output_count; i++)
        graph->outputs[i].value = map[graph->outputs[i].value];
    free(map);
}

// Trims subgraphs recursively. The verifier limits the recursion depth to INF_LIMIT_GRAPH_DEPTH.
void inf_graph_trim(struct inf_graph *graph)
{
    drop_values(graph);
    fit_array((void **)&graph->values, &graph->value_capacity, graph->value_count,
              sizeof *graph->values);
    fit_array((void **)&graph->nodes, &graph->node_capacity, graph->node_count,
              sizeof *graph->nodes);
    fit_array((void **)&graph->inputs, &graph->input_capacity, graph->input_count,
              sizeof *graph->inputs);
    fit_array((void **)&graph->outputs, &graph->output_capacity, graph->output_count,
              sizeof *graph->outputs);
    for (uint32_t i = 0; i < graph->subgraph_count; i++)
        if (graph->subgraphs[i] != NULL)
            inf_graph_trim(graph->subgraphs[i]);
}
