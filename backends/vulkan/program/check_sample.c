// SPDX-License-Identifier: Apache-2.0
// Copies a step of a program to a graph of its own, with shorter axes, so that the reference device
// computes it in milliseconds. Constants stay as they are, because shaders read them in forms that
// depend on them. The last axis keeps its length, because shaders are built for the number of
// channels; products of two tensors keep two axes, which must fit each other.
#include "backends/vulkan/program/check_sample.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/half.h"
#include "backends/base/random.h"
#include "backends/graph/pass/pass.h"
#include "backends/graph/shape/infer.h"
#include "backends/vulkan/device/memory.h"
#include "proto/core/span.h"

// Floats are drawn between -FLOAT_SPAN and FLOAT_SPAN, which reaches both sides of the bounds of
// most activations. Integers that are not indices are drawn between 1 and INT_MOST, because a
// division by 0 fails a run.
#define FLOAT_SPAN 2.0f
#define INT_MOST   100u

// The largest finite 16-bit float.
#define HALF_LARGEST 65504.0f

// If a node rounds or compares, a small error of an operand can change a result by much. Of the
// results of such a step, one and another one in JUMPS may have large errors.
#define JUMPS 32u

static enum inf_code no_memory(struct inf_error *err)
{
    return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                           "vulkan: no memory to check shaders");
}

// --- copying the step ---

// The copy of a step that is being made.
struct copy {
    struct vk_check_sample *sample;
    const struct inf_segment *from;
    uint32_t *map; // indexed by value of the original graph: its copy, or INF_VALUE_NONE
    uint32_t scale;
    uint64_t work_max;
    int32_t kept; // number of axes at the end of a shape that keep their length
};

static bool is_product_of_tensors(const struct inf_graph *graph, const struct inf_node *node)
{
    return node->op == INF_OP_MATMUL && graph->values[node->inputs[1]].data == NULL;
}

static struct inf_shape shorten_shape(const struct copy *copy, const struct inf_shape *shape)
{
    struct inf_shape shorter = *shape;
    for (int32_t i = 0; i < shape->rank - copy->kept; i++)
        shorter.dims[i] = (shape->dims[i] + copy->scale - 1) / copy->scale;
    return shorter;
}

// Copies operand `input` of a node, unless it was copied before. The table of a gather becomes an
// input even if it is a constant, because constants are not shortened and tables may be large.
static enum inf_code copy_operand(struct copy *copy, const struct inf_node *node, uint32_t input,
                                  struct inf_error *err)
{
    const struct inf_value *value = &copy->from->graph->values[node->inputs[input]];
    uint32_t *mine = &copy->map[node->inputs[input]];
    bool table = input == 0 && (node->op == INF_OP_GATHER || node->op == INF_OP_GATHER_ND);
    if (*mine != INF_VALUE_NONE)
        return INF_OK;
    if (value->dtype == INF_DTYPE_BYTES || (value->data != NULL && value->data->data == NULL))
        return inf_fail(err, INF_UNSUPPORTED, "vulkan: value '%s' has no bytes", value->name);
    if (value->data != NULL && !table)
        return inf_graph_add_const(copy->sample->graph, value->name, value->dtype, &value->shape,
                                   inf_blob_ref(value->data), mine, err);
    struct inf_shape shape = shorten_shape(copy, &value->shape);
    return inf_graph_add_value(copy->sample->graph, value->name, value->dtype, &shape, mine, err);
}

static enum inf_code copy_node(struct copy *copy, uint32_t index, struct inf_error *err)
{
    struct inf_graph *graph = copy->sample->graph;
    const struct inf_node *node = &copy->from->graph->nodes[index];
    uint32_t inputs[INF_LIMIT_TENSORS], mine;
    if (node->input_count > INF_ARRAY_LENGTH(inputs))
        return inf_fail(err, INF_UNSUPPORTED, "vulkan: node '%s' has %u operands, wanted %u",
                        node->name, node->input_count, (uint32_t)INF_ARRAY_LENGTH(inputs));
    for (uint32_t i = 0; i < node->input_count; i++) {
        inputs[i] = INF_VALUE_NONE;
        if (node->inputs[i] == INF_VALUE_NONE)
            continue;
        INF_TRY(copy_operand(copy, node, i, err));
        inputs[i] = copy->map[node->inputs[i]];
    }
    INF_TRY(inf_graph_add_node(graph, node->op, node->name, "", inputs, node->input_count,
                               node->output_count, &mine, err));
    graph->nodes[mine].attrs = node->attrs;
    for (uint32_t i = 0; i < node->output_count; i++)
        copy->map[node->outputs[i]] = graph->nodes[mine].outputs[i];
    copy->sample->nodes[mine] = mine;
    copy->sample->pinned[mine] = copy->from->pinned != NULL && copy->from->pinned[index];
    if (inf_shape_infer_node(graph, mine, err) == INF_OK)
        return INF_OK;
    // Any failure means that the step cannot be computed with the smaller shapes.
    return inf_fail(err, INF_UNSUPPORTED, "vulkan: node '%s' has no smaller shapes", node->name);
}

