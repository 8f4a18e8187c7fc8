// SPDX-License-Identifier: Apache-2.0
// Element-wise operators between bytes and floats: quantize, dequantize, qbinary, lookup.
#include "backends/cpu/native/work.h"
#include "backends/cpu/quantized/q8.h"

#include <string.h>

#define TASK_ELEMENTS ((size_t)16384)
// The number of multiply-adds that take about as long as one element of these operators.
#define MACS_EACH 8

struct eltwise {
    struct inf_q8_scaling scalings[3];
    inf_q8_binary_fn *binary;
    uint8_t table[256];
    size_t count, workers;
    void (*part)(const struct inf_cpu_step *step, size_t first, size_t count);
};

static void eltwise_tile(const void *context, size_t tile, size_t worker)
{
    (void)worker;
    const struct inf_cpu_step *step = context;
    const struct eltwise *eltwise = step->state;
    size_t first = tile * TASK_ELEMENTS;
    eltwise->part(step, first, INF_MIN(eltwise->count - first, TASK_ELEMENTS));
}

static void eltwise_run(const struct inf_cpu_step *step)
{
    const struct eltwise *eltwise = step->state;
    struct inf_cpu_tiles work = {eltwise_tile, step,
                                 (eltwise->count + TASK_ELEMENTS - 1) / TASK_ELEMENTS};
    inf_cpu_team_run_tiles(step->team, &work, eltwise->workers);
}

static enum inf_code eltwise_make(struct eltwise **out_eltwise, struct inf_cpu_step *step,
                                  const char *kernel, struct inf_error *err)
{
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct eltwise), err));
    struct eltwise *eltwise = step->state;
    eltwise->count = inf_shape_elements(inf_cpu_output_shape(step->graph, step->node));
    eltwise->workers = inf_native_choose_workers(step, eltwise->count * MACS_EACH);
    step->run = eltwise_run;
    step->kernel = kernel;
    *out_eltwise = eltwise;
    return INF_OK;
}

// --- which nodes are accepted ---

static bool is_byte(const struct inf_graph *graph, uint32_t value)
{
    enum inf_dtype dtype = graph->values[value].dtype;
    return dtype == INF_DTYPE_U8 || dtype == INF_DTYPE_I8;
}

// Returns INF_UNSUPPORTED unless each operand from index `first` on is either absent or a constant
// with one element.
static enum inf_code need_numbers(const struct inf_graph *graph, const struct inf_node *node,
                                  uint32_t first, struct inf_error *err)
{
    for (uint32_t i = first; i < node->input_count; i++) {
        if (!inf_cpu_has_input(node, i))
            continue;
        if (!inf_graph_is_const(graph, node->inputs[i]) ||
            inf_shape_elements(inf_cpu_input_shape(graph, node, i)) != 1)
            return inf_fail(err, INF_UNSUPPORTED, "cpu: %s: '%s' is not one constant number",
                            inf_op_info(node->op)->name, graph->values[node->inputs[i]].name);
    }
    return INF_OK;
}

// Returns the scaling of `value`, which is given by its scale and zero point operands. An INT8 zero
// point is converted to unsigned.
static struct inf_q8_scaling scaling_of(const struct inf_graph *graph, const struct inf_node *node,
                                        uint32_t value, uint32_t scale, uint32_t zero)
{
    bool is_signed = graph->values[value].dtype == INF_DTYPE_I8;
    struct inf_q8_scaling scaling = {.scale = *inf_cpu_const_f32(graph, node, scale)};
    if (inf_cpu_has_input(node, zero)) {
        const uint8_t *byte = graph->values[node->inputs[zero]].data->data;
        scaling.zero = is_signed ? (int8_t)*byte : *byte;
    }
    scaling.flip = is_signed ? 0x80 : 0;
    return scaling;
}

// Sets the bounds of a result relative to its zero point. The zero point is the one in the graph,
// which is not yet converted to unsigned.
static void set_bounds(struct inf_q8_scaling *scaling, int32_t min, int32_t max)
{
    min = INF_MAX(min, scaling->flip != 0 ? -128 : 0);
    max = INF_MIN(max, scaling->flip != 0 ? 127 : 255);
    scaling->low = (float)(INF_MIN(min, max) - scaling->zero);
    scaling->high = (float)(max - scaling->zero);
}

// --- quantize, dequantize ---

static enum inf_code quantize_supports(const struct inf_graph *graph, const struct inf_node *node,
                                       struct inf_error *err)
{
    INF_TRY(inf_cpu_need_f32(graph, node, 0, err));
    if (!is_byte(graph, node->outputs[0]))
        return inf_fail(err, INF_UNSUPPORTED, "cpu: quantize: only 8 bits are built");
    return need_numbers(graph, node, 1, err);
}

static void quantize_part(const struct inf_cpu_step *step, size_t first, size_t count)
{
    const struct eltwise *eltwise = step->state;
    step->isa->q8->eltwise->quantize(count, (const float *)step->inputs[0] + first,
                                     eltwise->scalings, (uint8_t *)step->output + first);
}

