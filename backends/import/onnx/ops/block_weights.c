// SPDX-License-Identifier: Apache-2.0
// Packs matrices [k, n] whose columns consist of blocks, in the form that matmul_blocks reads: one
// column after the other, [n, blocks, bytes of a block], with unsigned numbers. Half of the range
// is added to signed numbers and to their zero points.
//
// DequantizeLinear always adds its nodes, and remembers the matrix. A product that finds the matrix
// reads the packed weights, and not the result of these nodes. If nothing else reads that result,
// the pass drop_dead removes the nodes before any pass computes them.
#include "backends/import/onnx/ops/block_weights.h"

#include "backends/base/half.h"
#include "backends/graph/build/operators.h"

#define BLOCK_UNIT 16        // blocks of matmul_blocks are multiples of it
#define BLOCK_MAX  (1 << 20) // the largest block
// The number of columns that are packed together. A row of the matrix has them side by side, so
// that a larger number reads more contiguous bytes. The cache must hold the part of each packed
// column that is being written.
#define COLUMNS 64

struct inf_onnx_blocks_list {
    struct inf_onnx_blocks blocks;
    const struct inf_graph *graph;  // whose values they are
    bool is_packed;                 // a product has set the following members
    uint32_t packed, scales, zeros; // operands of matmul_blocks
    struct inf_onnx_blocks_list *next;
};

// Returns the data of a constant matrix [rows, columns] of this type; NULL for other values.
static const void *read_matrix(const struct inf_graph *graph, uint32_t value, enum inf_dtype dtype,
                               int64_t rows, int64_t columns)
{
    if (value == INF_VALUE_NONE || !inf_graph_is_const(graph, value))
        return NULL;
    const struct inf_value *constant = &graph->values[value];
    const struct inf_shape wanted = INF_SHAPE(rows, columns);
    return constant->dtype == dtype && inf_shape_equal(&constant->shape, &wanted)
               ? constant->data->data
               : NULL;
}

void inf_onnx_blocks_note(struct inf_onnx_scope *s, const struct inf_onnx_blocks *blocks)
{
    const struct inf_graph *graph = s->b.graph;
    if (!inf_build_ok(&s->b) || !inf_graph_is_const(graph, blocks->weights) ||
        blocks->block % BLOCK_UNIT != 0 || blocks->block < BLOCK_UNIT || blocks->block > BLOCK_MAX)
        return;
    const struct inf_value *weights = &graph->values[blocks->weights];
    if (weights->shape.rank != 2 ||
        (weights->dtype != INF_DTYPE_I8 && weights->dtype != INF_DTYPE_U8))
        return;
    int64_t k = weights->shape.dims[0], n = weights->shape.dims[1];
    int64_t count = (k + blocks->block - 1) / blocks->block;
    if ((read_matrix(graph, blocks->scales, INF_DTYPE_F32, count, n) == NULL &&
         read_matrix(graph, blocks->scales, INF_DTYPE_F16, count, n) == NULL) ||
        (blocks->zeros != INF_VALUE_NONE &&
         read_matrix(graph, blocks->zeros, weights->dtype, count, n) == NULL))
        return;
    struct inf_onnx_blocks_list *entry = inf_arena_alloc(s->import->arena, sizeof *entry);
    if (entry == NULL) {
        inf_build_fail(&s->b, INF_EXHAUSTED, "no memory for weights in blocks");
        return;
    }
    *entry =
        (struct inf_onnx_blocks_list){.blocks = *blocks, .graph = graph, .next = s->import->blocks};
    s->import->blocks = entry;
}

// Writes the numbers of the matrix `from` [k, n] to `to` [n, blocks, bytes of a block], which is
// zeroed.
static void pack_columns(const struct inf_onnx_blocks *blocks, const uint8_t *from, int64_t k,
                         int64_t n, uint8_t middle, uint8_t *to)
{
    size_t bits = (size_t)blocks->bits;
    size_t padded = (size_t)((k + blocks->block - 1) / blocks->block * blocks->block);
    uint8_t mask = (uint8_t)((1u << bits) - 1);
    for (int64_t first = 0; first < n; first += COLUMNS)
        for (int64_t row = 0; row < k; row++)
            for (int64_t column = first; column < INF_MIN(first + COLUMNS, n); column++) {
                size_t bit = ((size_t)column * padded + (size_t)row) * bits;
                uint8_t number = (uint8_t)(from[row * n + column] + middle) & mask;
                to[bit / 8] |= (uint8_t)(number << bit % 8);
            }
}

