// SPDX-License-Identifier: Apache-2.0
// Operators on weights of 2, 4 and 8 bits in blocks: MatMulNBits and GatherBlockQuantized, whose
// blocks have a scale and a zero point each, and MatMulBnb4, whose blocks have a scale. A byte
// holds several weights. Except in MatMulBnb4, the first weight is in the lowest bits of its byte:
//
//   the bytes 0xba 0xdc hold the 4-bit weights a b c d
#include <string.h>

#include "backends/base/half.h"
#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/contrib/call.h"
#include "backends/import/onnx/heads.h"
#include "backends/import/onnx/op_table.h"

// The largest K, N and block_size of MatMulNBits: the product of two of them and of 8 bits fits
// into 64 bits.
#define SIZE_MAX_NBITS (1 << 20)

// Adds nodes that unpack bytes [..., n] to u8 numbers [..., n * 8 / bits] of `bits` bits each. If
// `high_first`, the first number of a byte is in its highest bits, otherwise in its lowest bits.
static uint32_t unpack_bytes(struct inf_onnx_scope *s, uint32_t x, int32_t bits, bool high_first)
{
    int32_t rank = inf_build_rank(&s->b, x), count = 8 / bits;
    uint32_t parts[8];
    if (count == 1 || !inf_build_ok(&s->b))
        return x;
    for (int32_t i = 0; i < count; i++) {
        int32_t shift = (high_first ? count - 1 - i : i) * bits;
        uint32_t part = inf_build_binary_number(&s->b, INF_BINARY_SHIFT_RIGHT, x, shift);
        part = inf_build_binary_number(&s->b, INF_BINARY_BITWISE_AND, part, (1 << bits) - 1);
        parts[i] = inf_build_expand_dims(&s->b, part, (int64_t[]){rank}, 1);
    }
    uint32_t all = inf_build_concat(&s->b, parts, (uint32_t)count, rank);
    int64_t width = inf_build_known_dim(&s->b, x, -1) * count;
    uint32_t dims[INF_LIMIT_RANK];
    for (int32_t i = 0; i < rank - 1; i++)
        dims[i] = inf_build_dim_value(&s->b, x, i);
    dims[rank - 1] = inf_build_list(&s->b, &width, 1);
    return inf_build_reshape_to(&s->b, all, inf_build_concat(&s->b, dims, (uint32_t)rank, 0));
}

// The attributes K, N, bits and block_size of MatMulNBits and MatMulBnb4.
struct blocks {
    int32_t k, n, bits, size;
    int64_t count; // number of blocks of one row of K weights
};

static struct blocks read_blocks(struct inf_onnx_scope *s)
{
    struct blocks blocks = {
        .k = inf_onnx_attr_int(s, "K", 0),
        .n = inf_onnx_attr_int(s, "N", 0),
        .bits = inf_onnx_attr_int(s, "bits", 4),
        .size = inf_onnx_attr_int(s, "block_size", 0),
    };
    if (blocks.k < 1 || blocks.k > SIZE_MAX_NBITS || blocks.n < 1 || blocks.n > SIZE_MAX_NBITS ||
        blocks.size < 8 || blocks.size > SIZE_MAX_NBITS || blocks.size % 8 != 0)
        inf_build_fail(&s->b, INF_INVALID, "K is %d, N is %d, block_size is %d", blocks.k, blocks.n,
                       blocks.size);
    else if (blocks.bits != 2 && blocks.bits != 4 && blocks.bits != 8)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "bits is %d, wanted 2, 4 or 8", blocks.bits);
    else
        blocks.count = (blocks.k + (int64_t)blocks.size - 1) / blocks.size;
    return blocks;
}

// Adds nodes that compute the zero points as floats [n, blocks]. `zero` holds packed bytes or
// floats. If it is INF_VALUE_NONE, the zero point is a scalar, the middle of the range of weights.
static uint32_t add_zero_points(struct inf_onnx_scope *s, const struct blocks *blocks,
                                uint32_t zero, enum inf_dtype dtype)
{
    if (zero == INF_VALUE_NONE)
        return inf_build_scalar(&s->b, dtype, 1 << (blocks->bits - 1));
    if (inf_build_dtype(&s->b, zero) != INF_DTYPE_U8)
        return inf_build_cast(
            &s->b, inf_build_reshape(&s->b, zero, (int64_t[]){blocks->n, blocks->count}, 2), dtype);
    int64_t bytes = (blocks->count * blocks->bits + 7) / 8;
    zero = inf_build_reshape(&s->b, zero, (int64_t[]){blocks->n, bytes}, 2);
    zero =
        inf_build_slice(&s->b, unpack_bytes(s, zero, blocks->bits, false), 1, 0, blocks->count, 1);
    return inf_build_cast(&s->b, zero, dtype);
}

