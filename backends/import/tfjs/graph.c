// SPDX-License-Identifier: Apache-2.0
// Reads the nodes of a graph or function, sorts their names and resolves their inputs.
#include "backends/import/tfjs/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/core/limits.h"

#define NO_NODE UINT32_MAX

static int compare_names(const void *a, const void *b, void *context)
{
    const struct inf_tfjs_node *nodes = context;
    return strcmp(nodes[*(const uint32_t *)a].name, nodes[*(const uint32_t *)b].name);
}

uint32_t inf_tfjs_graph_find(const struct inf_tfjs_graph *graph, const char *name)
{
    uint32_t low = 0, high = graph->node_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = strcmp(name, graph->nodes[graph->by_name[middle]].name);
        if (order == 0)
            return graph->by_name[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NO_NODE;
}

// Returns true if `text` is the number of an output.
static bool parse_port(const char *text, uint32_t *out_port)
{
    uint64_t port = 0;
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return false;
        port = port * 10 + (uint64_t)(*text - '0');
        if (port >= UINT32_MAX)
            return false;
    }
    *out_port = (uint32_t)port;
    return true;
}

enum inf_code inf_tfjs_graph_resolve(struct inf_tfjs_graph *graph, const char *text,
                                     struct inf_tfjs_ref *out_ref, const char *where,
                                     struct inf_error *err)
{
    *out_ref = (struct inf_tfjs_ref){.node = NO_NODE, .output_name = ""};
    char *name = inf_arena_strdup(&graph->arena, text);
    if (name == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for the references of the model");
    char *colon = strrchr(name, ':');
    if (colon != NULL) {
        *colon = '\0';
        if (!parse_port(colon + 1, &out_ref->port))
            return inf_fail(err, INF_INVALID, "%s: '%.200s' has no output number after the colon",
                            where, text);
        char *middle = strchr(name, ':');
        if (middle != NULL) {
            *middle = '\0';
            out_ref->output_name = middle + 1;
        }
    }
    out_ref->node = inf_tfjs_graph_find(graph, name);
    if (out_ref->node == NO_NODE)
        return inf_fail(err, INF_INVALID, "%s: names '%.200s', and there is no such node", where,
                        text);
    return INF_OK;
}

// Reads the names and operators of all nodes and sorts the names. The arguments of a function are
// the last nodes.
static enum inf_code read_names(struct inf_tfjs_graph *graph, struct inf_error *err)
{
    uint32_t first_argument = graph->node_count - graph->argument_count;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        struct inf_tfjs_node *node = &graph->nodes[i];
        struct inf_json name, op;
        bool is_argument = i >= first_argument;
        node->json = is_argument ? inf_json_at(&graph->arguments, i - first_argument)
                                 : inf_json_at(&graph->list, i);
        INF_TRY(inf_json_get(&node->json, "name", &name, err));
        INF_TRY(inf_json_name(&name, &node->name, err));
        node->op = INF_TFJS_ARGUMENT;
        if (!is_argument) {
            INF_TRY(inf_json_get(&node->json, "op", &op, err));
            INF_TRY(inf_json_name(&op, &node->op, err));
        }
        graph->by_name[i] = i;
    }
    qsort_r(graph->by_name, graph->node_count, sizeof *graph->by_name, compare_names, graph->nodes);
    for (uint32_t i = 1; i < graph->node_count; i++) {
        const struct inf_tfjs_node *node = &graph->nodes[graph->by_name[i]];
        if (strcmp(graph->nodes[graph->by_name[i - 1]].name, node->name) == 0)
            return inf_fail(err, INF_INVALID, "node '%.200s': there are two of that name",
                            node->name);
    }
    return INF_OK;
}

// Returns true for nodes such as NoOp that compute no value. A node whose value only such nodes use
// counts as an output of the graph.
static bool is_bookkeeping(const struct inf_tfjs_node *node)
{
    return strcmp(node->op, "NoOp") == 0 || strcmp(node->op, "Assert") == 0;
}

// Resolves one input of a node. A control input has no value and only marks the other node as used.
static enum inf_code read_input(struct inf_tfjs_graph *graph, struct inf_tfjs_node *node,
                                const char *text, struct inf_error *err)
{
    char where[256];
    snprintf(where, sizeof where, "node '%.200s' (%.40s)", node->name, node->op);
    bool is_control = text[0] == '^';
    struct inf_tfjs_ref ref;
    INF_TRY(inf_tfjs_graph_resolve(graph, text + is_control, &ref, where, err));
    if (!is_bookkeeping(node))
        graph->nodes[ref.node].used = true;
    if (is_control)
        node->controls[node->control_count++] = ref.node;
    else
        node->inputs[node->input_count++] = ref;
    return INF_OK;
}