static uint32_t add_packed(struct inf_onnx_scope *s, const struct inf_onnx_blocks *blocks,
                           uint8_t middle)
{
    const struct inf_value *weights = &s->b.graph->values[blocks->weights];
    int64_t k = weights->shape.dims[0], n = weights->shape.dims[1];
    int64_t count = (k + blocks->block - 1) / blocks->block;
    const struct inf_shape shape = INF_SHAPE(n, count, (int64_t)blocks->block * blocks->bits / 8);
    size_t size;
    uint32_t value = INF_VALUE_NONE;
    struct inf_blob *packed =
        inf_shape_bytes(&shape, INF_DTYPE_U8, &size) ? inf_blob_create(size) : NULL;
    if (packed == NULL) {
        inf_build_fail(&s->b, INF_EXHAUSTED, "no memory for the weights '%.200s'", weights->name);
        return value;
    }
    pack_columns(blocks, weights->data->data, k, n, middle, packed->data);
    s->b.code = inf_graph_add_const(s->b.graph, weights->name, INF_DTYPE_U8, &shape, packed, &value,
                                    s->b.err);
    return value;
}

// Adds the scales of all blocks, those of a column together.
static uint32_t add_scales(struct inf_onnx_scope *s, uint32_t scales)
{
    float *to;
    int64_t count = inf_build_dim(&s->b, scales, 0), n = inf_build_dim(&s->b, scales, 1);
    uint32_t value = inf_build_const(&s->b, INF_DTYPE_F32, &INF_SHAPE(n * count), &to);
    const struct inf_value *from = &s->b.graph->values[scales];
    for (int64_t i = 0; to != NULL && i < n * count; i++) {
        int64_t at = i % count * n + i / count;
        to[i] = from->dtype == INF_DTYPE_F32
                    ? ((const float *)from->data->data)[at]
                    : inf_half_to_float(((const uint16_t *)from->data->data)[at]);
    }
    return value;
}

// Adds the zero points as matmul_blocks takes them: a byte for each block, and columns padded to a
// multiple of 4 bytes. `zeros` may be INF_VALUE_NONE.
static uint32_t add_zeros(struct inf_onnx_scope *s, uint32_t zeros, int64_t count, int64_t n,
                          uint8_t middle)
{
    uint8_t *to;
    int64_t step = (count + 3) / 4 * 4;
    uint32_t value = inf_build_const(&s->b, INF_DTYPE_U8, &INF_SHAPE(n, step), &to);
    const uint8_t *from = zeros == INF_VALUE_NONE ? NULL : s->b.graph->values[zeros].data->data;
    for (int64_t i = 0; to != NULL && i < n * count; i++) {
        uint8_t number = from == NULL ? 0 : from[i % count * n + i / count];
        to[i / count * step + i % count] = (uint8_t)(number + middle);
    }
    return value;
}

static void add_operands(struct inf_onnx_scope *s, struct inf_onnx_blocks_list *entry)
{
    const struct inf_onnx_blocks *blocks = &entry->blocks;
    bool is_signed = inf_build_dtype(&s->b, blocks->weights) == INF_DTYPE_I8;
    uint8_t middle = is_signed ? (uint8_t)(1u << (blocks->bits - 1)) : 0;
    int64_t count = inf_build_dim(&s->b, blocks->scales, 0);
    int64_t n = inf_build_dim(&s->b, blocks->scales, 1);
    entry->packed = add_packed(s, blocks, middle);
    entry->scales = add_scales(s, blocks->scales);
    // Without zero points matmul_blocks takes the middle of the range.
    entry->zeros = is_signed && blocks->zeros == INF_VALUE_NONE
                       ? INF_VALUE_NONE
                       : add_zeros(s, blocks->zeros, count, n, middle);
    entry->is_packed = true;
}

uint32_t inf_onnx_blocks_multiply(struct inf_onnx_scope *s, uint32_t x, uint32_t w)
{
    struct inf_onnx_blocks_list *entry = s->import->blocks;
    while (entry != NULL && (entry->graph != s->b.graph || entry->blocks.result != w))
        entry = entry->next;
    if (entry == NULL || inf_build_rank(&s->b, x) < 1 ||
        inf_build_dim(&s->b, x, -1) != inf_build_dim(&s->b, w, 0))
        return INF_VALUE_NONE;
    if (!entry->is_packed)
        add_operands(s, entry);
    enum inf_dtype dtype = inf_build_dtype(&s->b, x);
    const uint32_t inputs[] = {inf_build_cast(&s->b, x, INF_DTYPE_F32), entry->packed,
                               entry->scales, entry->zeros, INF_VALUE_NONE};
    uint32_t y = inf_build_matmul_blocks(&s->b, inputs, entry->blocks.bits, entry->blocks.block);
    return inf_build_cast(&s->b, y, dtype);
}
