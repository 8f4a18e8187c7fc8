// SPDX-License-Identifier: Apache-2.0
// Infers the shapes of a graph node by node and computes, on the way, the nodes whose operands are
// constants or shapes. Then later sizes that are computed from shapes are known as well. The
// comparison of samples needs no rule for such nodes: positions, ranges and triangular masks are
// recognised by their elements.
#include "backends/graph/history/sample.h"

#include <string.h>

#include "backends/graph/shape/infer.h"

// Bounds of what one sample computes, by the bytes of results and by inf_node_work(). A node beyond
// them is not computed; its results are then treated as values that only a run knows.
#define RESULT_BYTES_MAX ((size_t)64 << 20)
#define WORK_MAX         ((uint64_t)1 << 26)

// What a sample may still compute.
struct budget {
    size_t bytes;
    uint64_t work;
};

static bool has_known_operands(const struct inf_graph *graph, const struct inf_node *node)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        uint32_t value = node->inputs[i];
        if (value != INF_VALUE_NONE &&
            (graph->values[value].data == NULL || graph->values[value].data->data == NULL))
            return false;
    }
    return node->op != INF_OP_BRANCH && node->op != INF_OP_LOOP && node->op != INF_OP_RANDOM;
}

// Computes a node and keeps its results. A node that cannot be computed keeps none.
//
// INF_EXHAUSTED  no memory. This is no property of the graph, and may be different later.
static enum inf_code compute_node(struct inf_graph *graph, const struct inf_evaluator *evaluator,
                                  uint32_t index, struct budget *budget, struct inf_error *err)
{
    const struct inf_node *node = &graph->nodes[index];
    struct inf_blob *blobs[4] = {NULL};
    size_t size_bytes;
    uint64_t work = inf_node_work(graph, node);
    bool affordable = node->output_count <= INF_ARRAY_LENGTH(blobs) && work <= budget->work;
    budget->work -= affordable ? work : 0;
    for (uint32_t i = 0; i < node->output_count && affordable; i++) {
        const struct inf_value *value = &graph->values[node->outputs[i]];
        affordable = value->dtype != INF_DTYPE_BYTES &&
                     inf_shape_bytes(&value->shape, value->dtype, &size_bytes) &&
                     size_bytes <= budget->bytes;
        budget->bytes -= affordable ? size_bytes : 0;
    }
    if (!affordable)
        return INF_OK;
    enum inf_code code = inf_evaluator_compute(evaluator, graph, index, blobs);
    if (code == INF_EXHAUSTED)
        return inf_fail_reason(err, code, INF_REASON_HOST_OOM, "node '%s': no memory for a sample",
                               node->name);
    for (uint32_t i = 0; i < node->output_count && code == INF_OK; i++)
        graph->values[node->outputs[i]].data = blobs[i];
    return INF_OK;
}

static enum inf_code sample_nodes(struct inf_graph *graph, const struct inf_evaluator *evaluator,
                                  struct inf_error *err)
{
    struct budget budget = {.bytes = RESULT_BYTES_MAX, .work = WORK_MAX};
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct inf_node *node = &graph->nodes[i];
        INF_TRY(inf_shape_infer_node(graph, i, err));
        for (uint32_t k = 0; k < node->output_count; k++)
            if (!inf_shape_known(&graph->values[node->outputs[k]].shape))
                return inf_fail(err, INF_UNSUPPORTED, "node '%s': its size depends on values",
                                node->name);
        if (node->op == INF_OP_SHAPE || has_known_operands(graph, node))
            INF_TRY(compute_node(graph, evaluator, i, &budget, err));
    }
    return INF_OK;
}

enum inf_code inf_history_sample(const struct inf_graph *graph,
                                 const struct inf_evaluator *evaluator,
                                 const struct inf_shape *shapes, struct inf_graph **out_sample,
                                 struct inf_error *err)
{
    INF_CLEANUP(inf_graph_destroy) struct inf_graph *sample = NULL;
    INF_TRY(inf_graph_clone(&sample, graph, err));
    INF_TRY(inf_graph_bind_shapes(sample, shapes, err));
    INF_TRY(sample_nodes(sample, evaluator, err));
    *out_sample = sample;
    sample = NULL;
    return INF_OK;
}

