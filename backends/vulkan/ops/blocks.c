// SPDX-License-Identifier: Apache-2.0
// Products with weights of 2, 4 or 8 bits in blocks (matmul_blocks). The weights stay packed on the
// device, in another order than in the graph. With few rows, such as a step of decoding, the
// product is limited by memory, and matmul_blocks.comp converts each weight in registers. With many
// rows, expand_blocks.comp converts all weights of the node to scratch memory, which all nodes
// share, and the product is a convolution with one tap that reads them there.
#include "backends/vulkan/ops/conv_strips.h"
#include "backends/vulkan/ops/ops.h"

// With at least this many rows, weights are converted first. The number is a guess: on llvmpipe,
// under load, 16 rows took about as long as the conversion alone, and 128 rows took a third of the
// time if weights were converted first. No GPU was measured.
#define EXPAND_ROWS_MIN 24u

// The most rows of an invocation. They share the conversion of a weight to a float.
#define ROWS_MAX 8u

// A column has one zero point for each of its blocks. If they are bytes, their number is rounded up
// to a multiple of this.
#define ZERO_GROUP 4u

// The push constants of matmul_blocks.comp.
struct product {
    uint32_t rows, columns, depth;
    uint32_t column_words, block_words;
    uint32_t scales_at, zeros_at;
};
_Static_assert(sizeof(struct product) == 28, "as matmul_blocks.comp");

// The product, and its constant operands as they are in the graph.
struct blocks {
    struct product push;
    uint32_t bits, per_column; // bits of a number, and blocks of a column
    uint32_t column_bytes;     // bytes of a column in the graph, whose last block is whole
    const uint8_t *numbers;
    const float *scales;
    const void *zeros; // bytes or floats; NULL: 2^(bits - 1)
    const float *bias; // NULL: there is none
    uint32_t zero_kind;
};