// Adds up the work of the sample, and places its values in a buffer.
static enum inf_code measure_work(const struct copy *copy, struct inf_error *err)
{
    struct vk_check_sample *sample = copy->sample;
    const struct inf_graph *graph = sample->graph;
    uint64_t work = 0;
    for (uint32_t i = 0; i < graph->node_count; i++)
        work += INF_MIN(inf_node_work(graph, &graph->nodes[i]), copy->work_max + 1);
    sample->offsets = calloc((size_t)graph->value_count + 1, sizeof *sample->offsets);
    if (sample->offsets == NULL)
        return no_memory(err);
    for (uint32_t v = 0; v < graph->value_count; v++) {
        const struct inf_value *value = &graph->values[v];
        size_t size;
        if (value->data != NULL)
            continue;
        if (!inf_shape_known(&value->shape) ||
            !inf_shape_bytes(&value->shape, value->dtype, &size) || size == 0)
            return inf_fail(err, INF_UNSUPPORTED, "vulkan: value '%s' has no size", value->name);
        sample->offsets[v] = sample->bytes;
        sample->bytes += (size_t)vk_span_bytes(INF_MIN(size, VK_CHECK_BYTES_MAX + 1));
        if (sample->bytes > VK_CHECK_BYTES_MAX)
            break;
    }
    if (work > copy->work_max || sample->bytes > VK_CHECK_BYTES_MAX)
        return inf_fail(err, INF_RANGE, "vulkan: a sample takes more than a check may");
    return INF_OK;
}

static enum inf_code fill_segment(struct copy *copy, struct inf_error *err)
{
    struct vk_check_sample *sample = copy->sample;
    struct inf_graph *graph = sample->graph;
    const struct inf_node *last = &graph->nodes[graph->node_count - 1];
    char name[16];
    for (uint32_t i = 0; i < last->output_count; i++) {
        snprintf(name, sizeof name, "y%u", i);
        INF_TRY(inf_graph_add_output(graph, name, last->outputs[i], err));
    }
    if (copy->from->lowered != NULL) {
        sample->lowered = calloc((size_t)graph->value_count + 1, sizeof *sample->lowered);
        if (sample->lowered == NULL)
            return no_memory(err);
        for (uint32_t v = 0; v < copy->from->graph->value_count; v++)
            if (copy->map[v] != INF_VALUE_NONE)
                sample->lowered[copy->map[v]] = copy->from->lowered[v];
    }
    inf_graph_list_readers(graph, sample->readers);
    sample->segment = *copy->from;
    sample->segment.graph = graph;
    sample->segment.nodes = sample->nodes;
    sample->segment.node_count = graph->node_count;
    sample->segment.readers = sample->readers;
    sample->segment.slots = 1;
    sample->segment.pinned = sample->pinned;
    sample->segment.lowered = sample->lowered;
    return INF_OK;
}

static enum inf_code copy_step(struct copy *copy, const uint32_t *nodes, uint32_t count,
                               struct inf_error *err)
{
    INF_TRY(inf_graph_create_inside(&copy->sample->graph, copy->from->graph, err));
    for (uint32_t i = 0; i < count; i++)
        if (is_product_of_tensors(copy->from->graph, &copy->from->graph->nodes[nodes[i]]))
            copy->kept = 2;
    for (uint32_t i = 0; i < count; i++)
        INF_TRY(copy_node(copy, nodes[i], err));
    INF_TRY(measure_work(copy, err));
    return fill_segment(copy, err);
}

enum inf_code vk_check_sample_init(struct vk_check_sample *sample,
                                   const struct inf_segment *segment, const uint32_t *nodes,
                                   uint32_t count, uint32_t scale, uint64_t work_max,
                                   struct inf_error *err)
{
    *sample = (struct vk_check_sample){0};
    if (count == 0 || count > VK_CHECK_NODES_MAX)
        return inf_fail(err, INF_UNSUPPORTED, "vulkan: a step of %u nodes, wanted 1 to %u", count,
                        VK_CHECK_NODES_MAX);
    uint32_t value_count = segment->graph->value_count;
    struct copy copy = {.sample = sample,
                        .from = segment,
                        .map = malloc(((size_t)value_count + 1) * sizeof *copy.map),
                        .scale = scale,
                        .work_max = work_max,
                        .kept = 1};
    if (copy.map == NULL)
        return no_memory(err);
    for (uint32_t v = 0; v < value_count; v++)
        copy.map[v] = INF_VALUE_NONE;
    enum inf_code code = copy_step(&copy, nodes, count, err);
    free(copy.map);
    return code;
}

