// SPDX-License-Identifier: Apache-2.0
// Packs matrices [k, n] whose columns consist of blocks, in the form that matmul_blocks reads: one
// column after the other, [n, blocks, bytes of a block], with unsigned numbers. Half of the range
// is added to signed numbers and to their zero points. A file may have the matrix transposed.
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
    const struct inf_graph *graph; // whose values they are
    // Another entry whose weights these are; NULL: none. Only `blocks.result` and `is_transposed`
    // are set then.
    struct inf_onnx_blocks_list *source;
    bool is_transposed;             // the result is [n, k]
    bool is_packed;                 // a product has set the following members
    uint32_t packed, scales, zeros; // operands of matmul_blocks
    struct inf_onnx_blocks_list *next;
};

// The sizes of a matrix.
struct extent {
    int64_t k, n, blocks; // blocks: of one column
};

// Returns true if `value` is a constant of this type with as many axes as `like`, whose size along
// the columns is `depth`.
static bool is_alike(const struct inf_graph *graph, const struct inf_onnx_blocks *blocks,
                     uint32_t value, enum inf_dtype dtype, int64_t depth)
{
    if (value == INF_VALUE_NONE || !inf_graph_is_const(graph, value))
        return false;
    struct inf_shape wanted = graph->values[blocks->weights].shape;
    wanted.dims[blocks->has_rows ? 1 : 0] = depth;
    const struct inf_value *constant = &graph->values[value];
    return constant->dtype == dtype && inf_shape_equal(&constant->shape, &wanted);
}

static struct extent find_extent(const struct inf_graph *graph,
                                 const struct inf_onnx_blocks *blocks)
{
    const int64_t *dims = graph->values[blocks->weights].shape.dims;
    struct extent extent = {.k = dims[blocks->has_rows ? 1 : 0],
                            .n = dims[blocks->has_rows ? 0 : 1]};
    extent.blocks = (extent.k + blocks->block - 1) / blocks->block;
    return extent;
}

// Returns true if the weights are a matrix; a transposed one may have further axes of size 1.
static bool is_matrix(const struct inf_value *weights, bool has_rows)
{
    int32_t rank = weights->shape.rank;
    if (rank < 2 || (rank > 2 && !has_rows))
        return false;
    for (int32_t i = 2; i < rank; i++)
        if (weights->shape.dims[i] != 1)
            return false;
    return weights->dtype == INF_DTYPE_I8 || weights->dtype == INF_DTYPE_U8;
}

// Adds an entry to the list; NULL after a failure.
static struct inf_onnx_blocks_list *add_entry(struct inf_onnx_scope *s)
{
    struct inf_onnx_blocks_list *entry = inf_arena_alloc(s->import->arena, sizeof *entry);
    if (entry == NULL) {
        inf_build_fail(&s->b, INF_EXHAUSTED, "no memory for weights in blocks");
        return NULL;
    }
    *entry = (struct inf_onnx_blocks_list){.graph = s->b.graph, .next = s->import->blocks};
    s->import->blocks = entry;
    return entry;
}

void inf_onnx_blocks_note(struct inf_onnx_scope *s, const struct inf_onnx_blocks *blocks)
{
    const struct inf_graph *graph = s->b.graph;
    if (!inf_build_ok(&s->b) || !inf_graph_is_const(graph, blocks->weights) ||
        blocks->block % BLOCK_UNIT != 0 || blocks->block < BLOCK_UNIT || blocks->block > BLOCK_MAX)
        return;
    const struct inf_value *weights = &graph->values[blocks->weights];
    if (!is_matrix(weights, blocks->has_rows))
        return;
    int64_t count = find_extent(graph, blocks).blocks;
    if ((!is_alike(graph, blocks, blocks->scales, INF_DTYPE_F32, count) &&
         !is_alike(graph, blocks, blocks->scales, INF_DTYPE_F16, count)) ||
        (blocks->zeros != INF_VALUE_NONE &&
         !is_alike(graph, blocks, blocks->zeros, weights->dtype, count)))
        return;
    struct inf_onnx_blocks_list *entry = add_entry(s);
    if (entry != NULL) {
        entry->blocks = *blocks;
        entry->is_transposed = blocks->has_rows;
    }
}

// Returns the entry whose result is `w`; NULL if there is none.
static struct inf_onnx_blocks_list *find_entry(const struct inf_onnx_scope *s, uint32_t w)
{
    struct inf_onnx_blocks_list *entry = s->import->blocks;
    while (entry != NULL && (entry->graph != s->b.graph || entry->blocks.result != w))
        entry = entry->next;
    return entry;
}