static enum inf_code quantize_create(struct inf_cpu_step *step, struct inf_error *err)
{
    struct eltwise *eltwise;
    INF_TRY(eltwise_make(&eltwise, step, "q8 quantize", err));
    eltwise->scalings[0] = scaling_of(step->graph, step->node, step->node->outputs[0], 1, 2);
    set_bounds(&eltwise->scalings[0], -128, 255);
    eltwise->part = quantize_part;
    return INF_OK;
}

static enum inf_code dequantize_supports(const struct inf_graph *graph, const struct inf_node *node,
                                         struct inf_error *err)
{
    INF_TRY(inf_cpu_need_f32(graph, node, 1, err));
    if (!is_byte(graph, node->inputs[0]))
        return inf_fail(err, INF_UNSUPPORTED, "cpu: dequantize: only 8 bits are built");
    return need_numbers(graph, node, 1, err);
}

static void dequantize_part(const struct inf_cpu_step *step, size_t first, size_t count)
{
    const struct eltwise *eltwise = step->state;
    step->isa->q8->eltwise->dequantize(count, (const uint8_t *)step->inputs[0] + first,
                                       eltwise->scalings, (float *)step->output + first);
}

static enum inf_code dequantize_create(struct inf_cpu_step *step, struct inf_error *err)
{
    struct eltwise *eltwise;
    INF_TRY(eltwise_make(&eltwise, step, "q8 dequantize", err));
    eltwise->scalings[0] = scaling_of(step->graph, step->node, step->node->inputs[0], 1, 2);
    eltwise->scalings[0].zero += eltwise->scalings[0].flip;
    eltwise->part = dequantize_part;
    return INF_OK;
}

// --- qbinary ---

static enum inf_code binary_supports(const struct inf_graph *graph, const struct inf_node *node,
                                     struct inf_error *err)
{
    if (!inf_shape_equal(inf_cpu_input_shape(graph, node, 0), inf_cpu_input_shape(graph, node, 1)))
        return inf_fail(err, INF_UNSUPPORTED, "cpu: qbinary: broadcasting is not built");
    return need_numbers(graph, node, 2, err);
}

static void binary_part(const struct inf_cpu_step *step, size_t first, size_t count)
{
    const struct eltwise *eltwise = step->state;
    eltwise->binary(count, (const uint8_t *)step->inputs[0] + first,
                    (const uint8_t *)step->inputs[1] + first, eltwise->scalings,
                    (uint8_t *)step->output + first);
}

static enum inf_code binary_create(struct inf_cpu_step *step, struct inf_error *err)
{
    const struct inf_node *node = step->node;
    const struct inf_attrs_qbinary *attrs = &node->attrs.qbinary;
    struct eltwise *eltwise;
    INF_TRY(eltwise_make(&eltwise, step, "q8 binary", err));
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t value = i < 2 ? node->inputs[i] : node->outputs[0];
        eltwise->scalings[i] = scaling_of(step->graph, node, value, 2 + i, 5 + i);
        if (i < 2)
            eltwise->scalings[i].zero += eltwise->scalings[i].flip;
    }
    set_bounds(&eltwise->scalings[2], attrs->min, attrs->max);
    eltwise->binary = step->isa->q8->eltwise->binary[attrs->kind == INF_BINARY_ADD   ? INF_Q8_ADD
                                                     : attrs->kind == INF_BINARY_SUB ? INF_Q8_SUB
                                                                                     : INF_Q8_MUL];
    eltwise->part = binary_part;
    return INF_OK;
}

// --- lookup ---

static enum inf_code lookup_supports(const struct inf_graph *graph, const struct inf_node *node,
                                     struct inf_error *err)
{
    if (is_byte(graph, node->outputs[0]) && inf_graph_is_const(graph, node->inputs[1]))
        return INF_OK;
    return inf_fail(err, INF_UNSUPPORTED, "cpu: lookup: only constant tables of 8 bits are built");
}

static void lookup_part(const struct inf_cpu_step *step, size_t first, size_t count)
{
    const struct eltwise *eltwise = step->state;
    const uint8_t *x = (const uint8_t *)step->inputs[0] + first;
    uint8_t *y = (uint8_t *)step->output + first;
    for (size_t i = 0; i < count; i++)
        y[i] = eltwise->table[x[i]];
}

static enum inf_code lookup_create(struct inf_cpu_step *step, struct inf_error *err)
{
    struct eltwise *eltwise;
    INF_TRY(eltwise_make(&eltwise, step, "q8 lookup", err));
    memcpy(eltwise->table, step->graph->values[step->node->inputs[1]].data->data,
           sizeof(eltwise->table));
    eltwise->part = lookup_part;
    return INF_OK;
}

const struct inf_cpu_kernel inf_cpu_q8_eltwise_kernels[] = {
    {INF_OP_QUANTIZE, quantize_supports, quantize_create},
    {INF_OP_DEQUANTIZE, dequantize_supports, dequantize_create},
    {INF_OP_QBINARY, binary_supports, binary_create},
    {INF_OP_LOOKUP, lookup_supports, lookup_create},
    {0},
};