void vk_check_sample_fini(struct vk_check_sample *sample)
{
    inf_graph_destroy(&sample->graph);
    free(sample->lowered);
    free(sample->offsets);
    *sample = (struct vk_check_sample){0};
}

// --- drawing the inputs ---

static bool is_lowered(const struct vk_check_sample *sample, uint32_t value)
{
    return sample->lowered != NULL && sample->lowered[value] &&
           sample->graph->values[value].dtype == INF_DTYPE_F32;
}

// Returns the number of valid indices if a node reads the value as indices; 0 if none does.
static uint32_t count_indices(const struct inf_graph *graph, uint32_t value)
{
    for (uint32_t n = 0; n < graph->node_count; n++) {
        const struct inf_node *node = &graph->nodes[n];
        if ((node->op != INF_OP_GATHER && node->op != INF_OP_GATHER_ND) || node->inputs[1] != value)
            continue;
        const struct inf_shape *table = &graph->values[node->inputs[0]].shape;
        int64_t least = table->dims[0];
        for (int32_t i = 1; i < table->rank; i++)
            least = INF_MIN(least, table->dims[i]);
        return (uint32_t)INF_MIN(least, (int64_t)INT_MOST);
    }
    return 0;
}

static void draw_floats(float *floats, size_t count, uint32_t *state, bool half)
{
    for (size_t i = 0; i < count; i++) {
        floats[i] = inf_random_float(state) * FLOAT_SPAN;
        if (half)
            floats[i] = inf_half_to_float(inf_half_from_float(floats[i]));
    }
}

static void draw_elements(const struct vk_check_sample *sample, uint32_t index, void *elements,
                          size_t count, uint32_t *state)
{
    const struct inf_value *value = &sample->graph->values[index];
    uint32_t indices = count_indices(sample->graph, index);
    size_t size = inf_dtype_size(value->dtype);
    if (value->dtype == INF_DTYPE_F32) {
        draw_floats(elements, count, state, is_lowered(sample, index));
        return;
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = inf_random_bits(state);
        uint64_t element = indices > 0 ? bits % indices : 1 + bits % INT_MOST;
        if (value->dtype == INF_DTYPE_BOOL)
            element = bits & 1;
        else if (size == 1)
            element = bits & 0xff;
        memcpy((char *)elements + i * size, &element, size); // little-endian
    }
}

// Copies elements to the memory of the device: floats in 16 bits if the value is lowered.
static void store_elements(const struct vk_check_sample *sample, uint32_t value, void *to)
{
    const struct inf_blob *blob = sample->graph->values[value].data;
    if (!is_lowered(sample, value)) {
        memcpy(to, blob->data, blob->size_bytes);
        return;
    }
    for (size_t i = 0; i < blob->size_bytes / sizeof(float); i++)
        ((uint16_t *)to)[i] = inf_half_from_float(((const float *)blob->data)[i]);
}

enum inf_code vk_check_sample_draw(struct vk_check_sample *sample, void *bytes,
                                   struct inf_error *err)
{
    uint32_t state = 12345;
    memset(bytes, 0xff, sample->bytes);
    for (uint32_t v = 0; v < sample->graph->value_count; v++) {
        struct inf_value *value = &sample->graph->values[v];
        size_t size = 0;
        if (value->data != NULL || value->producer != INF_NODE_NONE)
            continue;
        (void)!inf_shape_bytes(&value->shape, value->dtype, &size); // measure_work() has checked it
        value->data = inf_blob_create(size);
        if (value->data == NULL)
            return no_memory(err);
        draw_elements(sample, v, value->data->data, inf_shape_elements(&value->shape), &state);
        store_elements(sample, v, (char *)bytes + sample->offsets[v]);
    }
    return INF_OK;
}

// --- comparing results ---

// Returns true if a small error of an operand can change a result of the node by much.
static bool may_jump_at(const struct inf_node *node)
{
    switch (node->op) {
    case INF_OP_COMPARE:
    case INF_OP_CAST:
    case INF_OP_ARG:
        return true;
    case INF_OP_UNARY:
        switch (node->attrs.unary.kind) {
        case INF_UNARY_SIGN:
        case INF_UNARY_FLOOR:
        case INF_UNARY_CEIL:
        case INF_UNARY_ROUND:
        case INF_UNARY_TRUNC:
            return true;
        default:
            return false;
        }
    case INF_OP_BINARY:
        return node->attrs.binary.kind == INF_BINARY_FLOOR_DIV ||
               node->attrs.binary.kind == INF_BINARY_FLOOR_MOD ||
               node->attrs.binary.kind == INF_BINARY_MOD;
    default:
        return false;
    }
}