void inf_onnx_blocks_transpose(struct inf_onnx_scope *s, uint32_t from, uint32_t to)
{
    struct inf_onnx_blocks_list *source = inf_build_ok(&s->b) ? find_entry(s, from) : NULL;
    if (source == NULL || s->b.graph->values[from].shape.rank != 2)
        return;
    struct inf_onnx_blocks_list *entry = add_entry(s);
    if (entry != NULL) {
        entry->blocks.result = to;
        entry->source = source->source != NULL ? source->source : source;
        entry->is_transposed = !source->is_transposed;
    }
}

// Writes the numbers of the matrix `from` to `to` [n, blocks, bytes of a block], which is zeroed.
static void pack_columns(const struct inf_onnx_blocks *blocks, const uint8_t *from,
                         const struct extent *extent, uint8_t middle, uint8_t *to)
{
    size_t bits = (size_t)blocks->bits;
    size_t padded = (size_t)(extent->blocks * blocks->block);
    uint8_t mask = (uint8_t)((1u << bits) - 1);
    int64_t column_step = blocks->has_rows ? extent->k : 1;
    int64_t row_step = blocks->has_rows ? 1 : extent->n;
    for (int64_t first = 0; first < extent->n; first += COLUMNS)
        for (int64_t row = 0; row < extent->k; row++)
            for (int64_t column = first; column < INF_MIN(first + COLUMNS, extent->n); column++) {
                size_t bit = ((size_t)column * padded + (size_t)row) * bits;
                uint8_t byte = from[row * row_step + column * column_step];
                uint8_t number = (uint8_t)(byte + middle) & mask;
                to[bit / 8] |= (uint8_t)(number << bit % 8);
            }
}

static uint32_t add_packed(struct inf_onnx_scope *s, const struct inf_onnx_blocks *blocks,
                           const struct extent *extent, uint8_t middle)
{
    const struct inf_value *weights = &s->b.graph->values[blocks->weights];
    const struct inf_shape shape =
        INF_SHAPE(extent->n, extent->blocks, (int64_t)blocks->block * blocks->bits / 8);
    size_t size;
    uint32_t value = INF_VALUE_NONE;
    struct inf_blob *packed =
        inf_shape_bytes(&shape, INF_DTYPE_U8, &size) ? inf_blob_create(size) : NULL;
    if (packed == NULL) {
        inf_build_fail(&s->b, INF_EXHAUSTED, "no memory for the weights '%.200s'", weights->name);
        return value;
    }
    pack_columns(blocks, weights->data->data, extent, middle, packed->data);
    s->b.code = inf_graph_add_const(s->b.graph, weights->name, INF_DTYPE_U8, &shape, packed, &value,
                                    s->b.err);
    return value;
}

// Returns the index of block `block` of column `column` in the scales and zero points of the file.
static int64_t find_block(const struct inf_onnx_blocks *blocks, const struct extent *extent,
                          int64_t column, int64_t block)
{
    return blocks->has_rows ? column * extent->blocks + block : block * extent->n + column;
}

// Adds the scales of all blocks, those of a column together.
static uint32_t add_scales(struct inf_onnx_scope *s, const struct inf_onnx_blocks *blocks,
                           const struct extent *extent)
{
    float *to;
    int64_t total = extent->n * extent->blocks;
    uint32_t value = inf_build_const(&s->b, INF_DTYPE_F32, &INF_SHAPE(total), &to);
    const struct inf_value *from = &s->b.graph->values[blocks->scales];
    for (int64_t i = 0; to != NULL && i < total; i++) {
        int64_t at = find_block(blocks, extent, i / extent->blocks, i % extent->blocks);
        to[i] = from->dtype == INF_DTYPE_F32
                    ? ((const float *)from->data->data)[at]
                    : inf_half_to_float(((const uint16_t *)from->data->data)[at]);
    }
    return value;
}

// Adds the zero points as matmul_blocks takes them: a byte for each block, and columns padded to a
// multiple of 4 bytes.
static uint32_t add_zeros(struct inf_onnx_scope *s, const struct inf_onnx_blocks *blocks,
                          const struct extent *extent, uint8_t middle)
{
    uint8_t *to;
    int64_t step = (extent->blocks + 3) / 4 * 4;
    uint32_t value = inf_build_const(&s->b, INF_DTYPE_U8, &INF_SHAPE(extent->n, step), &to);
    const uint8_t *from =
        blocks->zeros == INF_VALUE_NONE ? NULL : s->b.graph->values[blocks->zeros].data->data;
    for (int64_t i = 0; to != NULL && i < extent->n * extent->blocks; i++) {
        int64_t column = i / extent->blocks, block = i % extent->blocks;
        uint8_t number = from == NULL ? 0 : from[find_block(blocks, extent, column, block)];
        to[column * step + block] = (uint8_t)(number + middle);
    }
    return value;
}

