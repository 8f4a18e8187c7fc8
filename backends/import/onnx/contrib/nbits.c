// SPDX-License-Identifier: Apache-2.0
// Operators on weights of 2, 4 and 8 bits in blocks: MatMulNBits and GatherBlockQuantized, whose
// blocks have a scale and a zero point each, and MatMulBnb4, whose blocks have a scale. A byte
// holds several weights. Except in MatMulBnb4, the first weight is in the lowest bits of its byte:
//
//   the bytes 0xba 0xdc hold the 4-bit weights a b c d
#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/contrib/call.h"
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

// The constant operands of a MatMulNBits, borrowed from the graph: packed weights, scales, packed
// zero points (NULL: absent), and the block of each column (NULL: blocks are consecutive).
struct constants {
    const uint8_t *data;
    const float *scales;
    const uint8_t *zeros;
    const int32_t *index;
};

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

// Reads the operands of a MatMulNBits. Returns true if all are constants, their types are the usual
// ones (weights and zero points u8, scales f32, block indices i32), all block indices are valid,
// and the weights in f32 are not larger than INF_BUILD_CONST_BYTES_MAX.
static bool read_constants(const struct inf_onnx_scope *s, const struct blocks *blocks,
                           struct constants *constants)
{
    uint32_t zero = inf_onnx_input(s, 3), index = inf_onnx_input(s, 4);
    int64_t rows = blocks->n, bytes = (int64_t)blocks->size * blocks->bits / 8;
    int64_t zero_bytes = (blocks->count * blocks->bits + 7) / 8;
    *constants = (struct constants){
        .data = read_constant(s, s->inputs[1], INF_DTYPE_U8, rows * blocks->count * bytes),
        .scales = read_constant(s, s->inputs[2], INF_DTYPE_F32, rows * blocks->count)};
    if (zero != INF_VALUE_NONE)
        constants->zeros = read_constant(s, zero, INF_DTYPE_U8, rows * zero_bytes);
    if (index != INF_VALUE_NONE)
        constants->index = read_constant(s, index, INF_DTYPE_I32, blocks->k);
    bool in_range = (double)blocks->n * blocks->k * sizeof(float) <= INF_BUILD_CONST_BYTES_MAX;
    for (int64_t i = 0; constants->index != NULL && i < blocks->k; i++)
        in_range &= constants->index[i] >= 0 && constants->index[i] < blocks->count;
    return in_range && constants->data != NULL && constants->scales != NULL &&
           (zero == INF_VALUE_NONE || constants->zeros != NULL) &&
           (index == INF_VALUE_NONE || constants->index != NULL);
}

// Adds the weights [k, n] as one f32 constant. The nodes of add_computed_weights() would make more
// constants than folding allows, and if they were not folded, every run would compute the weights.
static uint32_t add_constant_weights(struct inf_onnx_scope *s, const struct blocks *blocks,
                                     const struct constants *constants)
{
    float *out;
    int64_t width = blocks->count * blocks->size, per_byte = 8 / blocks->bits;
    // The packed zero points of a row are padded to whole bytes: `zeros` includes the padding.
    int64_t zeros = (blocks->count + per_byte - 1) / per_byte * per_byte;
    uint32_t value = inf_build_const(&s->b, INF_DTYPE_F32, &INF_SHAPE(blocks->k, blocks->n), &out);
    for (int64_t row = 0; out != NULL && row < blocks->n; row++)
        for (int64_t i = 0; i < blocks->k; i++) {
            int64_t block = constants->index != NULL ? constants->index[i] : i / blocks->size;
            uint32_t zero = constants->zeros != NULL
                                ? read_packed(constants->zeros, row * zeros + block, blocks->bits)
                                : 1u << (blocks->bits - 1);
            uint32_t number = read_packed(constants->data, row * width + i, blocks->bits);
            out[i * blocks->n + row] = (float)((int32_t)number - (int32_t)zero) *
                                       constants->scales[row * blocks->count + block];
        }
    return value;
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
    uint32_t bias = inf_onnx_input(s, 5);
    enum inf_dtype dtype = inf_build_dtype(&s->b, s->inputs[2]);
    struct constants constants;
    // accuracy_level allows a less precise computation, which is not used.
    (void)inf_onnx_find_attr(s, "accuracy_level");
    (void)inf_onnx_find_attr(s, "weight_prepacked");
    if (!inf_build_ok(&s->b))
        return;
    uint32_t b = read_constants(s, &blocks, &constants)
                     ? add_constant_weights(s, &blocks, &constants)
                     : add_computed_weights(s, &blocks, dtype);
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

// Adds nodes that add the size of axis `axis` of x to negative indices, which count from its end.
static uint32_t wrap_indices(struct inf_onnx_scope *s, uint32_t index, uint32_t x, int32_t axis)
{
    enum inf_dtype dtype = inf_build_dtype(&s->b, index);
    uint32_t size = inf_build_cast(&s->b, inf_build_dim_value(&s->b, x, axis), dtype);
    size = inf_build_reshape(&s->b, size, NULL, 0);
    uint32_t is_negative =
        inf_build_compare(&s->b, INF_COMPARE_LESS, index, inf_build_scalar(&s->b, dtype, 0));
    return inf_build_select(&s->b, is_negative, inf_build_add(&s->b, index, size), index);
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
    uint32_t index = wrap_indices(s, s->inputs[1], data, gathered);
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
    {"com.microsoft::GatherBlockQuantized", lower_gather_blocks, 3, 4, 1, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_contrib_nbits = {ops, INF_ARRAY_LENGTH(ops)};
