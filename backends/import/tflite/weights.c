// SPDX-License-Identifier: Apache-2.0
// Weights and biases of convolutions and matrix products.
#include <assert.h>

#include "backends/graph/build/operators.h"
#include "backends/import/tflite/quantize.h"
#include "backends/import/tflite/tensor.h"

static bool is_byte_tensor(const struct inf_tflite_tensor *tensor)
{
    enum inf_dtype dtype = inf_tflite_type_info(tensor->type).dtype;
    return (dtype == INF_DTYPE_I8 || dtype == INF_DTYPE_U8) && tensor->quantization.count > 0;
}

// Adds constant weights as bytes behind a dequantize node.
static uint32_t add_byte_weights(struct inf_tflite_scope *s, const struct inf_tflite_tensor *tensor,
                                 const struct inf_tflite_layout *layout)
{
    int32_t axis = 0;
    struct inf_blob *data = NULL;
    for (int32_t i = 0; i < layout->rank; i++)
        if (layout->perm[i] == tensor->quantization.axis)
            axis = i;
    if (inf_build_ok(&s->b))
        s->b.code = inf_tflite_tensor_read(&data, tensor, s->b.err);
    uint32_t value = inf_tflite_add_permuted(
        &s->b, tensor, inf_tflite_type_info(tensor->type).dtype, data, layout);
    return inf_tflite_dequantize(&s->b, value, tensor, axis);
}

uint32_t inf_tflite_weights(struct inf_tflite_scope *s, uint32_t index, uint32_t data,
                            const struct inf_tflite_layout *layout)
{
    const struct inf_tflite_tensor *tensor = inf_tflite_input_tensor(s, index);
    const struct inf_tflite_tensor *x = inf_tflite_input_tensor(s, data);
    assert(tensor != NULL && x != NULL);
    if (tensor->shape.rank != layout->rank) {
        inf_build_fail(&s->b, INF_INVALID, "input %u has %d axes, wanted %d", index,
                       tensor->shape.rank, layout->rank);
        return INF_VALUE_NONE;
    }
    if (!inf_tflite_tensor_is_const(tensor))
        return inf_build_transpose(&s->b, inf_tflite_real(s, index), layout->perm, layout->rank);
    if (is_byte_tensor(tensor) && is_byte_tensor(x))
        return add_byte_weights(s, tensor, layout);
    const struct inf_tflite_tensor weights = inf_tflite_tensor_as_weights(tensor, x);
    return inf_tflite_add_floats(s, &weights, layout);
}

uint32_t inf_tflite_bias(struct inf_tflite_scope *s, uint32_t index, uint32_t data,
                         uint32_t weights)
{
    const struct inf_tflite_tensor *tensor = inf_tflite_input_tensor(s, index);
    if (tensor == NULL)
        return INF_VALUE_NONE;
    const struct inf_tflite_quantization *x = &inf_tflite_input_tensor(s, data)->quantization;
    const struct inf_tflite_quantization *w = &inf_tflite_input_tensor(s, weights)->quantization;
    enum inf_dtype dtype = inf_tflite_type_info(tensor->type).dtype;
    bool is_wide = dtype == INF_DTYPE_I32 || dtype == INF_DTYPE_I64;
    size_t count = inf_shape_elements(&tensor->shape);
    if (!is_wide)
        return inf_tflite_real(s, index);
    if (!inf_tflite_tensor_is_const(tensor) || x->count != 1 || w->count == 0 ||
        (w->count != 1 && w->count != count)) {
        inf_build_fail(&s->b, INF_UNSUPPORTED, "its bias is %s and does not fit the scales",
                       inf_dtype_name(dtype));
        return INF_VALUE_NONE;
    }
    struct inf_blob *stored = NULL;
    float *bias;
    if (inf_build_ok(&s->b))
        s->b.code = inf_tflite_tensor_read(&stored, tensor, s->b.err);
    uint32_t value = inf_build_const(&s->b, INF_DTYPE_F32, &tensor->shape, &bias);
    for (size_t i = 0; bias != NULL && i < count; i++) {
        double number = dtype == INF_DTYPE_I32 ? (double)((int32_t *)stored->data)[i]
                                               : (double)((int64_t *)stored->data)[i];
        bias[i] =
            (float)(number * ((double)x->scales[0] * (double)w->scales[w->count > 1 ? i : 0]));
    }
    inf_blob_unref(&stored);
    return value;
}