// Writes the words in the order [word of a column][column].
static void fill_words(void *bytes, const void *context)
{
    const struct blocks *blocks = context;
    uint32_t *to = bytes, columns = blocks->push.columns;
    for (size_t column = 0; column < columns; column++) {
        const uint8_t *from = blocks->numbers + column * blocks->column_bytes;
        for (size_t i = 0; i < blocks->push.column_words; i++, from += 4)
            to[i * columns + column] = (uint32_t)from[0] | (uint32_t)from[1] << 8 |
                                       (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
    }
}

// Writes the zero point of a block of a column to its place in `to`, where the zero points of all
// columns are, as a byte or a float. Does nothing if the weights have no zero points.
static void put_zero(const struct blocks *blocks, uint32_t *to, size_t block, size_t column)
{
    size_t columns = blocks->push.columns, per_column = blocks->per_column;
    if (blocks->zero_kind == BLOCKS_ZEROS_FLOATS)
        ((float *)to)[block * columns + column] =
            ((const float *)blocks->zeros)[column * per_column + block];
    size_t step = (per_column + ZERO_GROUP - 1) / ZERO_GROUP * ZERO_GROUP;
    if (blocks->zero_kind == BLOCKS_ZEROS_BYTES)
        to[block * ((columns + 3) / 4) + column / 4] |=
            (uint32_t)((const uint8_t *)blocks->zeros)[column * step + block] << column % 4 * 8;
}

// Writes the bias, the scales and the zero points in the layout of shaders/lib/blocks.glsl.
static void fill_numbers(void *bytes, const void *context)
{
    const struct blocks *blocks = context;
    float *scales = (float *)bytes + blocks->push.scales_at;
    uint32_t *zeros = (uint32_t *)bytes + blocks->push.zeros_at;
    size_t columns = blocks->push.columns;
    for (size_t column = 0; column < columns; column++) {
        if (blocks->bias != NULL)
            ((float *)bytes)[column] = blocks->bias[column];
        for (size_t block = 0; block < blocks->per_column; block++) {
            scales[block * columns + column] = blocks->scales[column * blocks->per_column + block];
            put_zero(blocks, zeros, block, column);
        }
    }
}

// Returns the elements of the memory that fill_numbers() writes.
static size_t count_numbers(const struct blocks *blocks)
{
    size_t columns = blocks->push.columns, zeros = 0;
    if (blocks->zero_kind == BLOCKS_ZEROS_FLOATS)
        zeros = columns;
    if (blocks->zero_kind == BLOCKS_ZEROS_BYTES)
        zeros = (columns + 3) / 4;
    return (blocks->bias != NULL ? columns : 0) + (columns + zeros) * blocks->per_column;
}

// Reads the operands. Fills all members.
static enum inf_code read_blocks(struct blocks *blocks, const struct vk_lowering *lowering,
                                 struct inf_error *err)
{
    const struct inf_attrs_matmul_blocks *attrs = &lowering->node->attrs.matmul_blocks;
    const struct inf_shape *w = vk_input_shape(lowering, 1), *y = vk_output_shape(lowering, 0);
    const struct inf_shape *x = vk_input_shape(lowering, 0);
    for (uint32_t i = 1; i < 5; i++)
        if (vk_has_input(lowering, i) &&
            !inf_graph_is_const(lowering->graph, lowering->node->inputs[i]))
            return vk_decline(lowering, err, "input %u is not constant", i);
    *blocks = (struct blocks){.bits = (uint32_t)attrs->bits,
                              .per_column = (uint32_t)w->dims[1],
                              .column_bytes = (uint32_t)(w->dims[1] * w->dims[2]),
                              .numbers = vk_const_data(lowering, 1),
                              .scales = vk_const_data(lowering, 2),
                              .zeros = vk_const_data(lowering, 3),
                              .bias = vk_const_data(lowering, 4)};
    bool bytes = blocks->zeros != NULL && vk_input_dtype(lowering, 3) == INF_DTYPE_U8;
    if (blocks->zeros != NULL)
        blocks->zero_kind = bytes ? BLOCKS_ZEROS_BYTES : BLOCKS_ZEROS_FLOATS;
    struct product *push = &blocks->push;
    *push = (struct product){.rows = vk_dims_product(y, 0, y->rank - 1),
                             .columns = (uint32_t)w->dims[0],
                             .depth = (uint32_t)x->dims[x->rank - 1],
                             .block_words = (uint32_t)(attrs->block * attrs->bits / 32)};
    push->column_words = (uint32_t)(((uint64_t)push->depth * blocks->bits + 31) / 32);
    push->scales_at = blocks->bias != NULL ? push->columns : 0;
    push->zeros_at = push->scales_at + push->columns * blocks->per_column;
    return INF_OK;
}

// Returns INF_UNSUPPORTED if a constant is larger than the device can bind.
static enum inf_code check_sizes(const struct blocks *blocks, const struct vk_lowering *lowering,
                                 struct inf_error *err)
{
    uint64_t words = (uint64_t)blocks->push.column_words * blocks->push.columns;
    uint64_t bytes = INF_MAX(words, (uint64_t)count_numbers(blocks)) * 4;
    if (bytes > lowering->gpu->properties.limits.maxStorageBufferRange)
        return vk_decline(lowering, err,
                          "its weights have %zu bytes on the device, more than can be bound",
                          (size_t)bytes);
    return INF_OK;
}

// Binds the words, and the bias, scales and zero points, as the first operands.
static enum inf_code bind_weights(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                                  const struct blocks *blocks, struct inf_error *err)
{
    size_t word_bytes = (size_t)blocks->push.column_words * blocks->push.columns * 4;
    INF_TRY(vk_bind_packed(lowering, dispatch, word_bytes, fill_words, blocks, err));
    return vk_bind_packed(lowering, dispatch, count_numbers(blocks) * 4, fill_numbers, blocks, err);
}

static enum inf_code emit_packed(struct vk_lowering *lowering, const struct blocks *blocks,
                                 struct inf_error *err)
{
    const struct product *push = &blocks->push;
    uint32_t rows = ROWS_MAX;
    while (rows / 2 >= push->rows)
        rows /= 2;
    struct vk_dispatch dispatch = {.variant = {INF_SHADER_MATMUL_BLOCKS,
                                               {blocks->bits, blocks->zero_kind, rows,
                                                push->depth % 4 == 0, blocks->bias != NULL},
                                               .group_size = BLOCKS_COLUMNS * BLOCKS_PARTS},
                                   .cost = (uint64_t)push->rows * push->columns * push->depth};
    INF_TRY(bind_weights(lowering, &dispatch, blocks, err));
    INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->inputs[0], err));
    vk_read_through_view(lowering, &dispatch, 2, push->depth % 4 == 0);
    INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->outputs[0], err));
    dispatch.invocations = (push->rows + rows - 1) / rows *
                           ((push->columns + BLOCKS_COLUMNS - 1) / BLOCKS_COLUMNS) *
                           dispatch.variant.group_size;
    vk_set_push_constants(&dispatch, push, sizeof *push);
    uint32_t words = (push->column_words + BLOCKS_PARTS - 1) / BLOCKS_PARTS;
    return vk_emit_dispatch(lowering, &dispatch, vk_loop(words, VK_NO_LOOPS).run, err);
}