// Adds nodes that convert x, one number for each block [n, blocks], to a shape that broadcasts to
// the weights: [n, blocks, 1], or [n, k] if `index` [k] gives the block of each column. Returns x
// if x is a scalar.
static uint32_t spread_blocks(struct inf_onnx_scope *s, uint32_t x, uint32_t index)
{
    if (inf_build_rank(&s->b, x) == 0)
        return x;
    return index == INF_VALUE_NONE ? inf_build_expand_dims(&s->b, x, (int64_t[]){2}, 1)
                                   : inf_build_gather(&s->b, x, index, 1);
}

// --- weights that are constants ---

// Returns number `place` of an array of packed numbers of `bits` bits.
static uint32_t read_packed(const uint8_t *data, int64_t place, int32_t bits)
{
    int64_t per_byte = 8 / bits;
    return (uint32_t)data[place / per_byte] >> (place % per_byte * bits) & ((1u << bits) - 1);
}

// Returns the data of `value` if it is a constant of `count` elements of type `dtype`; otherwise
// NULL.
static const void *read_constant(const struct inf_onnx_scope *s, uint32_t value,
                                 enum inf_dtype dtype, int64_t count)
{
    if (!inf_build_is_const(&s->b, value) || inf_build_dtype(&s->b, value) != dtype ||
        inf_shape_elements(inf_build_shape_of(&s->b, value)) != (size_t)count)
        return NULL;
    return s->b.graph->values[value].data->data;
}

// Returns `value` as FP32 if it is a constant of `count` floats; otherwise INF_VALUE_NONE.
static uint32_t find_floats(struct inf_onnx_scope *s, uint32_t value, int64_t count)
{
    float *to;
    if (read_constant(s, value, INF_DTYPE_F32, count) != NULL)
        return value;
    const uint16_t *halves = read_constant(s, value, INF_DTYPE_F16, count);
    if (halves == NULL)
        return INF_VALUE_NONE;
    uint32_t floats = inf_build_const(&s->b, INF_DTYPE_F32, &INF_SHAPE(count), &to);
    for (int64_t i = 0; to != NULL && i < count; i++)
        to[i] = inf_half_to_float(halves[i]);
    return floats;
}

// Sets *zero to the zero points as matmul_blocks takes them: FP32, or one byte for each block and
// rows padded to a multiple of 4 bytes. Returns false if they are not constants.
static bool find_zero_points(struct inf_onnx_scope *s, const struct blocks *blocks, uint32_t *zero)
{
    uint8_t *to;
    int64_t bytes = (blocks->count * blocks->bits + 7) / 8, step = (blocks->count + 3) / 4 * 4;
    const uint8_t *from = read_constant(s, *zero, INF_DTYPE_U8, blocks->n * bytes);
    if (from == NULL) {
        *zero = find_floats(s, *zero, blocks->n * blocks->count);
        return *zero != INF_VALUE_NONE;
    }
    *zero = inf_build_const(&s->b, INF_DTYPE_U8, &INF_SHAPE(blocks->n, step), &to);
    for (int64_t row = 0; to != NULL && row < blocks->n; row++)
        for (int64_t i = 0; i < blocks->count; i++)
            to[row * step + i] = (uint8_t)read_packed(from + row * bytes, i, blocks->bits);
    return true;
}

// Sorts the weights of a column by block; index[i] is the block of weight i. Sets order[i] to the
// old place of weight i. Returns false if a block, except the last, has not blocks->size weights.
static bool sort_by_block(const struct blocks *blocks, const int32_t *index, int32_t *order)
{
    int64_t sorted = 0;
    for (int32_t block = 0; block < blocks->count; block++) {
        int64_t first = sorted;
        for (int32_t i = 0; i < blocks->k && sorted - first < blocks->size; i++)
            if (index[i] == block)
                order[sorted++] = i;
        if (sorted - first != blocks->size && block + 1 < blocks->count)
            return false;
    }
    return sorted == blocks->k;
}

