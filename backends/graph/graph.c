// SPDX-License-Identifier: Apache-2.0
// Builds and edits graphs. Nodes are stored in an order in which every value is computed before it
// is read. Names and lists live in the arena of the graph.
#include "backends/graph/graph.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/reference.h"
#include "proto/core/span.h"

// Makes room for one more element in an array of `count` elements. Returns false if there is no
// memory or the array has `limit` elements.
static bool grow_array(void **array, uint32_t *capacity, uint32_t count, size_t element_bytes,
                       uint32_t limit)
{
    if (count < *capacity)
        return true;
    if (count >= limit)
        return false;
    uint32_t wanted = *capacity == 0 ? 16 : INF_MIN(*capacity * 2, limit);
    size_t bytes;
    if (!inf_size_mul(wanted, element_bytes, &bytes))
        return false;
    void *grown = realloc(*array, bytes);
    if (grown == NULL)
        return false;
    *array = grown;
    *capacity = wanted;
    return true;
}

static enum inf_code no_memory(struct inf_error *err, const char *name)
{
    return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                           "'%s': no memory for the graph, or it is larger than allowed", name);
}

// Creates a graph that takes over the reference to `strings`; NULL stands for "no memory".
static enum inf_code create_graph(struct inf_graph **out_graph, struct inf_shared_strings *strings,
                                  struct inf_error *err)
{
    struct inf_graph *graph = calloc(1, sizeof *graph);
    if (graph != NULL)
        graph->texts = inf_texts_create(NULL);
    if (graph == NULL || graph->texts == NULL || strings == NULL) {
        if (graph != NULL)
            inf_texts_unref(&graph->texts);
        inf_shared_strings_unref(&strings);
        free(graph);
        return no_memory(err, "graph");
    }
    atomic_init(&graph->references, 1);
    graph->strings = strings;
    *out_graph = graph;
    return INF_OK;
}

enum inf_code inf_graph_create(struct inf_graph **out_graph, struct inf_error *err)
{
    return create_graph(out_graph, inf_shared_strings_create(), err);
}

enum inf_code inf_graph_create_inside(struct inf_graph **out_graph, const struct inf_graph *outer,
                                      struct inf_error *err)
{
    return create_graph(out_graph, inf_shared_strings_ref(outer->strings), err);
}

struct inf_graph *inf_graph_ref(struct inf_graph *graph)
{
    inf_reference_take(&graph->references);
    return graph;
}

void inf_graph_view(struct inf_graph *view, const struct inf_graph *graph)
{
    const size_t first = offsetof(struct inf_graph, texts);
    atomic_init(&view->references, 0);
    memcpy((char *)view + first, (const char *)graph + first, sizeof *view - first);
}

void inf_graph_destroy(struct inf_graph **graph)
{
    struct inf_graph *gone = *graph;
    *graph = NULL;
    if (gone == NULL || !inf_reference_drop(&gone->references))
        return;
    for (uint32_t i = 0; i < gone->value_count; i++)
        inf_blob_unref(&gone->values[i].data);
    for (uint32_t i = 0; i < gone->subgraph_count; i++)
        inf_graph_destroy(&gone->subgraphs[i]);
    inf_texts_unref(&gone->texts);
    inf_shared_strings_unref(&gone->strings);
    inf_arena_fini(&gone->arena);
    free(gone->subgraphs);
    free(gone->values);
    free(gone->nodes);
    free(gone->inputs);
    free(gone->outputs);
    free(gone);
}

enum inf_code inf_graph_add_value(struct inf_graph *graph, const char *name, enum inf_dtype dtype,
                                  const struct inf_shape *shape, uint32_t *out_value,
                                  struct inf_error *err)
{
    if (!grow_array((void **)&graph->values, &graph->value_capacity, graph->value_count,
                    sizeof *graph->values, INF_LIMIT_GRAPH_VALUES))
        return no_memory(err, name);
    const char *copy = inf_texts_add(graph->texts, name);
    if (copy == NULL)
        return no_memory(err, name);
    graph->values[graph->value_count] = (struct inf_value){
        .name = copy, .dtype = dtype, .shape = *shape, .producer = INF_NODE_NONE};
    *out_value = graph->value_count++;
    return INF_OK;
}