// Returns the bytes of the weights as floats in the layout of conv_tile.comp, which is never
// smaller than that of conv.comp.
static uint64_t float_bytes(const struct blocks *blocks)
{
    uint64_t tiles = ((uint64_t)blocks->push.columns + VK_TILE_CHANNELS - 1) / VK_TILE_CHANNELS;
    return tiles * VK_TILE_CHANNELS * blocks->push.depth * sizeof(float) + VK_TILE_SPARE_BYTES;
}

// Converts the weights to scratch memory, in the layout of conv_tile.comp or conv.comp.
static enum inf_code emit_expand(struct vk_lowering *lowering, const struct blocks *blocks,
                                 bool tiled, struct inf_error *err)
{
    const struct product *push = &blocks->push;
    struct vk_dispatch expand = {
        .variant = {INF_SHADER_EXPAND_BLOCKS,
                    {blocks->bits, blocks->zero_kind, tiled ? VK_TILE_CHANNELS : 0}},
        .invocations = push->column_words * push->columns,
        .cost = (uint64_t)push->columns * push->depth};
    INF_TRY(bind_weights(lowering, &expand, blocks, err));
    INF_TRY(vk_bind_scratch(lowering, &expand, 0, (size_t)float_bytes(blocks), err));
    vk_set_push_constants(&expand, push, sizeof *push);
    return vk_emit_dispatch(lowering, &expand, VK_FEW_ITERATIONS, err);
}

static enum inf_code emit_expanded(struct vk_lowering *lowering, const struct blocks *blocks,
                                   struct inf_error *err)
{
    const struct product *push = &blocks->push;
    struct vk_conv conv = {.activation = {.function = FN_NONE}, .bias_index = 4};
    vk_conv_init_rows(&conv, push->rows, push->depth, push->columns, true);
    conv.weights.in_scratch = true;
    INF_TRY(vk_conv_check_activation(lowering, &conv, err));
    vk_conv_flatten(&conv);
    conv.window.group_in = push->depth;
    conv.window.group_out = push->columns;
    if (vk_conv_is_tiled(lowering, &conv)) {
        bool built;
        INF_TRY(emit_expand(lowering, blocks, true, err));
        INF_TRY(vk_emit_tiles(lowering, &conv, &built, err));
        if (built)
            return INF_OK;
    }
    // If the driver cannot build conv_tile.comp, the conversion for it stays in the list, unused.
    INF_TRY(emit_expand(lowering, blocks, false, err));
    return vk_emit_strips(lowering, &conv, vk_strip_pixels(lowering, push->rows), err);
}

enum inf_code vk_lower_matmul_blocks(struct vk_lowering *lowering, struct inf_error *err)
{
    struct blocks blocks;
    INF_TRY(read_blocks(&blocks, lowering, err));
    INF_TRY(check_sizes(&blocks, lowering, err));
    uint64_t bytes = float_bytes(&blocks);
    bool fits = bytes <= lowering->gpu->properties.limits.maxStorageBufferRange &&
                bytes / 4 <= INT32_MAX / 4;
    return blocks.push.rows >= EXPAND_ROWS_MIN && fits ? emit_expanded(lowering, &blocks, err)
                                                       : emit_packed(lowering, &blocks, err);
}