// Adds the packed weights with the weights of each column in the order `order`.
static uint32_t add_sorted_weights(struct inf_onnx_scope *s, const struct blocks *blocks,
                                   const int32_t *order)
{
    uint8_t *to;
    const uint8_t *from = s->b.graph->values[s->inputs[1]].data->data;
    int64_t bytes = blocks->count * blocks->size * blocks->bits / 8, each = 8 / blocks->bits;
    uint32_t value =
        inf_build_const(&s->b, INF_DTYPE_U8, inf_build_shape_of(&s->b, s->inputs[1]), &to);
    for (int64_t row = 0; to != NULL && row < blocks->n; row++, from += bytes, to += bytes) {
        memset(to, 0, (size_t)bytes);
        for (int64_t i = 0; i < blocks->k; i++)
            to[i / each] |=
                (uint8_t)(read_packed(from, order[i], blocks->bits) << (i % each * blocks->bits));
    }
    return value;
}

// Sets *x and *w to the operands that input 4, the block of each weight, asks for. If blocks are
// consecutive, these are the operator's own. Otherwise weights are sorted by block once, and every
// run gathers the elements of x in the same order. Returns false if input 4 is not constant, or if
// blocks have different numbers of weights.
static bool find_sorted(struct inf_onnx_scope *s, const struct blocks *blocks, uint32_t *x,
                        uint32_t *w)
{
    uint32_t index = inf_onnx_input(s, 4);
    int32_t *order;
    *x = s->inputs[0];
    *w = s->inputs[1];
    if (index == INF_VALUE_NONE)
        return true;
    const int32_t *block = read_constant(s, index, INF_DTYPE_I32, blocks->k);
    bool consecutive = block != NULL;
    for (int64_t i = 0; consecutive && i < blocks->k; i++)
        consecutive = block[i] == i / blocks->size;
    if (consecutive || block == NULL)
        return consecutive;
    uint32_t list = inf_build_const(&s->b, INF_DTYPE_I32, &INF_SHAPE(blocks->k), &order);
    if (order == NULL || !sort_by_block(blocks, block, order))
        return false;
    *w = add_sorted_weights(s, blocks, order);
    *x = inf_build_gather(&s->b, *x, list, -1);
    return true;
}

// Sets inputs[0] and up to the operands of a matmul_blocks. Returns false if the operator cannot
// take them: an operand is no constant or has another shape than usual, or block sizes are not a
// multiple of 16 or differ.
static bool find_operands(struct inf_onnx_scope *s, const struct blocks *blocks, uint32_t inputs[5])
{
    int64_t bytes = (int64_t)blocks->size * blocks->bits / 8;
    const struct inf_shape *shape = inf_build_shape_of(&s->b, s->inputs[1]);
    enum inf_dtype dtype = inf_build_dtype(&s->b, s->inputs[0]);
    uint32_t bias = inf_onnx_input(s, 5);
    if (blocks->size % 16 != 0 || (dtype != INF_DTYPE_F32 && dtype != INF_DTYPE_F16) ||
        shape->rank != 3 || shape->dims[0] != blocks->n ||
        read_constant(s, s->inputs[1], INF_DTYPE_U8, blocks->n * blocks->count * bytes) == NULL ||
        !find_sorted(s, blocks, &inputs[0], &inputs[1]))
        return false;
    inputs[2] = find_floats(s, s->inputs[2], blocks->n * blocks->count);
    inputs[3] = inf_onnx_input(s, 3);
    if (inputs[2] == INF_VALUE_NONE ||
        (inputs[3] != INF_VALUE_NONE && !find_zero_points(s, blocks, &inputs[3])))
        return false;
    inputs[0] = inf_build_cast(&s->b, inputs[0], INF_DTYPE_F32);
    inputs[4] = bias == INF_VALUE_NONE ? bias : inf_build_cast(&s->b, bias, INF_DTYPE_F32);
    return true;
}

// Adds nodes that compute the weights [k, n] at run time.
static uint32_t add_computed_weights(struct inf_onnx_scope *s, const struct blocks *blocks,
                                     enum inf_dtype dtype)
{
    uint32_t index = inf_onnx_input(s, 4);
    int64_t rows = blocks->n, width = blocks->count * blocks->size;
    int64_t bytes = (int64_t)blocks->size * blocks->bits / 8;
    uint32_t b = inf_build_reshape(&s->b, s->inputs[1], (int64_t[]){rows, blocks->count, bytes}, 3);
    b = inf_build_cast(&s->b, unpack_bytes(s, b, blocks->bits, false), dtype);
    uint32_t scale = inf_build_reshape(&s->b, s->inputs[2], (int64_t[]){rows, blocks->count}, 2);
    uint32_t zero = add_zero_points(s, blocks, inf_onnx_input(s, 3), dtype);
    if (index != INF_VALUE_NONE)
        b = inf_build_slice(&s->b, inf_build_reshape(&s->b, b, (int64_t[]){rows, width}, 2), 1, 0,
                            blocks->k, 1);
    b = inf_build_sub(&s->b, b, spread_blocks(s, zero, index));
    b = inf_build_mul(&s->b, b, spread_blocks(s, scale, index));
    if (index == INF_VALUE_NONE)
        b = inf_build_slice(&s->b, inf_build_reshape(&s->b, b, (int64_t[]){rows, width}, 2), 1, 0,
                            blocks->k, 1);
    return inf_build_transpose(&s->b, b, (int64_t[]){1, 0}, 2);
}

