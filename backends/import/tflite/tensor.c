// SPDX-License-Identifier: Apache-2.0
// Reads the elements of constants. A constant is first copied in the type of the graph, one byte
// for each integer below 8 bits; a second step converts these elements to f32.
#include "backends/import/tflite/tensor.h"

#include <string.h>

#include "backends/base/half.h"
#include "backends/import/tflite/sparse.h"

bool inf_tflite_tensor_is_const(const struct inf_tflite_tensor *tensor)
{
    size_t count;
    return tensor->data.size > 0 ||
           (!tensor->is_variable && inf_shape_count(&tensor->shape, &count) && count == 0);
}

bool inf_tflite_tensor_is_quantized(const struct inf_tflite_tensor *tensor)
{
    enum inf_dtype dtype = inf_tflite_type_info(tensor->type).dtype;
    return (tensor->quantization.count > 0 || tensor->quantization.block > 0) &&
           (dtype == INF_DTYPE_I8 || dtype == INF_DTYPE_U8 || dtype == INF_DTYPE_I16);
}

bool inf_tflite_tensor_same_scale(const struct inf_tflite_tensor *a,
                                  const struct inf_tflite_tensor *b)
{
    const struct inf_tflite_quantization *p = &a->quantization, *q = &b->quantization;
    return a->type == b->type && p->count == 1 && q->count == 1 && p->scales[0] == q->scales[0] &&
           p->zeros[0] == q->zeros[0];
}

struct inf_tflite_tensor inf_tflite_tensor_as_weights(const struct inf_tflite_tensor *tensor,
                                                      const struct inf_tflite_tensor *x)
{
    static const int64_t no_zero = 0;
    struct inf_tflite_tensor weights = *tensor;
    if (inf_tflite_tensor_is_quantized(x) || tensor->type != INF_TFLITE_TYPE_UINT8 ||
        tensor->quantization.count != 1)
        return weights;
    weights.type = INF_TFLITE_TYPE_INT8;
    weights.quantization.zeros = &no_zero;
    return weights;
}

// --- elements as stored ---

// Unpacks integers below 8 bits to one byte each. The first element is in the lowest bits.
static void unpack_narrow(const uint8_t *packed, uint32_t bits, bool is_signed, size_t count,
                          uint8_t *elements)
{
    uint8_t sign = (uint8_t)(is_signed ? 1u << (bits - 1) : 0);
    for (size_t i = 0; i < count; i++) {
        size_t bit = i * bits;
        uint8_t value = (uint8_t)(packed[bit / 8] >> bit % 8 & ((1u << bits) - 1));
        elements[i] = (uint8_t)((value ^ sign) - sign);
    }
}

static enum inf_code copy_elements(struct inf_blob *blob, const struct inf_tflite_tensor *tensor,
                                   const struct inf_tflite_type_info *type, size_t count)
{
    uint8_t *elements = blob->data;
    if (inf_fb_exists(&tensor->sparsity))
        return inf_tflite_sparse_read(elements, tensor, type->element_bits / 8);
    if (tensor->data.size == 0)
        return INF_OK;
    if (type->element_bits < 8)
        unpack_narrow(tensor->data.data, type->element_bits, type->dtype == INF_DTYPE_I8, count,
                      elements);
    else
        memcpy(elements, tensor->data.data, tensor->data.size);
    // Kernels assume that a bool is 0 or 1.
    for (size_t i = 0; type->dtype == INF_DTYPE_BOOL && i < count; i++)
        elements[i] = elements[i] != 0;
    return INF_OK;
}

enum inf_code inf_tflite_tensor_read(struct inf_blob **out_data,
                                     const struct inf_tflite_tensor *tensor, struct inf_error *err)
{
    struct inf_tflite_type_info type = inf_tflite_type_info(tensor->type);
    size_t count, size_bytes;
    if (type.dtype == INF_DTYPE_NONE)
        return inf_fail_reason(err, INF_UNSUPPORTED, INF_REASON_DTYPE_MISMATCH,
                               "tensor '%.200s' is a constant of type %s", tensor->name, type.name);
    if (!inf_shape_count(&tensor->shape, &count) ||
        !inf_shape_bytes(&tensor->shape, type.dtype, &size_bytes))
        return inf_fail(err, INF_INVALID, "tensor '%.200s' is larger than a tensor may be",
                        tensor->name);
    if (inf_fb_exists(&tensor->sparsity))
        INF_TRY(inf_tflite_sparse_check(tensor, type.element_bits, err));
    struct inf_blob *blob = inf_blob_create(size_bytes);
    if (blob == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "tensor '%.200s': no memory for %zu bytes", tensor->name,
                               size_bytes);
    enum inf_code code = copy_elements(blob, tensor, &type, count);
    if (code == INF_OK)
        *out_data = blob;
    else
        inf_blob_unref(&blob);
    return code;
}

// --- elements as f32 ---

// Returns element `index` of an integer tensor as a number.
static float load_int(const void *data, enum inf_dtype dtype, size_t index)
{
    switch (dtype) {
    case INF_DTYPE_I8:
        return ((const int8_t *)data)[index];
    case INF_DTYPE_U8:
        return ((const uint8_t *)data)[index];
    case INF_DTYPE_I16:
        return ((const int16_t *)data)[index];
    case INF_DTYPE_I32:
        return (float)((const int32_t *)data)[index];
    case INF_DTYPE_I64:
        return (float)((const int64_t *)data)[index];
    default:
        return 0;
    }
}