// Adds a constant like inf_graph_add_const(), but does not release the caller's reference to
// `data`.
static enum inf_code add_const(struct inf_graph *graph, const char *name, enum inf_dtype dtype,
                               const struct inf_shape *shape, struct inf_blob *data,
                               uint32_t *out_value, struct inf_error *err)
{
    size_t size_bytes;
    if (data == NULL)
        return no_memory(err, name);
    if (!inf_shape_bytes(shape, dtype, &size_bytes) || size_bytes != data->size_bytes) {
        char text[INF_SHAPE_TEXT_SIZE];
        return inf_fail_reason(err, INF_INVALID, INF_REASON_SIZE_MISMATCH,
                               "constant '%s' has %zu bytes, which is not the size of %s %s", name,
                               data->size_bytes, inf_dtype_name(dtype),
                               inf_shape_print(shape, text));
    }
    INF_TRY(inf_graph_add_value(graph, name, dtype, shape, out_value, err));
    graph->values[*out_value].data = data;
    return INF_OK;
}

enum inf_code inf_graph_add_const(struct inf_graph *graph, const char *name, enum inf_dtype dtype,
                                  const struct inf_shape *shape, struct inf_blob *data,
                                  uint32_t *out_value, struct inf_error *err)
{
    enum inf_code code = add_const(graph, name, dtype, shape, data, out_value, err);
    if (code != INF_OK)
        inf_blob_unref(&data);
    return code;
}

enum inf_code inf_graph_add_const_i32(struct inf_graph *graph, const char *name,
                                      const int32_t *elements, uint32_t count, uint32_t *out_value,
                                      struct inf_error *err)
{
    struct inf_shape shape = INF_SHAPE(count);
    struct inf_blob *data = inf_blob_create(sizeof *elements * (size_t)count);
    if (data != NULL && count > 0)
        memcpy(data->data, elements, data->size_bytes);
    return inf_graph_add_const(graph, name, INF_DTYPE_I32, &shape, data, out_value, err);
}

// Checks that the operator of a new node takes `input_count` inputs and has `output_count` outputs,
// and that each input is a value of the graph.
static enum inf_code check_operands(const struct inf_graph *graph, enum inf_op op, const char *name,
                                    const uint32_t *inputs, uint32_t input_count,
                                    uint32_t output_count, struct inf_error *err)
{
    const struct inf_op_info *info = inf_op_info(op);
    uint32_t inputs_max =
        info->inputs_max == INF_VARIADIC ? INF_LIMIT_NODE_INPUTS : info->inputs_max;
    if (input_count < info->inputs_min || input_count > inputs_max)
        return inf_fail(err, INF_INVALID, "node '%s': %s has %u inputs, wanted %u to %u", name,
                        info->name, input_count, info->inputs_min, inputs_max);
    if (info->outputs == INF_VARIADIC ? output_count < 1 || output_count > INF_LIMIT_NODE_INPUTS
                                      : output_count != info->outputs)
        return inf_fail(err, INF_INVALID, "node '%s': %s cannot have %u outputs", name, info->name,
                        output_count);
    for (uint32_t i = 0; i < input_count; i++)
        if (inputs[i] != INF_VALUE_NONE && inputs[i] >= graph->value_count)
            return inf_fail(err, INF_INVALID, "node '%s': input %u is value %u of %u", name, i,
                            inputs[i], graph->value_count);
    return INF_OK;
}

// Adds one value for each output of the node that is being added.
static enum inf_code add_outputs(struct inf_graph *graph, const struct inf_node *node,
                                 struct inf_error *err)
{
    const struct inf_shape unknown = {.rank = INF_RANK_UNKNOWN};
    for (uint32_t i = 0; i < node->output_count; i++) {
        char *name = NULL;
        if (node->output_count == 1) {
            name = (char *)node->name;
        } else {
            size_t size = strlen(node->name) + sizeof ":4294967295";
            name = inf_arena_alloc(&graph->arena, size);
            if (name == NULL)
                return no_memory(err, node->name);
            snprintf(name, size, "%s:%" PRIu32, node->name, i);
        }
        INF_TRY(inf_graph_add_value(graph, name, INF_DTYPE_NONE, &unknown, &node->outputs[i], err));
        graph->values[node->outputs[i]].producer = graph->node_count;
    }
    return INF_OK;
}