// Lowers MatMulNBits: a times the transpose of the weights b, whose packed form is [n, blocks,
// bytes of a block]. Inputs: a, b, scales, zero points, block of each column, bias.
static void lower_matmul_nbits(struct inf_onnx_scope *s)
{
    struct blocks blocks = read_blocks(s);
    uint32_t bias = inf_onnx_input(s, 5), inputs[5];
    enum inf_dtype dtype = inf_build_dtype(&s->b, s->inputs[2]);
    // accuracy_level allows a less precise computation, which is not used.
    (void)inf_onnx_find_attr(s, "accuracy_level");
    (void)inf_onnx_find_attr(s, "weight_prepacked");
    if (!inf_build_ok(&s->b))
        return;
    if (find_operands(s, &blocks, inputs)) {
        uint32_t y = inf_build_matmul_blocks(&s->b, inputs, blocks.bits, blocks.size, false);
        s->outputs[0] = inf_build_cast(&s->b, y, inf_build_dtype(&s->b, s->inputs[0]));
        return;
    }
    uint32_t b = add_computed_weights(s, &blocks, dtype);
    uint32_t y = inf_build_matmul(&s->b, s->inputs[0], b);
    s->outputs[0] = bias == INF_VALUE_NONE ? y : inf_build_add(&s->b, y, bias);
}

// Lowers MatMulBnb4: a times the transpose of b. Each weight of b is an index of 4 bits into a
// table of 16 numbers, and the number is multiplied by the scale of its block. Blocks are
// consecutive weights of the flattened b [n, k]. Inputs: a, b (two weights in a byte), scales.
static void lower_matmul_bnb4(struct inf_onnx_scope *s)
{
    // The tables of bitsandbytes: FP4, and the quantiles of a normal distribution (NF4).
    static const float tables[2][16] = {
        {0, 5.208333e-3f, 2.0f / 3, 1, 1.0f / 3, 0.5f, 1.0f / 6, 0.25f, -0.0f, -5.208333e-3f,
         -2.0f / 3, -1, -1.0f / 3, -0.5f, -1.0f / 6, -0.25f},
        {-1, -0.69619280f, -0.52507305f, -0.39491749f, -0.28444138f, -0.18477343f, -0.09105004f, 0,
         0.07958030f, 0.16093020f, 0.24611230f, 0.33791524f, 0.44070983f, 0.56261700f, 0.72295684f,
         1}};
    int32_t type = inf_onnx_attr_int(s, "quant_type", 1);
    struct blocks blocks = read_blocks(s);
    (void)inf_onnx_find_attr(s, "training_mode");
    if (inf_onnx_attr_int(s, "transB", 1) != 1 || type < 0 || type > 1)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "quant_type is %d, or transB is 0", type);
    if (inf_build_ok(&s->b) && (int64_t)blocks.k * blocks.n % blocks.size != 0)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "block_size %d does not divide %d times %d",
                       blocks.size, blocks.k, blocks.n);
    if (!inf_build_ok(&s->b))
        return;
    uint32_t b = inf_build_reshape(&s->b, s->inputs[1], (int64_t[]){-1}, 1);
    b = inf_build_cast(&s->b, unpack_bytes(s, b, 4, true), INF_DTYPE_I32);
    b = inf_build_gather(&s->b, inf_build_floats(&s->b, tables[type], 16), b, 0);
    b = inf_build_reshape(&s->b, b, (int64_t[]){-1, blocks.size}, 2);
    b = inf_build_mul(&s->b, b, inf_build_reshape(&s->b, s->inputs[2], (int64_t[]){-1, 1}, 2));
    b = inf_build_reshape(&s->b, b, (int64_t[]){blocks.n, blocks.k}, 2);
    s->outputs[0] =
        inf_build_matmul(&s->b, s->inputs[0], inf_build_transpose(&s->b, b, (int64_t[]){1, 0}, 2));
}

