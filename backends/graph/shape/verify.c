// SPDX-License-Identifier: Apache-2.0
// Verifies the invariants of a graph that passes and devices rely on.
#include "backends/graph/shape/verify.h"

#include <stdlib.h>
#include <string.h>

#include "backends/graph/shape/rules.h"

// The state of a value while the nodes are visited.
enum value_state {
    VALUE_UNMADE,
    VALUE_READY, // an input, a constant, or an output of a visited node
};

struct verifier {
    const struct inf_graph *graph;
    unsigned char *states;    // states[v] is the enum value_state of value v
    struct inf_shape *shapes; // scratch memory: the inferred shapes of the outputs of one node
    enum inf_dtype *dtypes;   // scratch memory: the inferred types of the outputs of one node
    bool is_part;             // true: recorded shapes may say more than those that are inferred
    struct inf_error *err;
};

static enum inf_code check_value(struct verifier *verifier, uint32_t index)
{
    const struct inf_value *value = &verifier->graph->values[index];
    char text[INF_SHAPE_TEXT_SIZE];
    size_t size_bytes;
    if (!inf_shape_valid(&value->shape) || (uint32_t)value->dtype >= INF_DTYPE_COUNT)
        return inf_fail(verifier->err, INF_INVALID, "value %u '%s' has no valid shape and type",
                        index, value->name);
    if (inf_shape_known(&value->shape) && value->dtype != INF_DTYPE_NONE &&
        !inf_shape_bytes(&value->shape, value->dtype, &size_bytes))
        return inf_fail(verifier->err, INF_INVALID,
                        "value %u '%s' of shape %s is larger than a tensor may be", index,
                        value->name, inf_shape_print(&value->shape, text));
    if (value->producer != INF_NODE_NONE && value->producer >= verifier->graph->node_count)
        return inf_fail(verifier->err, INF_INVALID, "value %u '%s' is made by node %u of %u", index,
                        value->name, value->producer, verifier->graph->node_count);
    if (value->data == NULL)
        return INF_OK;
    if (value->producer != INF_NODE_NONE)
        return inf_fail(verifier->err, INF_INVALID,
                        "constant %u '%s' is also the output of node %u", index, value->name,
                        value->producer);
    if (!inf_shape_bytes(&value->shape, value->dtype, &size_bytes) ||
        size_bytes != value->data->size_bytes)
        return inf_fail(verifier->err, INF_INVALID, "constant %u '%s' has %zu bytes for %s %s",
                        index, value->name, value->data->size_bytes, inf_dtype_name(value->dtype),
                        inf_shape_print(&value->shape, text));
    verifier->states[index] = VALUE_READY;
    return INF_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Checks that ports name existing values, and that names are unique.
static enum inf_code check_ports(struct verifier *verifier, const struct inf_port *ports,
                                 uint32_t count, const char *side)
{
    for (uint32_t i = 0; i < count; i++)
        if (ports[i].value >= verifier->graph->value_count)
            return inf_fail(verifier->err, INF_INVALID, "%s '%s' is value %u of %u", side,
                            ports[i].name, ports[i].value, verifier->graph->value_count);
    const char **names = calloc((size_t)count + 1, sizeof *names);
    if (names == NULL)
        return inf_fail_reason(verifier->err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory");
    for (uint32_t i = 0; i < count; i++)
        names[i] = ports[i].name;
    qsort(names, count, sizeof *names, compare_names);
    enum inf_code code = INF_OK;
    for (uint32_t i = 1; i < count && code == INF_OK; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            code = inf_fail(verifier->err, INF_INVALID, "there are two %ss named '%s'", side,
                            names[i]);
    free(names);
    return code;
}

static enum inf_code check_inputs(struct verifier *verifier)
{
    const struct inf_graph *graph = verifier->graph;
    INF_TRY(check_ports(verifier, graph->inputs, graph->input_count, "input"));
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const struct inf_port *port = &graph->inputs[i];
        const struct inf_value *value = &graph->values[port->value];
        if (value->producer != INF_NODE_NONE || value->data != NULL)
            return inf_fail(verifier->err, INF_INVALID, "input '%s' is %s, wanted neither",
                            port->name,
                            value->data != NULL ? "a constant" : "the output of a node");
        if (value->dtype == INF_DTYPE_NONE)
            return inf_fail(verifier->err, INF_INVALID, "input '%s' has no element type",
                            port->name);
        if (verifier->states[port->value] == VALUE_READY)
            return inf_fail(verifier->err, INF_INVALID, "input '%s' is value %u, as another is",
                            port->name, port->value);
        verifier->states[port->value] = VALUE_READY;
    }
    return INF_OK;
}

static enum inf_code check_outputs(struct verifier *verifier)
{
    const struct inf_graph *graph = verifier->graph;
    INF_TRY(check_ports(verifier, graph->outputs, graph->output_count, "output"));
    for (uint32_t i = 0; i < graph->output_count; i++)
        if (verifier->states[graph->outputs[i].value] != VALUE_READY)
            return inf_fail(verifier->err, INF_INVALID,
                            "output '%s' is value %u, which nothing makes", graph->outputs[i].name,
                            graph->outputs[i].value);
    return INF_OK;
}

// Checks that each input of a node is computed before the node, and each output only by the node.
static enum inf_code check_order(struct verifier *verifier, uint32_t index)
{
    const struct inf_node *node = &verifier->graph->nodes[index];
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != INF_VALUE_NONE && verifier->states[node->inputs[i]] != VALUE_READY)
            return inf_fail(verifier->err, INF_INVALID,
                            "node '%s': input %u is value %u, which is not made before it",
                            node->name, i, node->inputs[i]);
    for (uint32_t i = 0; i < node->output_count; i++) {
        uint32_t value = node->outputs[i];
        if (verifier->states[value] == VALUE_READY)
            return inf_fail(verifier->err, INF_INVALID,
                            "node '%s': output %u is value %u, which is made already", node->name,
                            i, value);
        if (verifier->graph->values[value].producer != index)
            return inf_fail(verifier->err, INF_INVALID,
                            "node '%s': value %u says it is made by node %u, wanted %u", node->name,
                            value, verifier->graph->values[value].producer, index);
        verifier->states[value] = VALUE_READY;
    }
    return INF_OK;
}

// Returns true if the recorded shape agrees with the inferred one.
static bool shapes_agree(const struct verifier *verifier, const struct inf_shape *recorded,
                         const struct inf_shape *inferred)
{
    if (!verifier->is_part)
        return inf_shape_equal(recorded, inferred);
    if (inferred->rank < 0)
        return true;
    bool fits = recorded->rank == inferred->rank;
    for (int32_t i = 0; fits && i < inferred->rank; i++)
        fits = inferred->dims[i] == INF_DIM_UNKNOWN || inferred->dims[i] == recorded->dims[i];
    return fits;
}

// Checks that the recorded types and shapes equal the inferred ones.
static enum inf_code check_shapes(struct verifier *verifier, const struct inf_node *node)
{
    struct inf_infer infer = {.graph = verifier->graph,
                              .node = node,
                              .dtypes = verifier->dtypes,
                              .shapes = verifier->shapes,
                              .err = verifier->err};
    INF_TRY(inf_infer_run(&infer));
    for (uint32_t i = 0; i < node->output_count; i++) {
        const struct inf_value *value = &verifier->graph->values[node->outputs[i]];
        char has[INF_SHAPE_TEXT_SIZE];
        char wanted[INF_SHAPE_TEXT_SIZE];
        if (value->dtype != infer.dtypes[i] ||
            !shapes_agree(verifier, &value->shape, &infer.shapes[i]))
            return inf_fail(
                verifier->err, INF_INVALID, "node '%s': output %u is %s %s, wanted %s %s",
                node->name, i, inf_dtype_name(value->dtype), inf_shape_print(&value->shape, has),
                inf_dtype_name(infer.dtypes[i]), inf_shape_print(&infer.shapes[i], wanted));
    }
    return INF_OK;
}

static enum inf_code verify_graph(struct verifier *verifier)
{
    const struct inf_graph *graph = verifier->graph;
    for (uint32_t i = 0; i < graph->value_count; i++)
        INF_TRY(check_value(verifier, i));
    INF_TRY(check_inputs(verifier));
    for (uint32_t i = 0; i < graph->node_count; i++) {
        INF_TRY(inf_node_check(graph, &graph->nodes[i], verifier->err));
        INF_TRY(check_order(verifier, i));
        INF_TRY(check_shapes(verifier, &graph->nodes[i]));
    }
    for (uint32_t i = 0; i < graph->value_count; i++)
        if (graph->values[i].producer != INF_NODE_NONE && verifier->states[i] != VALUE_READY)
            return inf_fail(verifier->err, INF_INVALID,
                            "value %u '%s' says it is made by node %u, which does not make it", i,
                            graph->values[i].name, graph->values[i].producer);
    return check_outputs(verifier);
}

static enum inf_code verify_at(const struct inf_graph *graph, uint32_t depth, bool is_part,
                               struct inf_error *err);

// Checks that the inputs of a node's subgraph have the types of the node's inputs.
static enum inf_code check_subgraph_types(const struct inf_graph *graph,
                                          const struct inf_node *node,
                                          const struct inf_graph *subgraph, struct inf_error *err)
{
    uint32_t first = node->input_count - subgraph->input_count;
    for (uint32_t i = 0; i < subgraph->input_count; i++) {
        enum inf_dtype has = subgraph->values[subgraph->inputs[i].value].dtype;
        enum inf_dtype wanted = graph->values[node->inputs[first + i]].dtype;
        if (has != wanted)
            return inf_fail(err, INF_INVALID, "node '%s': a subgraph's input %u is %s, wanted %s",
                            node->name, i, inf_dtype_name(has), inf_dtype_name(wanted));
    }
    return INF_OK;
}

// Checks that no other node uses this node's subgraphs, and verifies the subgraphs.
static enum inf_code check_node_subgraphs(const struct inf_graph *graph, struct inf_node node,
                                          bool *taken, uint32_t depth, struct inf_error *err)
{
    int32_t *indices[2];
    if (!inf_node_subgraphs(&node, indices))
        return INF_OK;
    INF_TRY(inf_node_check(graph, &node, err));
    INF_TRY(inf_subgraphs_check(graph, &node, err));
    for (int i = 0; i < 2; i++) {
        if (taken[*indices[i]])
            return inf_fail(err, INF_INVALID, "node '%s': subgraph %d is another node's too",
                            node.name, *indices[i]);
        taken[*indices[i]] = true;
        INF_TRY(verify_at(graph->subgraphs[*indices[i]], depth + 1, false, err));
        INF_TRY(check_subgraph_types(graph, &node, graph->subgraphs[*indices[i]], err));
    }
    return INF_OK;
}

static enum inf_code check_subgraphs(const struct inf_graph *graph, uint32_t depth,
                                     struct inf_error *err)
{
    if (depth == INF_LIMIT_GRAPH_DEPTH && graph->subgraph_count > 0)
        return inf_fail(err, INF_EXHAUSTED, "branches and loops are nested deeper than %u",
                        INF_LIMIT_GRAPH_DEPTH);
    bool *taken = calloc((size_t)graph->subgraph_count + 1, sizeof *taken);
    if (taken == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory");
    enum inf_code code = INF_OK;
    for (uint32_t i = 0; i < graph->node_count && code == INF_OK; i++)
        code = check_node_subgraphs(graph, graph->nodes[i], taken, depth, err);
    free(taken);
    return code;
}

static enum inf_code verify_at(const struct inf_graph *graph, uint32_t depth, bool is_part,
                               struct inf_error *err)
{
    INF_TRY(check_subgraphs(graph, depth, err));
    size_t most_outputs = 1;
    for (uint32_t i = 0; i < graph->node_count; i++)
        most_outputs = INF_MAX(most_outputs, graph->nodes[i].output_count);
    // A node with more outputs than this needs no room here, because inf_node_check() refuses it
    // before its shapes are used.
    most_outputs = INF_MIN(most_outputs, INF_LIMIT_NODE_INPUTS);
    struct verifier verifier = {
        .graph = graph,
        .states = calloc((size_t)graph->value_count + 1, sizeof *verifier.states),
        .shapes = calloc(most_outputs, sizeof *verifier.shapes),
        .dtypes = calloc(most_outputs, sizeof *verifier.dtypes),
        .err = err,
        .is_part = is_part,
    };
    enum inf_code code =
        verifier.states == NULL || verifier.shapes == NULL || verifier.dtypes == NULL
            ? inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                              "no memory to verify a graph")
            : verify_graph(&verifier);
    free(verifier.states);
    free(verifier.shapes);
    free(verifier.dtypes);
    return code;
}

enum inf_code inf_graph_verify(const struct inf_graph *graph, struct inf_error *err)
{
    return verify_at(graph, 0, false, err);
}

enum inf_code inf_graph_verify_part(const struct inf_graph *graph, struct inf_error *err)
{
    return verify_at(graph, 0, true, err);
}
