// SPDX-License-Identifier: Apache-2.0
// Makes a graph from bytes. A count is believed only as far as the bytes behind it can hold so many
// elements, so a broken count cannot make the reader allocate much. Whether the graph is sound is
// left to the verifier.
#include <stdlib.h>
#include <string.h>

#include "backends/graph/shape/verify.h"
#include "backends/saved/saved_graph.h"
#include "proto/core/limits.h"
#include "proto/core/span.h"

// The fewest bytes of a value, node, port and subgraph.
#define VALUE_BYTES    20
#define NODE_BYTES     20
#define PORT_BYTES     8
#define SUBGRAPH_BYTES 20

bool inf_saved_take(struct inf_saved_rest *rest, void *data, size_t size)
{
    if (size > rest->left)
        return false;
    if (size > 0)
        memcpy(data, rest->at, size);
    rest->at += size;
    rest->left -= size;
    return true;
}

struct reader {
    struct inf_saved_rest rest;
    const struct inf_saved_blobs *blobs;
    const struct inf_graph *outer; // its pool has the strings of constants
    struct inf_error *err;
};

static enum inf_code fail_reader(const struct reader *reader, const char *what)
{
    return inf_fail(reader->err, INF_INVALID, "saved graph: %s", what);
}

static enum inf_code fail_memory(const struct reader *reader)
{
    return inf_fail_reason(reader->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                           "no memory for a saved graph");
}

static enum inf_code take_bytes(struct reader *reader, void *data, size_t size)
{
    return inf_saved_take(&reader->rest, data, size) ? INF_OK
                                                     : fail_reader(reader, "it ends too early");
}

static enum inf_code take_u32(struct reader *reader, uint32_t *number)
{
    return take_bytes(reader, number, sizeof *number);
}

// Takes a count of elements that have at least `element_bytes` each.
static enum inf_code take_count(struct reader *reader, uint32_t most, size_t element_bytes,
                                uint32_t *count)
{
    INF_TRY(take_u32(reader, count));
    if (*count > most || *count > reader->rest.left / element_bytes)
        return fail_reader(reader, "a count is too large");
    return INF_OK;
}

// Takes a name into the texts of the graph.
static enum inf_code take_name(struct reader *reader, const struct inf_graph *graph,
                               const char **out_name)
{
    char small[256], *text = small;
    uint32_t length;
    INF_TRY(take_count(reader, UINT32_MAX - 1, 1, &length));
    if (memchr(reader->rest.at, 0, length) != NULL)
        return fail_reader(reader, "a name has a NUL byte");
    if (length >= sizeof small)
        text = malloc((size_t)length + 1);
    if (text == NULL)
        return fail_memory(reader);
    text[length] = '\0';
    enum inf_code code = take_bytes(reader, text, length);
    *out_name = inf_texts_add(graph->texts, text);
    if (text != small)
        free(text);
    return code == INF_OK && *out_name == NULL ? fail_memory(reader) : code;
}

static enum inf_code take_shape(struct reader *reader, struct inf_shape *shape)
{
    *shape = (struct inf_shape){.rank = 0};
    INF_TRY(take_bytes(reader, &shape->rank, sizeof shape->rank));
    if (shape->rank > INF_LIMIT_RANK)
        return fail_reader(reader, "a rank is too large");
    return shape->rank > 0
               ? take_bytes(reader, shape->dims, (size_t)shape->rank * sizeof shape->dims[0])
               : INF_OK;
}

// Returns true if constants of this type may be read before a device restores evicted ones. Packed
// weights replace constants of floats and of 8-bit numbers only.
static bool is_read_early(enum inf_dtype dtype)
{
    return dtype == INF_DTYPE_BOOL || dtype == INF_DTYPE_I32 || dtype == INF_DTYPE_I64 ||
           dtype == INF_DTYPE_BYTES;
}