static void add_operands(struct inf_onnx_scope *s, struct inf_onnx_blocks_list *entry)
{
    const struct inf_onnx_blocks *blocks = &entry->blocks;
    bool is_signed = inf_build_dtype(&s->b, blocks->weights) == INF_DTYPE_I8;
    uint8_t middle = is_signed ? (uint8_t)(1u << (blocks->bits - 1)) : 0;
    struct extent extent = find_extent(s->b.graph, blocks);
    entry->packed = add_packed(s, blocks, &extent, middle);
    entry->scales = add_scales(s, blocks, &extent);
    // Without zero points matmul_blocks takes the middle of the range.
    entry->zeros = is_signed && blocks->zeros == INF_VALUE_NONE
                       ? INF_VALUE_NONE
                       : add_zeros(s, blocks, &extent, middle);
    entry->is_packed = true;
}

bool inf_onnx_blocks_known(const struct inf_onnx_scope *s, uint32_t w)
{
    return find_entry(s, w) != NULL;
}

uint32_t inf_onnx_blocks_multiply(struct inf_onnx_scope *s, uint32_t x, uint32_t w,
                                  bool transposes_w)
{
    struct inf_onnx_blocks_list *entry = find_entry(s, w);
    if (entry == NULL || entry->is_transposed != transposes_w || inf_build_rank(&s->b, x) < 1)
        return INF_VALUE_NONE;
    entry = entry->source != NULL ? entry->source : entry;
    if (inf_build_dim(&s->b, x, -1) != find_extent(s->b.graph, &entry->blocks).k)
        return INF_VALUE_NONE;
    if (!entry->is_packed)
        add_operands(s, entry);
    enum inf_dtype dtype = inf_build_dtype(&s->b, x);
    const uint32_t inputs[] = {inf_build_cast(&s->b, x, INF_DTYPE_F32), entry->packed,
                               entry->scales, entry->zeros, INF_VALUE_NONE};
    uint32_t y =
        inf_build_matmul_blocks(&s->b, inputs, entry->blocks.bits, entry->blocks.block, false);
    return inf_build_cast(&s->b, y, dtype);
}

// Adds the rows `indices` of a constant [n, size] as floats [indices, size, 1].
static uint32_t add_rows(struct inf_onnx_scope *s, uint32_t value, uint32_t indices)
{
    uint32_t rows = inf_build_gather(&s->b, value, indices, 0);
    return inf_build_expand_dims(&s->b, inf_build_cast(&s->b, rows, INF_DTYPE_F32), (int64_t[]){2},
                                 1);
}

uint32_t inf_onnx_blocks_gather(struct inf_onnx_scope *s, uint32_t w, uint32_t indices)
{
    struct inf_onnx_blocks_list *entry = find_entry(s, w);
    if (entry == NULL || entry->source != NULL || !entry->blocks.has_rows ||
        s->b.graph->values[w].shape.rank != 2 || inf_build_rank(&s->b, indices) < 0)
        return INF_VALUE_NONE;
    const struct inf_onnx_blocks *blocks = &entry->blocks;
    struct extent extent = find_extent(s->b.graph, blocks);
    if (extent.k % blocks->block != 0)
        return INF_VALUE_NONE;
    enum inf_dtype dtype = inf_build_dtype(&s->b, w);
    const uint32_t dims[] = {inf_build_shape(&s->b, indices),
                             inf_build_list(&s->b, (int64_t[]){extent.k}, 1)};
    uint32_t flat = inf_build_reshape(&s->b, indices, (int64_t[]){-1}, 1);
    uint32_t y = inf_build_reshape(&s->b, add_rows(s, blocks->weights, flat),
                                   (int64_t[]){-1, extent.blocks, blocks->block}, 3);
    if (blocks->zeros != INF_VALUE_NONE)
        y = inf_build_sub(&s->b, y, add_rows(s, blocks->zeros, flat));
    y = inf_build_mul(&s->b, y, add_rows(s, blocks->scales, flat));
    y = inf_build_reshape_to(&s->b, y, inf_build_concat(&s->b, dims, 2, 0));
    return inf_build_cast(&s->b, y, dtype);
}