enum inf_code inf_graph_add_node(struct inf_graph *graph, enum inf_op op, const char *name,
                                 const char *source, const uint32_t *inputs, uint32_t input_count,
                                 uint32_t output_count, uint32_t *out_node, struct inf_error *err)
{
    if ((uint32_t)op >= INF_OP_COUNT)
        return inf_fail(err, INF_INVALID, "node '%s': no operator has number %u", name,
                        (uint32_t)op);
    INF_TRY(check_operands(graph, op, name, inputs, input_count, output_count, err));
    if (!grow_array((void **)&graph->nodes, &graph->node_capacity, graph->node_count,
                    sizeof *graph->nodes, INF_LIMIT_GRAPH_NODES))
        return no_memory(err, name);
    const char *source_copy = inf_texts_add(graph->texts, source);
    struct inf_node node = {
        .op = op,
        .source = source_copy,
        .name = inf_texts_add(graph->texts, name),
        .input_count = input_count,
        .inputs = inf_arena_alloc(&graph->arena, input_count * sizeof *node.inputs),
        .output_count = output_count,
        .outputs = inf_arena_alloc(&graph->arena, output_count * sizeof *node.outputs),
    };
    if (node.name == NULL || node.source == NULL || node.inputs == NULL || node.outputs == NULL)
        return no_memory(err, name);
    memcpy(node.inputs, inputs, input_count * sizeof *inputs);
    inf_attrs_init(&node.attrs, op);
    INF_TRY(add_outputs(graph, &node, err));
    graph->nodes[graph->node_count] = node;
    *out_node = graph->node_count++;
    return INF_OK;
}

// Refers to the array, count and capacity of a graph's list of inputs or of outputs, so that the
// same code can add to both.
struct port_list {
    struct inf_port **ports;
    uint32_t *count, *capacity;
    const char *side;
};

static enum inf_code add_port(struct inf_graph *graph, const struct port_list *list,
                              const char *name, uint32_t value, struct inf_error *err)
{
    if (value >= graph->value_count)
        return inf_fail(err, INF_INVALID, "%s '%s' is value %u of %u", list->side, name, value,
                        graph->value_count);
    for (uint32_t i = 0; i < *list->count; i++)
        if (strcmp((*list->ports)[i].name, name) == 0)
            return inf_fail(err, INF_EXISTS, "there are two %ss named '%s'", list->side, name);
    // Refuse more ports than the limit, because the search for an equal name above compares with
    // every port, and a hostile file could have very many ports.
    if (!grow_array((void **)list->ports, list->capacity, *list->count, sizeof **list->ports,
                    INF_LIMIT_NODE_INPUTS))
        return no_memory(err, name);
    const char *copy = inf_texts_add(graph->texts, name);
    if (copy == NULL)
        return no_memory(err, name);
    (*list->ports)[(*list->count)++] = (struct inf_port){.name = copy, .value = value};
    return INF_OK;
}

enum inf_code inf_graph_add_input(struct inf_graph *graph, const char *name, uint32_t value,
                                  struct inf_error *err)
{
    const struct port_list list = {&graph->inputs, &graph->input_count, &graph->input_capacity,
                                   "input"};
    return add_port(graph, &list, name, value, err);
}

enum inf_code inf_graph_add_output(struct inf_graph *graph, const char *name, uint32_t value,
                                   struct inf_error *err)
{
    const struct port_list list = {&graph->outputs, &graph->output_count, &graph->output_capacity,
                                   "output"};
    return add_port(graph, &list, name, value, err);
}

// Lets `inner`, which has no strings of its own, and its subgraphs use the strings of `outer`.
static void share_strings(struct inf_graph *inner, const struct inf_graph *outer)
{
    if (inner->strings == outer->strings)
        return;
    assert(inf_shared_strings_pool(inner->strings)->size_bytes == 0);
    inf_shared_strings_unref(&inner->strings);
    inner->strings = inf_shared_strings_ref(outer->strings);
    for (uint32_t i = 0; i < inner->subgraph_count; i++)
        share_strings(inner->subgraphs[i], outer);
}