// Adds nodes that repeat each number of x `block` times along `axis`: x has one number for each
// block, and the result one for each of `size` elements.
static uint32_t repeat_blocks(struct inf_onnx_scope *s, uint32_t x, int32_t axis, int64_t size,
                              int32_t block)
{
    int32_t *index;
    uint32_t indices = inf_build_const(&s->b, INF_DTYPE_I32, &INF_SHAPE(size), &index);
    for (int64_t i = 0; index != NULL && i < size; i++)
        index[i] = (int32_t)(i / block);
    return inf_build_gather(&s->b, x, indices, axis);
}

// Adds nodes that gather x (the data, scales or zero points) along `axis` and convert it to
// `dtype`. If `packed`, x is bytes with several numbers of `bits` bits each, packed along the last
// axis.
static uint32_t take_rows(struct inf_onnx_scope *s, uint32_t x, uint32_t index, int32_t axis,
                          int32_t bits, bool packed, enum inf_dtype dtype)
{
    x = inf_build_gather(&s->b, x, index, axis);
    x = packed ? unpack_bytes(s, x, bits, false) : x;
    return inf_build_cast(&s->b, x, dtype);
}

// Lowers GatherBlockQuantized: gathers slices of quantised data and dequantises them. Inputs: data
// (numbers of 4 or 8 bits, or bytes with several numbers each), indices, scales, zero points.
static void lower_gather_blocks(struct inf_onnx_scope *s)
{
    uint32_t data = s->inputs[0], zero = inf_onnx_input(s, 3);
    int32_t rank = inf_build_rank(&s->b, data), block = inf_onnx_attr_int(s, "block_size", 128);
    int32_t gathered = inf_build_axis(&s->b, inf_onnx_attr_int(s, "gather_axis", 0), rank);
    int32_t axis = inf_build_axis(&s->b, inf_onnx_attr_int(s, "quantize_axis", 1), rank);
    int32_t bits = inf_onnx_attr_int(s, "bits", 4);
    // The importer stores a 4-bit initialiser with one number per byte. Data that is u8 in the
    // model can have several numbers per byte. Then the scales have more blocks than the axis of
    // the data needs at one number per byte.
    int64_t width = inf_build_known_dim(&s->b, data, axis);
    int64_t count = inf_build_known_dim(&s->b, s->inputs[2], axis);
    if (inf_build_ok(&s->b) && (gathered == axis || block < 1 || (bits != 4 && bits != 8)))
        inf_build_fail(&s->b, INF_UNSUPPORTED,
                       "gather_axis is %d, quantize_axis %d, block_size %d, bits %d", gathered,
                       axis, block, bits);
    if (!inf_build_ok(&s->b))
        return;
    bool packed = inf_build_dtype(&s->b, data) == INF_DTYPE_U8 && axis == rank - 1 && bits < 8 &&
                  (width * 8 / bits + block - 1) / block == count &&
                  (width + block - 1) / block != count;
    width = packed ? width * 8 / bits : width;
    enum inf_dtype dtype = inf_build_dtype(&s->b, s->inputs[2]);
    uint32_t index = inf_onnx_wrap_indices(s, s->inputs[1], data, gathered);
    uint32_t x = take_rows(s, data, index, gathered, bits, packed, dtype);
    uint32_t scale = take_rows(s, s->inputs[2], index, gathered, bits, false, dtype);
    axis += axis > gathered ? inf_build_rank(&s->b, s->inputs[1]) - 1 : 0;
    if (zero != INF_VALUE_NONE) {
        zero = take_rows(s, zero, index, gathered, bits, packed, dtype);
        zero = inf_build_slice(&s->b, zero, axis, 0, count, 1);
        x = inf_build_sub(&s->b, x, repeat_blocks(s, zero, axis, width, block));
    } else if (packed) {
        x = inf_build_binary_number(&s->b, INF_BINARY_SUB, x, 1 << (bits - 1));
    }
    s->outputs[0] = inf_build_mul(&s->b, x, repeat_blocks(s, scale, axis, width, block));
}

static const struct inf_onnx_op ops[] = {
    {"com.microsoft::MatMulNBits", lower_matmul_nbits, 3, 6, 1, 0},
    {"com.microsoft::MatMulBnb4", lower_matmul_bnb4, 3, 3, 1, 0},
    {"com.microsoft::GatherBlockQuantized", lower_gather_blocks, 3, 4, 1, 0,
     .narrow = INF_ONNX_NARROW_READ},
};

const struct inf_onnx_op_table inf_onnx_ops_contrib_nbits = {ops, INF_ARRAY_LENGTH(ops)};