// --- comparing samples ---

int64_t inf_history_element(const struct inf_value *value, size_t index)
{
    if (value->dtype == INF_DTYPE_I64)
        return ((const int64_t *)value->data->data)[index];
    return ((const int32_t *)value->data->data)[index];
}

// Returns the axis along which `longer` has `growth` elements more; -1 if the shapes are equal, and
// -2 if they differ otherwise.
static int32_t find_growth(const struct inf_shape *shape, const struct inf_shape *longer,
                           int64_t growth)
{
    int32_t axis = -1;
    if (shape->rank != longer->rank)
        return -2;
    for (int32_t i = 0; i < shape->rank; i++) {
        if (shape->dims[i] == longer->dims[i])
            continue;
        if (axis != -1 || longer->dims[i] - shape->dims[i] != growth)
            return -2;
        axis = i;
    }
    return axis;
}

// Returns true if the elements of `value` are the first ones of `longer` along `axis`, or all of
// them if `axis` is -1.
static bool begins_with(const struct inf_value *longer, const struct inf_value *value, int32_t axis)
{
    size_t outer = 1, part = value->data->size_bytes, longer_part = longer->data->size_bytes;
    for (int32_t i = 0; i < axis; i++)
        outer *= (size_t)value->shape.dims[i];
    if (outer == 0)
        return true;
    part /= outer;
    longer_part /= outer;
    for (size_t i = 0; i < outer; i++)
        if (memcmp((const char *)longer->data->data + i * longer_part,
                   (const char *)value->data->data + i * part, part) != 0)
            return false;
    return true;
}

// Returns true if each element of an integer value grows in proportion to the length between two
// samples, by its growth between the last two ones for each row.
static bool is_linear(const struct inf_history_samples *samples, uint32_t index, uint32_t value)
{
    const struct inf_value *shorter = &samples->graphs[index]->values[value];
    const struct inf_value *longer = &samples->graphs[index + 1]->values[value];
    const struct inf_value *last = &samples->graphs[INF_HISTORY_SAMPLES - 1]->values[value];
    const struct inf_value *before = &samples->graphs[INF_HISTORY_SAMPLES - 2]->values[value];
    int64_t rows = samples->lengths[index + 1] - samples->lengths[index];
    if (shorter->dtype != INF_DTYPE_I32 && shorter->dtype != INF_DTYPE_I64)
        return false;
    for (size_t i = 0; i < inf_shape_elements(&shorter->shape); i++) {
        int64_t slope = inf_history_element(last, i) - inf_history_element(before, i);
        if (inf_history_element(longer, i) - inf_history_element(shorter, i) != slope * rows)
            return false;
    }
    return true;
}

struct inf_history_value inf_history_compare(const struct inf_history_samples *samples,
                                             uint32_t value)
{
    struct inf_history_value found = {.kind = INF_HISTORY_COMPUTED, .axis = -2};
    bool known = samples->graphs[0]->values[value].data != NULL, constant = true, linear = true;
    for (uint32_t i = 0; i + 1 < INF_HISTORY_SAMPLES; i++) {
        const struct inf_value *shorter = &samples->graphs[i]->values[value];
        const struct inf_value *longer = &samples->graphs[i + 1]->values[value];
        int32_t axis = find_growth(&shorter->shape, &longer->shape,
                                   samples->lengths[i + 1] - samples->lengths[i]);
        if (axis == -2 || (i > 0 && axis != found.axis))
            return (struct inf_history_value){.kind = INF_HISTORY_OTHER, .axis = -1};
        found.axis = axis;
        known = known && longer->data != NULL;
        // The data is the same object if it is a weight.
        constant = constant && known &&
                   (shorter->data == longer->data || begins_with(longer, shorter, axis));
        linear = linear && known && axis == -1 && is_linear(samples, i, value);
    }
    if (constant)
        found.kind = INF_HISTORY_CONSTANT;
    else if (linear)
        found.kind = INF_HISTORY_LINEAR;
    return found;
}