enum inf_code inf_graph_add_subgraph(struct inf_graph *graph, struct inf_graph **subgraph,
                                     uint32_t *out_index, struct inf_error *err)
{
    if (!grow_array((void **)&graph->subgraphs, &graph->subgraph_capacity, graph->subgraph_count,
                    sizeof *graph->subgraphs, INF_LIMIT_SUBGRAPHS)) {
        inf_graph_destroy(subgraph);
        return no_memory(err, "subgraph");
    }
    share_strings(*subgraph, graph);
    graph->subgraphs[graph->subgraph_count] = *subgraph;
    *subgraph = NULL;
    *out_index = graph->subgraph_count++;
    return INF_OK;
}

bool inf_node_subgraphs(struct inf_node *node, int32_t *indices[2])
{
    if (node->op == INF_OP_BRANCH) {
        indices[0] = &node->attrs.branch.then_graph;
        indices[1] = &node->attrs.branch.else_graph;
        return true;
    }
    if (node->op == INF_OP_LOOP) {
        indices[0] = &node->attrs.loop.condition_graph;
        indices[1] = &node->attrs.loop.body_graph;
        return true;
    }
    return false;
}

bool inf_graph_compact_subgraphs(struct inf_graph *graph)
{
    uint32_t kept = 0;
    struct inf_graph **old = graph->subgraphs;
    uint32_t old_count = graph->subgraph_count;
    if (old_count == 0)
        return false;
    // Move the subgraphs of each node from the old list to the new one, in the order of the nodes.
    struct inf_graph **list = calloc(old_count, sizeof *list);
    if (list == NULL)
        return false; // unused subgraphs remain in the graph; a later pass can free them
    for (uint32_t i = 0; i < graph->node_count; i++) {
        int32_t *indices[2];
        if (!inf_node_subgraphs(&graph->nodes[i], indices))
            continue;
        for (int k = 0; k < 2; k++) {
            list[kept] = old[*indices[k]];
            old[*indices[k]] = NULL;
            *indices[k] = (int32_t)kept++;
        }
    }
    for (uint32_t i = 0; i < old_count; i++)
        inf_graph_destroy(&old[i]);
    free(old);
    graph->subgraphs = list;
    graph->subgraph_count = kept;
    graph->subgraph_capacity = old_count;
    return kept != old_count;
}

bool inf_graph_is_const(const struct inf_graph *graph, uint32_t value)
{
    return value < graph->value_count && graph->values[value].data != NULL;
}

bool inf_graph_const_ints(const struct inf_graph *graph, uint32_t value, int64_t *elements,
                          uint32_t capacity, uint32_t *out_count)
{
    if (!inf_graph_is_const(graph, value))
        return false;
    const struct inf_value *constant = &graph->values[value];
    const void *data = constant->data->data;
    size_t count;
    if (!inf_shape_count(&constant->shape, &count) || count > capacity)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (constant->dtype == INF_DTYPE_I32)
            elements[i] = ((const int32_t *)data)[i];
        else if (constant->dtype == INF_DTYPE_I64)
            elements[i] = ((const int64_t *)data)[i];
        else
            return false;
    }
    *out_count = (uint32_t)count;
    return constant->dtype == INF_DTYPE_I32 || constant->dtype == INF_DTYPE_I64;
}

void inf_graph_replace_uses(struct inf_graph *graph, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < graph->node_count; i++)
        for (uint32_t j = 0; j < graph->nodes[i].input_count; j++)
            if (graph->nodes[i].inputs[j] == from)
                graph->nodes[i].inputs[j] = to;
    for (uint32_t i = 0; i < graph->output_count; i++)
        if (graph->outputs[i].value == from)
            graph->outputs[i].value = to;
}

void inf_graph_compact_nodes(struct inf_graph *graph, const uint32_t *map)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct inf_node *node = &graph->nodes[i];
        for (uint32_t j = 0; j < node->output_count; j++) {
            struct inf_value *output = &graph->values[node->outputs[j]];
            // Update the producer only if no pass has given this output value to another node.
            if (output->producer == i)
                output->producer = map[i];
        }
        if (map[i] == INF_NODE_NONE)
            continue;
        graph->nodes[map[i]] = *node;
        kept++;
    }
    graph->node_count = kept;
}