static enum inf_code take_value(struct reader *reader, struct inf_graph *graph)
{
    struct inf_value *value = &graph->values[graph->value_count];
    uint32_t dtype, blob;
    INF_TRY(take_name(reader, graph, &value->name));
    INF_TRY(take_u32(reader, &dtype));
    INF_TRY(take_shape(reader, &value->shape));
    INF_TRY(take_u32(reader, &value->producer));
    INF_TRY(take_u32(reader, &blob));
    if (dtype >= INF_DTYPE_COUNT)
        return fail_reader(reader, "there is no such element type");
    if (blob != UINT32_MAX && blob >= reader->blobs->count)
        return fail_reader(reader, "there is no such constant");
    // Sizes and branches are read from them without asking whether they are evicted.
    if (blob != UINT32_MAX && is_read_early((enum inf_dtype)dtype) &&
        reader->blobs->items[blob]->data == NULL)
        return fail_reader(reader, "a constant of integers, booleans or strings has no bytes");
    value->dtype = (enum inf_dtype)dtype;
    if (blob != UINT32_MAX)
        value->data = inf_blob_ref(reader->blobs->items[blob]);
    graph->value_count++;
    return INF_OK;
}

static enum inf_code take_indices(struct reader *reader, struct inf_graph *graph, uint32_t *count,
                                  uint32_t **indices)
{
    INF_TRY(take_count(reader, INF_LIMIT_NODE_INPUTS, sizeof **indices, count));
    *indices = inf_arena_alloc(&graph->arena, *count * sizeof **indices);
    if (*indices == NULL)
        return fail_memory(reader);
    return take_bytes(reader, *indices, *count * sizeof **indices);
}

static enum inf_code take_attr(struct reader *reader, const struct inf_attr_info *info, void *at)
{
    struct inf_ints ints = {0};
    uint8_t truth;
    switch (info->type) {
    case INF_ATTR_TYPE_BOOL:
        INF_TRY(take_bytes(reader, &truth, 1));
        if (truth > 1)
            return fail_reader(reader, "an attribute is neither true nor false");
        memcpy(at, &truth, 1);
        return INF_OK;
    case INF_ATTR_TYPE_INT:
    case INF_ATTR_TYPE_FLOAT:
    case INF_ATTR_TYPE_ENUM:
        return take_bytes(reader, at, 4); // the verifier checks the range
    case INF_ATTR_TYPE_INTS:
        INF_TRY(take_bytes(reader, &ints.count, sizeof ints.count));
        if (ints.count < 0 || ints.count > INF_LIMIT_RANK)
            return fail_reader(reader, "a list is too long");
        INF_TRY(take_bytes(reader, ints.values, (size_t)ints.count * sizeof ints.values[0]));
        memcpy(at, &ints, sizeof ints);
        return INF_OK;
    }
    return fail_reader(reader, "there is no such attribute");
}

static enum inf_code take_node(struct reader *reader, struct inf_graph *graph)
{
    struct inf_node *node = &graph->nodes[graph->node_count];
    uint32_t op;
    INF_TRY(take_u32(reader, &op));
    if (op >= INF_OP_COUNT)
        return fail_reader(reader, "there is no such operator");
    node->op = (enum inf_op)op;
    inf_attrs_init(&node->attrs, node->op);
    INF_TRY(take_name(reader, graph, &node->name));
    INF_TRY(take_name(reader, graph, &node->source));
    INF_TRY(take_indices(reader, graph, &node->input_count, &node->inputs));
    INF_TRY(take_indices(reader, graph, &node->output_count, &node->outputs));
    const struct inf_op_info *info = inf_op_info(node->op);
    for (size_t i = 0; i < info->attr_count; i++)
        INF_TRY(take_attr(reader, &info->attrs[i],
                          (unsigned char *)&node->attrs + info->attrs[i].offset));
    graph->node_count++;
    return INF_OK;
}