// Returns true if the results are real numbers that were rounded to bytes. They may differ by one,
// because a small error can change the direction of a rounding.
static bool is_quantized(const struct inf_node *node)
{
    return node->op == INF_OP_QCONV2D || node->op == INF_OP_QMATMUL ||
           node->op == INF_OP_QUANTIZE || node->op == INF_OP_QBINARY;
}

// What the comparison of the results of a step has found so far.
struct comparison {
    double most;        // largest error of a correct result
    double error;       // largest error
    double next;        // largest error that does not exceed `most`
    size_t count;       // number of compared results
    size_t differences; // number of results whose error exceeds `most`
};

static void add_error(struct comparison *comparison, double error)
{
    comparison->count++;
    comparison->error = fmax(comparison->error, error);
    comparison->differences += error > comparison->most;
    if (error <= comparison->most)
        comparison->next = fmax(comparison->next, error);
}

// Returns the mean magnitude of the finite numbers.
static double mean_size(const float *wanted, size_t count)
{
    double sum = 0;
    size_t finite = 0;
    for (size_t i = 0; i < count; i++)
        if (isfinite(wanted[i])) {
            sum += fabs((double)wanted[i]);
            finite++;
        }
    return finite > 0 ? sum / (double)finite : 0;
}

static void compare_floats(struct comparison *comparison, const void *got, bool half,
                           const float *wanted, size_t count)
{
    const double mean = mean_size(wanted, count) + 1e-6;
    for (size_t i = 0; i < count; i++) {
        double y = half ? (double)inf_half_to_float(((const uint16_t *)got)[i])
                        : (double)((const float *)got)[i];
        if (!isfinite(wanted[i]) || (half && fabsf(wanted[i]) > HALF_LARGEST))
            continue;
        double error = fabs(y - (double)wanted[i]) / (fabs((double)wanted[i]) + mean);
        add_error(comparison, isnan(error) ? (double)INFINITY : error);
    }
}

static void compare_integers(struct comparison *comparison, const struct inf_node *node,
                             const struct inf_value *value, const uint8_t *got,
                             const uint8_t *wanted, size_t count)
{
    size_t size = inf_dtype_size(value->dtype);
    int allowed = is_quantized(node) ? 1 : 0;
    for (size_t i = 0; i < count; i++) {
        bool same = memcmp(got + i * size, wanted + i * size, size) == 0;
        if (size == 1 && value->dtype == INF_DTYPE_I8)
            same |= abs((int8_t)got[i] - (int8_t)wanted[i]) <= allowed;
        else if (size == 1)
            same |= abs(got[i] - wanted[i]) <= allowed;
        add_error(comparison, same ? 0 : (double)INFINITY);
    }
}

enum inf_code vk_check_sample_compare(struct vk_check_sample *sample,
                                      const struct inf_evaluator *oracle, const void *bytes,
                                      double most, double *out_error, struct inf_error *err)
{
    struct inf_graph *graph = sample->graph;
    bool may_jump = false;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        struct inf_blob *blobs[INF_LIMIT_TENSORS];
        const struct inf_node *node = &graph->nodes[n];
        if (node->output_count > INF_ARRAY_LENGTH(blobs) ||
            inf_evaluator_compute(oracle, graph, n, blobs) != INF_OK)
            return inf_fail(err, INF_UNSUPPORTED, "vulkan: node '%s' has nothing to compare with",
                            node->name);
        for (uint32_t i = 0; i < node->output_count; i++)
            graph->values[node->outputs[i]].data = blobs[i];
        may_jump |= may_jump_at(node);
    }
    const struct inf_node *last = &graph->nodes[graph->node_count - 1];
    struct comparison comparison = {.most = most};
    for (uint32_t i = 0; i < last->output_count; i++) {
        uint32_t v = last->outputs[i];
        const struct inf_value *value = &graph->values[v];
        const char *got = (const char *)bytes + sample->offsets[v];
        size_t count = inf_shape_elements(&value->shape);
        if (value->dtype == INF_DTYPE_F32)
            compare_floats(&comparison, got, is_lowered(sample, v), value->data->data, count);
        else
            compare_integers(&comparison, last, value, (const uint8_t *)got, value->data->data,
                             count);
    }
    bool few = may_jump && comparison.differences <= 1 + comparison.count / JUMPS;
    *out_error = few ? comparison.next : comparison.error;
    return INF_OK;
}
