// SPDX-License-Identifier: Apache-2.0
// Converts the quantisation parameters of a node to the form that the kernels need.
#include "backends/cpu/quantized/q8.h"

#include "backends/cpu/core/counted_memory.h"
#include "proto/core/span.h"

// --- quantisation parameters ---

// Returns the elements of operand `input`; NULL if the operand is absent.
static const void *operand_elements(const struct inf_cpu_step *step, uint32_t input, size_t *count)
{
    *count = 0;
    if (!inf_cpu_has_input(step->node, input))
        return NULL;
    *count = inf_shape_elements(inf_cpu_input_shape(step->graph, step->node, input));
    return step->inputs[input];
}

// Returns the zero point given by operand `input`, which has one element; 0 if the operand is
// absent.
static int32_t zero_of(const struct inf_cpu_step *step, uint32_t input, enum inf_dtype dtype)
{
    size_t count;
    const void *zero = operand_elements(step, input, &count);
    if (zero == NULL)
        return 0;
    return dtype == INF_DTYPE_I8 ? *(const int8_t *)zero : *(const uint8_t *)zero;
}

struct inf_q8_params inf_q8_params_of(const struct inf_cpu_step *step)
{
    const struct inf_node *node = step->node;
    const struct inf_value *values = step->graph->values;
    bool is_matmul = node->op == INF_OP_QMATMUL;
    int32_t min = is_matmul ? node->attrs.qmatmul.min : node->attrs.qconv2d.min;
    int32_t max = is_matmul ? node->attrs.qmatmul.max : node->attrs.qconv2d.max;
    enum inf_dtype y = values[node->outputs[0]].dtype;
    size_t count;
    struct inf_q8_params params = {.flip = values[node->inputs[0]].dtype == INF_DTYPE_I8 ? 0x80 : 0,
                                   .w_flip =
                                       values[node->inputs[1]].dtype == INF_DTYPE_U8 ? 0x80 : 0,
                                   .y_flip = y == INF_DTYPE_I8 ? 0x80 : 0,
                                   .y_size = inf_dtype_size(y)};
    params.bias = operand_elements(step, 2, &count);
    params.w_zeros = operand_elements(step, 4, &params.w_zero_count);
    params.scales = operand_elements(step, 5, &params.scale_count);
    if (params.scales == NULL)
        return params;
    params.y_zero = zero_of(step, 6, y);
    min = INF_MAX(min, y == INF_DTYPE_I8 ? -128 : 0);
    max = INF_MIN(max, y == INF_DTYPE_I8 ? 127 : 255);
    params.low = (float)(INF_MIN(min, max) - params.y_zero);
    params.high = (float)(max - params.y_zero);
    return params;
}

int32_t inf_q8_x_zero_of(const struct inf_cpu_step *step)
{
    enum inf_dtype dtype = step->graph->values[step->node->inputs[0]].dtype;
    return zero_of(step, 3, dtype) + (dtype == INF_DTYPE_I8 ? 0x80 : 0);
}

int32_t inf_q8_w_zero(const struct inf_q8_params *params, size_t channel)
{
    // Without a zero point operand the zero point is 0. If unsigned weights are made signed by
    // subtracting 128, it becomes -128.
    uint8_t zero =
        params->w_zeros != NULL ? params->w_zeros[params->w_zero_count == 1 ? 0 : channel] : 0;
    return (int8_t)(zero ^ params->w_flip);
}

bool inf_q8_has_w_zeros(const struct inf_q8_params *params)
{
    for (size_t i = 0; i < INF_MAX(params->w_zero_count, 1u); i++) {
        if (inf_q8_w_zero(params, i) != 0)
            return true;
    }
    return false;
}

int32_t inf_q8_adjusted_bias(const struct inf_q8_params *params, size_t channel, int32_t w_sum,
                             size_t depth)
{
    uint32_t x_zero = (uint32_t)params->x_zero;
    uint32_t offset = params->bias != NULL ? (uint32_t)params->bias[channel] : 0;
    offset -= x_zero * (uint32_t)w_sum;
    offset += (uint32_t)depth * x_zero * (uint32_t)inf_q8_w_zero(params, channel);
    return (int32_t)offset;
}

float inf_q8_scale(const struct inf_q8_params *params, size_t channel)
{
    return params->scales != NULL ? params->scales[params->scale_count == 1 ? 0 : channel] : 0;
}

struct inf_q8_requant inf_q8_requant_of(const struct inf_q8_params *params, const float *scales)
{
    return (struct inf_q8_requant){.scale = scales,
                                   .low = params->low,
                                   .high = params->high,
                                   .zero = params->y_zero + params->y_flip,
                                   .flip = params->y_flip};
}

size_t inf_q8_scratch_count(size_t size)
{
    return (size + INF_BLOB_SLACK_BYTES + sizeof(float) - 1) / sizeof(float);
}

enum inf_code inf_q8_alloc(void **out_memory, struct inf_cpu_step *step, size_t size,
                           struct inf_error *err)
{
    size_t padded;
    *out_memory = NULL;
    if (inf_size_add(size, INF_BLOB_SLACK_BYTES, &padded))
        *out_memory = inf_cpu_memory_alloc(&step->memory, padded);
    if (*out_memory == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "node '%s': no memory for %zu bytes", step->node->name, size);
    return INF_OK;
}