static enum inf_code take_ports(struct reader *reader, const struct inf_graph *graph,
                                struct inf_port **ports, uint32_t *count, uint32_t *capacity)
{
    uint32_t wanted;
    INF_TRY(take_count(reader, INF_LIMIT_GRAPH_VALUES, PORT_BYTES, &wanted));
    *ports = calloc((size_t)wanted + 1, sizeof **ports);
    if (*ports == NULL)
        return fail_memory(reader);
    *capacity = wanted;
    for (; *count < wanted; ++*count) {
        INF_TRY(take_name(reader, graph, &(*ports)[*count].name));
        INF_TRY(take_u32(reader, &(*ports)[*count].value));
    }
    return INF_OK;
}

static enum inf_code take_graph(struct reader *reader, uint32_t depth,
                                struct inf_graph **out_graph);

static enum inf_code take_subgraphs(struct reader *reader, struct inf_graph *graph, uint32_t depth)
{
    uint32_t count, index;
    INF_TRY(take_count(reader, INF_LIMIT_SUBGRAPHS, SUBGRAPH_BYTES, &count));
    if (count > 0 && depth >= INF_LIMIT_GRAPH_DEPTH)
        return fail_reader(reader, "subgraphs are nested too deeply");
    for (uint32_t i = 0; i < count; i++) {
        struct inf_graph *subgraph = NULL;
        INF_TRY(take_graph(reader, depth + 1, &subgraph));
        INF_TRY(inf_graph_add_subgraph(graph, &subgraph, &index, reader->err));
    }
    return INF_OK;
}

static enum inf_code fill_graph(struct reader *reader, uint32_t depth, struct inf_graph *graph)
{
    uint32_t values, nodes;
    INF_TRY(take_count(reader, INF_LIMIT_GRAPH_VALUES, VALUE_BYTES, &values));
    graph->values = calloc((size_t)values + 1, sizeof *graph->values);
    if (graph->values == NULL)
        return fail_memory(reader);
    graph->value_capacity = values;
    while (graph->value_count < values)
        INF_TRY(take_value(reader, graph));
    INF_TRY(take_count(reader, INF_LIMIT_GRAPH_NODES, NODE_BYTES, &nodes));
    graph->nodes = calloc((size_t)nodes + 1, sizeof *graph->nodes);
    if (graph->nodes == NULL)
        return fail_memory(reader);
    graph->node_capacity = nodes;
    while (graph->node_count < nodes)
        INF_TRY(take_node(reader, graph));
    INF_TRY(take_ports(reader, graph, &graph->inputs, &graph->input_count, &graph->input_capacity));
    INF_TRY(
        take_ports(reader, graph, &graph->outputs, &graph->output_count, &graph->output_capacity));
    return take_subgraphs(reader, graph, depth);
}

static enum inf_code take_graph(struct reader *reader, uint32_t depth, struct inf_graph **out_graph)
{
    INF_CLEANUP(inf_graph_destroy) struct inf_graph *graph = NULL;
    INF_TRY(inf_graph_create_inside(&graph, reader->outer, reader->err));
    INF_TRY(fill_graph(reader, depth, graph));
    *out_graph = graph;
    graph = NULL;
    return INF_OK;
}

enum inf_code inf_saved_graph_decode(struct inf_graph **out_graph, const uint8_t *data, size_t size,
                                     const struct inf_saved_blobs *blobs,
                                     const struct inf_graph *outer, struct inf_error *err)
{
    INF_CLEANUP(inf_graph_destroy) struct inf_graph *graph = NULL;
    struct reader reader = {.rest = {data, size}, .blobs = blobs, .outer = outer, .err = err};
    INF_TRY(take_graph(&reader, 0, &graph));
    if (reader.rest.left > 0)
        return fail_reader(&reader, "bytes follow it");
    INF_TRY(inf_graph_verify(graph, err));
    *out_graph = graph;
    graph = NULL;
    return INF_OK;
}