// Converts quantised elements with one scale, or one for each index of an axis.
static enum inf_code scale_elements(float *to, const void *from, enum inf_dtype dtype,
                                    const struct inf_tflite_tensor *tensor, struct inf_error *err)
{
    const struct inf_tflite_quantization *q = &tensor->quantization;
    size_t count = inf_shape_elements(&tensor->shape), inner = count;
    int32_t axis = q->axis;
    if (q->count > 1) {
        if (axis < 0 || axis >= tensor->shape.rank || (int64_t)q->count != tensor->shape.dims[axis])
            return inf_fail(err, INF_INVALID, "tensor '%.200s' has %u scales along axis %d",
                            tensor->name, q->count, axis);
        inner = 1;
        for (int32_t i = axis + 1; i < tensor->shape.rank; i++)
            inner *= (size_t)tensor->shape.dims[i];
    }
    for (size_t i = 0; i < count; i++) {
        size_t at = q->count > 1 ? i / inner % q->count : 0;
        to[i] = (load_int(from, dtype, i) - (float)q->zeros[at]) * q->scales[at];
    }
    return INF_OK;
}

const struct inf_tflite_tensor *
inf_tflite_tensor_block_scales(const struct inf_tflite_subgraph *subgraph,
                               const struct inf_tflite_tensor *tensor)
{
    const struct inf_tflite_quantization *q = &tensor->quantization;
    int32_t rank = tensor->shape.rank;
    if (q->block_scales < 0 || (uint32_t)q->block_scales >= subgraph->tensor_count || rank < 1)
        return NULL;
    const struct inf_tflite_tensor *scales = &subgraph->tensors[q->block_scales];
    int64_t width = tensor->shape.dims[rank - 1];
    if ((scales->type != INF_TFLITE_TYPE_FLOAT16 && scales->type != INF_TFLITE_TYPE_FLOAT32) ||
        scales->data.size == 0 || inf_fb_exists(&scales->sparsity) || width % q->block != 0 ||
        inf_shape_elements(&scales->shape) * (size_t)q->block != inf_shape_elements(&tensor->shape))
        return NULL;
    return scales;
}

float inf_tflite_tensor_block_scale(const struct inf_tflite_subgraph *subgraph,
                                    const struct inf_tflite_tensor *tensor, size_t block)
{
    const struct inf_tflite_tensor *scales = &subgraph->tensors[tensor->quantization.block_scales];
    uint16_t half;
    float scale;
    if (scales->type == INF_TFLITE_TYPE_FLOAT16) {
        memcpy(&half, scales->data.data + block * sizeof half, sizeof half);
        return inf_half_to_float(half);
    }
    memcpy(&scale, scales->data.data + block * sizeof scale, sizeof scale);
    return scale;
}

// Converts quantised elements of which `block` neighbours along the last axis share a scale.
static enum inf_code scale_blocks(float *to, const void *from, enum inf_dtype dtype,
                                  const struct inf_tflite_subgraph *subgraph,
                                  const struct inf_tflite_tensor *tensor, struct inf_error *err)
{
    size_t block = (size_t)tensor->quantization.block;
    if (inf_tflite_tensor_block_scales(subgraph, tensor) == NULL)
        return inf_fail(err, INF_INVALID,
                        "tensor '%.200s' has blockwise scales that do not fit its shape",
                        tensor->name);
    for (size_t i = 0; i < inf_shape_elements(&tensor->shape); i++)
        to[i] =
            load_int(from, dtype, i) * inf_tflite_tensor_block_scale(subgraph, tensor, i / block);
    return INF_OK;
}

static enum inf_code convert_elements(float *to, const void *from, enum inf_dtype dtype,
                                      const struct inf_tflite_subgraph *subgraph,
                                      const struct inf_tflite_tensor *tensor, struct inf_error *err)
{
    size_t count = inf_shape_elements(&tensor->shape);
    if (tensor->quantization.block > 0)
        return scale_blocks(to, from, dtype, subgraph, tensor, err);
    if (tensor->quantization.count > 0 && !inf_dtype_is_float(dtype))
        return scale_elements(to, from, dtype, tensor, err);
    for (size_t i = 0; i < count; i++) {
        if (dtype == INF_DTYPE_F16)
            to[i] = inf_half_to_float(((const uint16_t *)from)[i]);
        else if (dtype == INF_DTYPE_BF16)
            to[i] = inf_bf16_to_float(((const uint16_t *)from)[i]);
        else
            to[i] = load_int(from, dtype, i);
    }
    return INF_OK;
}

enum inf_code inf_tflite_tensor_read_floats(struct inf_blob **out_data,
                                            const struct inf_tflite_subgraph *subgraph,
                                            const struct inf_tflite_tensor *tensor,
                                            struct inf_error *err)
{
    enum inf_dtype dtype = inf_tflite_type_info(tensor->type).dtype;
    size_t size_bytes;
    struct inf_blob *stored = NULL;
    INF_TRY(inf_tflite_tensor_read(&stored, tensor, err));
    if (dtype == INF_DTYPE_F32) {
        *out_data = stored;
        return INF_OK;
    }
    struct inf_blob *floats = inf_shape_bytes(&tensor->shape, INF_DTYPE_F32, &size_bytes)
                                  ? inf_blob_create(size_bytes)
                                  : NULL;
    enum inf_code code =
        floats != NULL
            ? convert_elements(floats->data, stored->data, dtype, subgraph, tensor, err)
            : inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                              "tensor '%.200s': no memory for its elements", tensor->name);
    inf_blob_unref(&stored);
    if (code == INF_OK)
        *out_data = floats;
    else
        inf_blob_unref(&floats);
    return code;
}
