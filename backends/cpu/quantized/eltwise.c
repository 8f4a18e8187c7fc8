// SPDX-License-Identifier: Apache-2.0
// Element-wise operators between bytes and floats: quantize, dequantize, qbinary, lookup. Scales
// and zero points may be computed; each run reads them once.
#include "backends/cpu/native/work.h"
#include "backends/cpu/quantized/q8.h"

#include <string.h>

#include "backends/graph/shape/infer.h"

#define TASK_ELEMENTS ((size_t)16384)
// The number of multiply-adds that take about as long as one element of these operators.
#define MACS_EACH 8

struct eltwise {
    struct inf_q8_scaling scalings[3];
    inf_q8_binary_fn *binary;
    uint8_t table[256];
    size_t count, workers;
    // Reads the scales and zero points before each run; NULL if the operator has none.
    void (*scale)(const struct inf_cpu_step *step, struct inf_q8_scaling scalings[3]);
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
    struct eltwise *eltwise = step->state;
    if (eltwise->scale != NULL)
        eltwise->scale(step, eltwise->scalings);
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

// --- checking which nodes this file can compute ---

static bool is_byte(const struct inf_graph *graph, uint32_t value)
{
    enum inf_dtype dtype = graph->values[value].dtype;
    return dtype == INF_DTYPE_U8 || dtype == INF_DTYPE_I8;
}

static bool is_wide(const struct inf_graph *graph, uint32_t value)
{
    return graph->values[value].dtype == INF_DTYPE_I16;
}

// Returns INF_UNSUPPORTED unless each operand from index `first` on is either absent or has one
// element.
static enum inf_code need_numbers(const struct inf_graph *graph, const struct inf_node *node,
                                  uint32_t first, struct inf_error *err)
{
    for (uint32_t i = first; i < node->input_count; i++) {
        if (inf_cpu_has_input(node, i) &&
            inf_shape_elements(inf_cpu_input_shape(graph, node, i)) != 1)
            return inf_fail(err, INF_UNSUPPORTED, "cpu: %s: '%s' is not one number",
                            inf_op_info(node->op)->name, graph->values[node->inputs[i]].name);
    }
    return INF_OK;
}

// Returns the scaling of `value`, which is given by its scale and zero point operands. The zero
// point of an INT8 value is signed.
static struct inf_q8_scaling scaling_of(const struct inf_cpu_step *step, uint32_t value,
                                        uint32_t scale, uint32_t zero)
{
    bool is_signed = step->graph->values[value].dtype == INF_DTYPE_I8;
    struct inf_q8_scaling scaling = {.scale = *(const float *)step->inputs[scale]};
    if (inf_cpu_has_input(step->node, zero)) {
        const uint8_t *byte = step->inputs[zero];
        if (is_wide(step->graph, value))
            scaling.zero = *(const int16_t *)step->inputs[zero];
        else
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

// --- operators quantize and dequantize ---

static enum inf_code quantize_supports(const struct inf_graph *graph, const struct inf_node *node,
                                       struct inf_error *err)
{
    INF_TRY(inf_cpu_need_f32(graph, node, 0, err));
    if (!is_byte(graph, node->outputs[0]) && !is_wide(graph, node->outputs[0]))
        return inf_fail(err, INF_UNSUPPORTED,
                        "cpu: quantize: only UINT8, INT8 and INT16 are built");
    return need_numbers(graph, node, 1, err);
}

static void quantize_part(const struct inf_cpu_step *step, size_t first, size_t count)
{
    const struct eltwise *eltwise = step->state;
    step->isa->q8->eltwise->quantize(count, (const float *)step->inputs[0] + first,
                                     eltwise->scalings, (uint8_t *)step->output + first);
}

static void quantize_wide_part(const struct inf_cpu_step *step, size_t first, size_t count)
{
    const struct eltwise *eltwise = step->state;
    step->isa->q8->eltwise->quantize_wide(count, (const float *)step->inputs[0] + first,
                                          eltwise->scalings, (int16_t *)step->output + first);
}

static void read_quantize(const struct inf_cpu_step *step, struct inf_q8_scaling scalings[3])
{
    scalings[0] = scaling_of(step, step->node->outputs[0], 1, 2);
    if (!is_wide(step->graph, step->node->outputs[0])) {
        set_bounds(&scalings[0], -128, 255);
        return;
    }
    scalings[0].low = (float)(INT16_MIN - scalings[0].zero);
    scalings[0].high = (float)(INT16_MAX - scalings[0].zero);
}

static enum inf_code quantize_create(struct inf_cpu_step *step, struct inf_error *err)
{
    struct eltwise *eltwise;
    bool wide = is_wide(step->graph, step->node->outputs[0]);
    INF_TRY(eltwise_make(&eltwise, step, wide ? "q16 quantize" : "q8 quantize", err));
    eltwise->scale = read_quantize;
    eltwise->part = wide ? quantize_wide_part : quantize_part;
    return INF_OK;
}

static enum inf_code dequantize_supports(const struct inf_graph *graph, const struct inf_node *node,
                                         struct inf_error *err)
{
    INF_TRY(inf_cpu_need_f32(graph, node, 1, err));
    if (!is_byte(graph, node->inputs[0]) && !is_wide(graph, node->inputs[0]))
        return inf_fail(err, INF_UNSUPPORTED,
                        "cpu: dequantize: only UINT8, INT8 and INT16 are built");
    return need_numbers(graph, node, 1, err);
}

static void dequantize_part(const struct inf_cpu_step *step, size_t first, size_t count)
{
    const struct eltwise *eltwise = step->state;
    step->isa->q8->eltwise->dequantize(count, (const uint8_t *)step->inputs[0] + first,
                                       eltwise->scalings, (float *)step->output + first);
}

static void dequantize_wide_part(const struct inf_cpu_step *step, size_t first, size_t count)
{
    const struct eltwise *eltwise = step->state;
    step->isa->q8->eltwise->dequantize_wide(count, (const int16_t *)step->inputs[0] + first,
                                            eltwise->scalings, (float *)step->output + first);
}

static void read_dequantize(const struct inf_cpu_step *step, struct inf_q8_scaling scalings[3])
{
    scalings[0] = scaling_of(step, step->node->inputs[0], 1, 2);
    scalings[0].zero += scalings[0].flip;
}

static enum inf_code dequantize_create(struct inf_cpu_step *step, struct inf_error *err)
{
    struct eltwise *eltwise;
    bool wide = is_wide(step->graph, step->node->inputs[0]);
    INF_TRY(eltwise_make(&eltwise, step, wide ? "q16 dequantize" : "q8 dequantize", err));
    eltwise->scale = read_dequantize;
    eltwise->part = wide ? dequantize_wide_part : dequantize_part;
    return INF_OK;
}

// --- operator qbinary: arithmetic between two byte tensors ---

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

// Returns the kernel of a node. For arithmetic in integers, sets the factors of the scalings.
static enum inf_q8_binary choose_binary(const struct inf_attrs_qbinary *attrs,
                                        struct inf_q8_scaling *scalings)
{
    struct inf_qsum_factors factors;
    float b_scale = scalings[1].scale;
    if (attrs->kind == INF_BINARY_MUL) {
        if (!attrs->integer)
            return INF_Q8_MUL;
        scalings[2].scale = scalings[0].scale * b_scale / scalings[2].scale;
        return INF_Q8_PRODUCT;
    }
    if (!attrs->integer ||
        !inf_qsum_factors(scalings[0].scale, attrs->kind == INF_BINARY_SUB ? -b_scale : b_scale,
                          scalings[2].scale, &factors))
        return attrs->kind == INF_BINARY_ADD ? INF_Q8_ADD : INF_Q8_SUB;
    scalings[0].factor = factors.a;
    scalings[1].factor = factors.b;
    scalings[2].factor = factors.shift;
    return INF_Q8_SUM;
}

// Reads the scalings, and chooses the kernel, which depends on them.
static void read_binary(const struct inf_cpu_step *step, struct inf_q8_scaling scalings[3])
{
    const struct inf_node *node = step->node;
    const struct inf_attrs_qbinary *attrs = &node->attrs.qbinary;
    struct eltwise *eltwise = step->state;
    for (uint32_t i = 0; i < 3; i++) {
        scalings[i] = scaling_of(step, i < 2 ? node->inputs[i] : node->outputs[0], 2 + i, 5 + i);
        if (i < 2)
            scalings[i].zero += scalings[i].flip;
    }
    set_bounds(&scalings[2], attrs->min, attrs->max);
    eltwise->binary = step->isa->q8->eltwise->binary[choose_binary(attrs, scalings)];
}

static enum inf_code binary_create(struct inf_cpu_step *step, struct inf_error *err)
{
    struct eltwise *eltwise;
    INF_TRY(eltwise_make(&eltwise, step, "q8 binary", err));
    eltwise->scale = read_binary;
    eltwise->part = binary_part;
    return INF_OK;
}

// --- operator lookup: each byte is an index into a table ---

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
    step->isa->q8->lookup->bytes(eltwise->table, count, x, y);
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
