// SPDX-License-Identifier: Apache-2.0
// Writes a graph as bytes, in the byte order of the machine: the file is for this machine only.
// Attributes are written one by one, as the table of operators lists them, so that no padding is
// written.
#include <stdlib.h>
#include <string.h>

#include "backends/saved/saved_graph.h"
#include "proto/core/span.h"

void inf_saved_append(struct inf_saved_bytes *bytes, const void *data, size_t size)
{
    size_t wanted;
    if (bytes->failed || size == 0)
        return;
    if (!inf_size_add(bytes->size, size, &wanted)) {
        bytes->failed = true;
        return;
    }
    if (wanted > bytes->capacity) {
        size_t capacity = INF_MAX(wanted, bytes->capacity + bytes->capacity / 2 + 4096);
        uint8_t *grown = realloc(bytes->data, capacity);
        if (grown == NULL) {
            bytes->failed = true;
            return;
        }
        bytes->data = grown;
        bytes->capacity = capacity;
    }
    memcpy(bytes->data + bytes->size, data, size);
    bytes->size = wanted;
}

static void append_u32(struct inf_saved_bytes *bytes, uint32_t number)
{
    inf_saved_append(bytes, &number, sizeof number);
}

static void append_text(struct inf_saved_bytes *bytes, const char *text)
{
    uint32_t length = (uint32_t)strlen(text);
    append_u32(bytes, length);
    inf_saved_append(bytes, text, length);
}

// --- constants ---

static uint32_t count_constants(const struct inf_graph *graph)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < graph->value_count; i++)
        count += graph->values[i].data != NULL;
    for (uint32_t i = 0; i < graph->subgraph_count; i++)
        count += count_constants(graph->subgraphs[i]);
    return count;
}

static void list_constants(struct inf_saved_blobs *blobs, const struct inf_graph *graph)
{
    for (uint32_t i = 0; i < graph->value_count; i++)
        if (graph->values[i].data != NULL)
            blobs->items[blobs->count++] = graph->values[i].data;
    for (uint32_t i = 0; i < graph->subgraph_count; i++)
        list_constants(blobs, graph->subgraphs[i]);
}

static int compare_blobs(const void *a, const void *b)
{
    const struct inf_blob *x = *(struct inf_blob *const *)a, *y = *(struct inf_blob *const *)b;
    return x < y ? -1 : x > y;
}

enum inf_code inf_saved_blobs_list(struct inf_saved_blobs *blobs,
                                   const struct inf_graph *const *graphs, size_t graph_count,
                                   struct inf_error *err)
{
    size_t count = 0;
    *blobs = (struct inf_saved_blobs){0};
    for (size_t i = 0; i < graph_count; i++)
        count += count_constants(graphs[i]);
    blobs->items = calloc(count + 1, sizeof(struct inf_blob *));
    if (blobs->items == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for a plan");
    for (size_t i = 0; i < graph_count; i++)
        list_constants(blobs, graphs[i]);
    if (blobs->count > 0)
        qsort(blobs->items, blobs->count, sizeof(struct inf_blob *), compare_blobs);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < blobs->count; i++)
        if (i == 0 || blobs->items[i] != blobs->items[i - 1])
            blobs->items[kept++] = blobs->items[i];
    blobs->count = kept;
    return INF_OK;
}

uint32_t inf_saved_blobs_find(const struct inf_saved_blobs *blobs, struct inf_blob *blob)
{
    struct inf_blob **found =
        blob != NULL && blobs->count > 0
            ? bsearch(&blob, blobs->items, blobs->count, sizeof(struct inf_blob *), compare_blobs)
            : NULL;
    return found != NULL ? (uint32_t)(found - blobs->items) : UINT32_MAX;
}

// --- the graph ---

static void append_shape(struct inf_saved_bytes *bytes, const struct inf_shape *shape)
{
    inf_saved_append(bytes, &shape->rank, sizeof shape->rank);
    if (shape->rank > 0)
        inf_saved_append(bytes, shape->dims, (size_t)shape->rank * sizeof shape->dims[0]);
}

static void append_attrs(struct inf_saved_bytes *bytes, const struct inf_node *node)
{
    const struct inf_op_info *info = inf_op_info(node->op);
    for (size_t i = 0; i < info->attr_count; i++) {
        const unsigned char *at = (const unsigned char *)&node->attrs + info->attrs[i].offset;
        struct inf_ints ints;
        switch (info->attrs[i].type) {
        case INF_ATTR_TYPE_BOOL:
            inf_saved_append(bytes, at, sizeof(bool));
            break;
        case INF_ATTR_TYPE_INT:
        case INF_ATTR_TYPE_FLOAT:
        case INF_ATTR_TYPE_ENUM:
            inf_saved_append(bytes, at, 4);
            break;
        case INF_ATTR_TYPE_INTS:
            memcpy(&ints, at, sizeof ints);
            append_u32(bytes, (uint32_t)ints.count);
            inf_saved_append(bytes, ints.values, (size_t)ints.count * sizeof ints.values[0]);
            break;
        }
    }
}

static void append_ports(struct inf_saved_bytes *bytes, const struct inf_port *ports,
                         uint32_t count)
{
    append_u32(bytes, count);
    for (uint32_t i = 0; i < count; i++) {
        append_text(bytes, ports[i].name);
        append_u32(bytes, ports[i].value);
    }
}

void inf_saved_graph_encode(struct inf_saved_bytes *bytes, const struct inf_graph *graph,
                            const struct inf_saved_blobs *blobs)
{
    append_u32(bytes, graph->value_count);
    for (uint32_t i = 0; i < graph->value_count; i++) {
        const struct inf_value *value = &graph->values[i];
        append_text(bytes, value->name);
        append_u32(bytes, (uint32_t)value->dtype);
        append_shape(bytes, &value->shape);
        append_u32(bytes, value->producer);
        append_u32(bytes, inf_saved_blobs_find(blobs, value->data));
    }
    append_u32(bytes, graph->node_count);
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct inf_node *node = &graph->nodes[i];
        append_u32(bytes, (uint32_t)node->op);
        append_text(bytes, node->name);
        append_text(bytes, node->source);
        append_u32(bytes, node->input_count);
        inf_saved_append(bytes, node->inputs, node->input_count * sizeof *node->inputs);
        append_u32(bytes, node->output_count);
        inf_saved_append(bytes, node->outputs, node->output_count * sizeof *node->outputs);
        append_attrs(bytes, node);
    }
    append_ports(bytes, graph->inputs, graph->input_count);
    append_ports(bytes, graph->outputs, graph->output_count);
    append_u32(bytes, graph->subgraph_count);
    for (uint32_t i = 0; i < graph->subgraph_count; i++)
        inf_saved_graph_encode(bytes, graph->subgraphs[i], blobs);
}