static enum inf_code read_inputs(struct inf_tfjs_graph *graph, struct inf_tfjs_node *node,
                                 struct inf_error *err)
{
    struct inf_json list;
    size_t count;
    INF_TRY(inf_json_find(&node->json, "input", &list, err));
    if (list.value == NULL)
        return INF_OK;
    INF_TRY(inf_json_array(&list, &count, err));
    node->inputs = inf_arena_alloc(&graph->arena, count * sizeof *node->inputs);
    node->controls = inf_arena_alloc(&graph->arena, count * sizeof *node->controls);
    if (node->inputs == NULL || node->controls == NULL)
        return inf_fail(err, INF_EXHAUSTED, "node '%.200s': no memory for %zu inputs", node->name,
                        count);
    for (size_t i = 0; i < count; i++) {
        struct inf_json item = inf_json_at(&list, i);
        const char *text;
        INF_TRY(inf_json_name(&item, &text, err));
        INF_TRY(read_input(graph, node, text, err));
    }
    return INF_OK;
}

static enum inf_code read_nodes(struct inf_tfjs_graph *graph, size_t count, struct inf_error *err)
{
    if (count > INF_LIMIT_GRAPH_NODES)
        return inf_fail(err, INF_EXHAUSTED, "the model has %zu nodes, at most %u are allowed",
                        count, INF_LIMIT_GRAPH_NODES);
    graph->nodes = calloc(count + 1, sizeof *graph->nodes);
    graph->by_name = calloc(count + 1, sizeof *graph->by_name);
    if (graph->nodes == NULL || graph->by_name == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for %zu nodes", count);
    graph->node_count = (uint32_t)count;
    INF_TRY(read_names(graph, err));
    for (uint32_t i = 0; i < graph->node_count - graph->argument_count; i++)
        INF_TRY(read_inputs(graph, &graph->nodes[i], err));
    return INF_OK;
}

static enum inf_code read_model_nodes(struct inf_tfjs_graph *graph, const struct inf_json *topology,
                                      struct inf_error *err)
{
    size_t count;
    INF_TRY(inf_json_get(topology, "node", &graph->list, err));
    INF_TRY(inf_json_array(&graph->list, &count, err));
    return read_nodes(graph, count, err);
}

static enum inf_code read_function_nodes(struct inf_tfjs_graph *graph,
                                         const struct inf_json *function, struct inf_error *err)
{
    size_t count = 0, argument_count = 0;
    INF_TRY(inf_json_get(function, "signature", &graph->signature, err));
    INF_TRY(inf_json_find(&graph->signature, "inputArg", &graph->arguments, err));
    if (graph->arguments.value != NULL)
        INF_TRY(inf_json_array(&graph->arguments, &argument_count, err));
    INF_TRY(inf_json_find(function, "nodeDef", &graph->list, err));
    if (graph->list.value != NULL)
        INF_TRY(inf_json_array(&graph->list, &count, err));
    if (argument_count > INF_LIMIT_NODE_INPUTS)
        return inf_json_fail(&graph->arguments, err, "fewer arguments");
    graph->argument_count = (uint32_t)argument_count;
    return read_nodes(graph, count + argument_count, err);
}

static enum inf_code create_graph(struct inf_tfjs_graph **out_graph, const struct inf_json *json,
                                  enum inf_code (*read)(struct inf_tfjs_graph *graph,
                                                        const struct inf_json *json,
                                                        struct inf_error *err),
                                  struct inf_error *err)
{
    struct inf_tfjs_graph *graph = calloc(1, sizeof *graph);
    if (graph == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for the model's graph");
    enum inf_code code = read(graph, json, err);
    if (code == INF_OK)
        *out_graph = graph;
    else
        inf_tfjs_graph_destroy(&graph);
    return code;
}

enum inf_code inf_tfjs_graph_create(struct inf_tfjs_graph **out_graph,
                                    const struct inf_json *topology, struct inf_error *err)
{
    return create_graph(out_graph, topology, read_model_nodes, err);
}

enum inf_code inf_tfjs_graph_create_function(struct inf_tfjs_graph **out_graph,
                                             const struct inf_json *function, struct inf_error *err)
{
    return create_graph(out_graph, function, read_function_nodes, err);
}

void inf_tfjs_graph_destroy(struct inf_tfjs_graph **graph)
{
    if (*graph == NULL)
        return;
    inf_arena_fini(&(*graph)->arena);
    free((*graph)->nodes);
    free((*graph)->by_name);
    free(*graph);
    *graph = NULL;
}

enum inf_code inf_tfjs_graph_reach(struct inf_tfjs_graph *graph, const struct inf_tfjs_ref *roots,
                                   uint32_t root_count, struct inf_error *err)
{
    // Each node is pushed at most once, when it is marked.
    uint32_t *stack = inf_arena_alloc(&graph->arena, (graph->node_count + 1) * sizeof *stack);
    if (stack == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory to walk the model's graph");
    uint32_t depth = 0;
    for (uint32_t i = 0; i < root_count; i++)
        if (!graph->nodes[roots[i].node].reachable) {
            graph->nodes[roots[i].node].reachable = true;
            stack[depth++] = roots[i].node;
        }
    while (depth > 0) {
        const struct inf_tfjs_node *node = &graph->nodes[stack[--depth]];
        for (uint32_t i = 0; i < node->input_count; i++) {
            struct inf_tfjs_node *from = &graph->nodes[node->inputs[i].node];
            if (from->reachable)
                continue;
            from->reachable = true;
            stack[depth++] = node->inputs[i].node;
        }
    }
    return INF_OK;
}
