// SPDX-License-Identifier: Apache-2.0
// Weights that stay integers although the product is one of floats: with one scale for the tensor
// or each output (a column is then one block or several equal ones), or with one scale for each
// block of a column. They take as much memory as in the file, and a product with one row reads them
// several times as fast as floats.
#include "backends/import/tflite/block_weights.h"

#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/tflite/quantize.h"
#include "backends/import/tflite/tensor.h"
#include "proto/core/span.h"

#define BLOCK_UNIT   16        // blocks of matmul_blocks are multiples of it
#define BLOCK_MAX    (1 << 20) // the largest block
#define ELEMENTS_MIN 1024      // smaller matrices become floats
#define BLOCK_WANTED 2048 // longer columns are several blocks: one as floats stays in the cache

// Returns the bits of a packed weight; 0 if there is no such form.
static int32_t packed_bits(const struct inf_tflite_tensor *tensor)
{
    struct inf_tflite_type_info type = inf_tflite_type_info(tensor->type);
    if (type.dtype != INF_DTYPE_I8 && type.dtype != INF_DTYPE_U8)
        return 0;
    return type.element_bits == 2 || type.element_bits == 4 || type.element_bits == 8
               ? (int32_t)type.element_bits
               : 0;
}

static bool fits_blocks(const struct inf_tflite_scope *s, const struct inf_tflite_tensor *tensor,
                        const struct inf_tflite_tensor *x)
{
    const struct inf_tflite_quantization *q = &tensor->quantization;
    if (tensor->shape.rank != 2 || !inf_tflite_tensor_is_const(tensor) ||
        inf_tflite_tensor_is_quantized(x) || packed_bits(tensor) == 0 ||
        inf_shape_elements(&tensor->shape) < ELEMENTS_MIN)
        return false;
    if (q->block > 0)
        // Unsigned blocks have no zero points, but those of matmul_blocks do.
        return inf_tflite_type_info(tensor->type).dtype == INF_DTYPE_I8 &&
               q->block % BLOCK_UNIT == 0 && q->block <= BLOCK_MAX &&
               inf_tflite_tensor_block_scales(s->frame->subgraph, tensor) != NULL;
    return tensor->shape.dims[1] <= BLOCK_MAX - BLOCK_UNIT &&
           (q->count == 1 ||
            (q->count > 1 && q->axis == 0 && (int64_t)q->count == tensor->shape.dims[0]));
}

// Packs the elements of a matrix as unsigned numbers of `bits` bits, the first in the lowest bits.
// Each row of the matrix begins a new block. Numbers behind its end are 0.
static void pack_elements(uint8_t *to, const uint8_t *elements, const struct inf_shape *shape,
                          int32_t bits, int32_t block, bool is_signed)
{
    size_t width = (size_t)shape->dims[1];
    size_t padded = (width + (size_t)block - 1) / (size_t)block * (size_t)block;
    uint8_t middle = (uint8_t)(is_signed ? 1u << (bits - 1) : 0);
    uint8_t mask = (uint8_t)((1u << bits) - 1);
    for (int64_t row = 0; row < shape->dims[0]; row++)
        for (size_t i = 0; i < width; i++) {
            size_t bit = ((size_t)row * padded + i) * (size_t)bits;
            uint8_t number = (uint8_t)(*elements++ + middle) & mask;
            to[bit / 8] |= (uint8_t)(number << bit % 8);
        }
}

static uint32_t add_weights(struct inf_tflite_scope *s, const struct inf_tflite_tensor *tensor,
                            int32_t bits, int32_t block)
{
    int64_t count = (tensor->shape.dims[1] + block - 1) / block;
    const struct inf_shape shape =
        INF_SHAPE(tensor->shape.dims[0], count, (int64_t)block * bits / 8);
    struct inf_blob *stored = NULL;
    size_t size;
    if (inf_build_ok(&s->b))
        s->b.code = inf_tflite_tensor_read(&stored, tensor, s->b.err);
    if (!inf_build_ok(&s->b))
        return INF_VALUE_NONE;
    struct inf_blob *packed =
        inf_shape_bytes(&shape, INF_DTYPE_U8, &size) ? inf_blob_create(size) : NULL;
    if (packed == NULL)
        inf_build_fail(&s->b, INF_EXHAUSTED, "no memory for the weights '%.200s'", tensor->name);
    else
        pack_elements(packed->data, stored->data, &tensor->shape, bits, block,
                      inf_tflite_type_info(tensor->type).dtype == INF_DTYPE_I8);
    inf_blob_unref(&stored);
    return inf_tflite_add_blob(&s->b, tensor->name, INF_DTYPE_U8, &shape, packed);
}

// Adds the scales of all blocks, and their zero points unless these are in the middle of the range.
static void add_scales(struct inf_tflite_scope *s, const struct inf_tflite_tensor *tensor,
                       struct inf_tflite_block_weights *weights)
{
    const struct inf_tflite_quantization *q = &tensor->quantization;
    int64_t blocks = (weights->inputs + weights->block - 1) / weights->block;
    const struct inf_shape shape = INF_SHAPE(weights->outputs * blocks);
    bool is_signed = inf_tflite_type_info(tensor->type).dtype == INF_DTYPE_I8;
    float middle = (float)(1 << (weights->bits - 1));
    float *scales;
    float *zeros = NULL;
    bool centred = q->block > 0;
    for (uint32_t i = 0; i < q->count && q->block == 0; i++)
        centred = (i == 0 || centred) && (float)q->zeros[i] == (is_signed ? 0 : middle);
    weights->scales = inf_build_const(&s->b, INF_DTYPE_F32, &shape, &scales);
    weights->zeros =
        centred ? INF_VALUE_NONE : inf_build_const(&s->b, INF_DTYPE_F32, &shape, &zeros);
    for (int64_t i = 0; scales != NULL && i < weights->outputs * blocks; i++) {
        size_t at = q->count > 1 ? (size_t)(i / blocks) : 0;
        scales[i] = q->block > 0
                        ? inf_tflite_tensor_block_scale(s->frame->subgraph, tensor, (size_t)i)
                        : q->scales[at];
        if (zeros != NULL)
            zeros[i] = (float)q->zeros[at] + (is_signed ? middle : 0);
    }
}

bool inf_tflite_block_weights_add(struct inf_tflite_scope *s, uint32_t index, uint32_t data,
                                  struct inf_tflite_block_weights *weights)
{
    const struct inf_tflite_tensor *stored = inf_tflite_input_tensor(s, index);
    const struct inf_tflite_tensor *x = inf_tflite_input_tensor(s, data);
    if (!inf_build_ok(&s->b) || stored == NULL || x == NULL || !fits_blocks(s, stored, x))
        return false;
    const struct inf_tflite_tensor read = inf_tflite_tensor_as_weights(stored, x);
    const struct inf_tflite_tensor *tensor = &read;
    int64_t width = tensor->shape.dims[1];
    *weights = (struct inf_tflite_block_weights){.bits = packed_bits(tensor),
                                                 .block = tensor->quantization.block,
                                                 .outputs = tensor->shape.dims[0],
                                                 .inputs = width};
    if (weights->block == 0)
        weights->block = (int32_t)((INF_MIN(width, (int64_t)BLOCK_WANTED) + BLOCK_UNIT - 1) /
                                   BLOCK_UNIT * BLOCK_UNIT);
    weights->weights = add_weights(s, tensor, weights->bits, weights->block);
    add_scales(s, tensor, weights);
    return true;
}
