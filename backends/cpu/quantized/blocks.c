// SPDX-License-Identifier: Apache-2.0
// Products with weights of 2, 4 or 8 bits in blocks (matmul_blocks). The weights stay as small in
// memory as in the model's file: their 32-bit words are packed as other constants are (pack.h), as
// a matrix with a row for each word of a column. The scales are a matrix with a row for each block.
//
// One or two rows of x, as in a decoding step, are limited by reading the weights. Each row is
// multiplied with the words of a panel, and weights become floats only in registers. With more rows
// a part of a panel is written as floats to scratch memory, small enough to stay in the cache, and
// multiplied with all rows by the kernels for floats. The results of the part before are then the
// residual that the kernel adds.
//
// If x may be rounded to 24 bits, one or two rows of x are multiplied with weights of 8 bits as
// digits (kernels/digits/digits.c). A row with an infinity, NaN or extreme elements is not.
#include <math.h>
#include <string.h>

#include "backends/cpu/core/pack.h"
#include "backends/cpu/core/panel.h"
#include "backends/cpu/native/work.h"

#define WORD_BYTES 4
#define ZERO_GROUP 4 // zero points in a word
// Most rows of x that are multiplied without weights as floats.
#define DIRECT_ROWS 2
// About how many multiply-adds a tile of work has, so that sharing the tiles costs little.
#define TILE_MACS ((size_t)1 << 17)
// Most floats of a part of a panel: 256 KiB.
#define PART_FLOATS ((size_t)1 << 16)

struct blocks {
    const struct inf_nn *nn;
    size_t form;                                              // which loops: inf_blocks_form(bits)
    size_t rows, depth, columns;                              // x is [rows][depth]
    size_t block, word_weights;                               // weights in a block, and in a word
    size_t words, count;                                      // words and blocks of a column
    size_t part_blocks;                                       // blocks in a part of a panel
    const float *packed_words, *packed_scales, *packed_zeros; // packed_zeros may be NULL
    bool zero_bytes;                                          // zero points are bytes in words
    float middle;
    bool has_bias;
    size_t tile_columns, tiles, workers;
    // Floats of x in scratch memory, if x has no element for some weights of the last word; else 0.
    size_t x_step;
    size_t scratch_step; // floats of scratch memory of each worker
    // The loops of panels of whole and of half vectors for digits of x; NULL: none are used.
    const struct inf_digit_loops *digits, *digits_half;
    size_t digit_step;  // elements of x, rounded up to a whole number of words
    size_t row_scratch; // floats of scratch memory for the digits of a row
};

struct blocks_task {
    const struct blocks *blocks;
    const float *x, *bias;
    float *y, *scratch;
    // The rows of x in digits; those whose unit is 0 have none.
    struct inf_digits digits[DIRECT_ROWS];
};

// A panel of the weights, and where its part of the packed matrices begins.
struct blocks_columns {
    struct inf_cpu_panel place;
    const struct inf_blocks_loops *loops;
    // The loop for digits of x; NULL if there is none.
    void (*multiply_digits)(const struct inf_blocks_panel *panel, const struct inf_digits *x,
                            float *y);
    struct inf_blocks_panel panel; // all blocks
};

static enum inf_code blocks_supports(const struct inf_graph *graph, const struct inf_node *node,
                                     struct inf_error *err)
{
    for (uint32_t i = 1; i < 4; i++)
        if (inf_cpu_has_input(node, i) && !inf_graph_is_const(graph, node->inputs[i]))
            return inf_fail(err, INF_UNSUPPORTED,
                            "cpu: matmul_blocks: only constant weights are built");
    return INF_OK;
}

static struct blocks_columns find_columns(const struct blocks *blocks, size_t first)
{
    struct inf_cpu_panel place = inf_cpu_panel_at(blocks->nn, first, blocks->columns);
    bool whole = place.gemm == blocks->nn->gemm;
    const struct inf_nn_blocks *table = whole ? blocks->nn->blocks : blocks->nn->blocks_half;
    const struct inf_digit_loops *digits = whole ? blocks->digits : blocks->digits_half;
    // All panels before this one have no padding, so `first` columns lie before it.
    const float *zeros = blocks->packed_zeros;
    if (zeros != NULL && blocks->zero_bytes)
        zeros += first * ((blocks->count + ZERO_GROUP - 1) / ZERO_GROUP);
    else if (zeros != NULL)
        zeros += first * blocks->count;
    return (struct blocks_columns){
        .place = place,
        .loops = &table->loops[blocks->form][place.vectors - 1],
        .multiply_digits = digits != NULL ? digits->multiply[place.vectors - 1] : NULL,
        .panel = {.words = blocks->packed_words + first * blocks->words,
                  .scales = blocks->packed_scales + first * blocks->count,
                  .zero_words = blocks->zero_bytes ? zeros : NULL,
                  .zeros = blocks->zero_bytes ? NULL : zeros,
                  .middle = blocks->middle,
                  .block_words = blocks->block / blocks->word_weights,
                  .count = (blocks->depth + blocks->word_weights - 1) / blocks->word_weights}};
}

// Computes the columns of one panel from all rows of x, without weights as floats.
static void multiply_direct(const struct blocks_task *task, const struct blocks_columns *columns,
                            float *sums)
{
    const struct blocks *blocks = task->blocks;
    size_t step = blocks->x_step > 0 ? blocks->x_step : blocks->depth;
    const struct inf_cpu_panel *place = &columns->place;
    for (size_t row = 0; row < blocks->rows; row++) {
        float *y = task->y + row * blocks->columns + place->first;
        if (task->digits[row].unit > 0)
            columns->multiply_digits(&columns->panel, &task->digits[row], sums);
        else
            columns->loops->multiply(&columns->panel, task->x + row * step, sums);
        for (size_t c = 0; c < place->columns; c++)
            y[c] = sums[c] + (task->bias != NULL ? task->bias[place->first + c] : 0);
    }
}

// Computes the columns of one panel from all rows of x. `w` has memory for the weights of a part
// and for the start values of a panel.
static void multiply_expanded(const struct blocks_task *task, const struct blocks_columns *columns,
                              float *w)
{
    const struct blocks *blocks = task->blocks;
    const struct inf_cpu_panel *place = &columns->place;
    float *bias = w + blocks->part_blocks * blocks->block * place->width;
    memset(bias, 0, place->width * sizeof(float));
    if (task->bias != NULL)
        memcpy(bias, task->bias + place->first, place->columns * sizeof(float));
    struct inf_gemm_panel panel = {.segments = 1,
                                   .w = w,
                                   .bias = bias,
                                   .residual_step = blocks->columns,
                                   .residual_columns = place->columns,
                                   .min = -INFINITY,
                                   .max = INFINITY,
                                   .y_step = blocks->columns,
                                   .columns = place->columns};
    for (size_t block = 0; block < blocks->count; block += blocks->part_blocks) {
        struct inf_blocks_panel part = columns->panel;
        size_t first = block * blocks->block;
        panel.depth = INF_MIN(blocks->part_blocks * blocks->block, blocks->depth - first);
        part.first = block;
        part.count = (panel.depth + blocks->word_weights - 1) / blocks->word_weights;
        columns->loops->expand(&part, w);
        for (size_t row = 0; row < blocks->rows; row += place->gemm->rows_max) {
            size_t some = INF_MIN(blocks->rows - row, place->gemm->rows_max);
            const float *segment[1] = {task->x + row * blocks->depth + first};
            float *y = task->y + row * blocks->columns + place->first;
            struct inf_gemm gemm = {.a = segment,
                                    .a_step = blocks->depth,
                                    .prefetch = w,
                                    .residual = block > 0 ? y : NULL,
                                    .y = y};
            place->gemm->gemm[place->vectors - 1][some - 1](&panel, &gemm);
        }
        memset(bias, 0, place->width * sizeof(float));
    }
}

static void blocks_tile(const void *context, size_t tile, size_t worker)
{
    const struct blocks_task *task = context;
    const struct blocks *blocks = task->blocks;
    float *scratch = task->scratch + worker * blocks->scratch_step;
    size_t first = tile * blocks->tile_columns;
    size_t end = INF_MIN(first + blocks->tile_columns, blocks->columns);
    while (first < end) {
        struct blocks_columns columns = find_columns(blocks, first);
        if (blocks->rows <= DIRECT_ROWS)
            multiply_direct(task, &columns, scratch);
        else
            multiply_expanded(task, &columns, scratch);
        first += columns.place.columns;
    }
}

// Copies the rows of x to scratch memory, with zeros behind them, and lets the task read them.
static void pad_rows(struct blocks_task *task)
{
    const struct blocks *blocks = task->blocks;
    float *x = task->scratch;
    for (size_t row = 0; row < blocks->rows; row++) {
        float *to = x + row * blocks->x_step;
        memcpy(to, task->x + row * blocks->depth, blocks->depth * sizeof(float));
        memset(to + blocks->depth, 0, (blocks->x_step - blocks->depth) * sizeof(float));
    }
    task->x = x;
    task->scratch = x + blocks->rows * blocks->x_step;
}

// Converts the rows of x to digits in scratch memory, if they can be converted.
static void convert_rows(struct blocks_task *task, const float *x)
{
    const struct blocks *blocks = task->blocks;
    for (size_t row = 0; row < blocks->rows; row++, task->scratch += blocks->row_scratch) {
        struct inf_digits *digits = &task->digits[row];
        digits->sums = (int32_t *)(void *)task->scratch;
        digits->digits = (int8_t *)(digits->sums + INF_DIGITS * blocks->count);
        digits->step = blocks->digit_step;
        if (!blocks->digits->convert(x + row * blocks->depth, blocks->depth, blocks->block, digits))
            digits->unit = 0;
    }
}

static void blocks_run(const struct inf_cpu_step *step)
{
    const struct blocks *blocks = step->state;
    struct blocks_task task = {.blocks = blocks,
                               .x = step->inputs[0],
                               .bias = blocks->has_bias ? step->inputs[4] : NULL,
                               .y = step->output,
                               .scratch = step->scratch};
    if (blocks->x_step > 0)
        pad_rows(&task);
    if (blocks->digits != NULL)
        convert_rows(&task, step->inputs[0]);
    struct inf_cpu_tiles work = {blocks_tile, &task, blocks->tiles};
    inf_cpu_team_run_tiles(step->team, &work, blocks->workers);
}

// Packs the weights, scales and zero points.
static enum inf_code pack_operands(struct inf_cpu_step *step, struct blocks *blocks,
                                   struct inf_error *err)
{
    const struct inf_node *node = step->node;
    struct inf_cpu_matrix matrix = {
        .rows = blocks->words, .columns = blocks->columns, .transposed = true};
    const void *panels;
    INF_TRY(inf_cpu_step_pack(step, node, 1, matrix, &panels, err));
    blocks->packed_words = panels;
    matrix.rows = blocks->count;
    INF_TRY(inf_cpu_step_pack(step, node, 2, matrix, &panels, err));
    blocks->packed_scales = panels;
    if (!inf_cpu_has_input(node, 3))
        return INF_OK;
    blocks->zero_bytes = step->graph->values[node->inputs[3]].dtype == INF_DTYPE_U8;
    if (blocks->zero_bytes)
        matrix.rows = (blocks->count + ZERO_GROUP - 1) / ZERO_GROUP;
    INF_TRY(inf_cpu_step_pack(step, node, 3, matrix, &panels, err));
    blocks->packed_zeros = panels;
    return INF_OK;
}

// Chooses the sizes of tiles, parts and scratch memory.
static void divide_work(struct inf_cpu_step *step, struct blocks *blocks)
{
    size_t width = INF_GEMM_PANELS * blocks->nn->gemm->width;
    size_t macs = INF_MAX(blocks->rows * blocks->depth * width, 1u);
    blocks->tile_columns = (TILE_MACS / macs + 1) * width;
    blocks->tiles = (blocks->columns + blocks->tile_columns - 1) / blocks->tile_columns;
    blocks->workers =
        inf_native_choose_workers(step, blocks->rows * blocks->depth * blocks->columns);
    if (blocks->rows > DIRECT_ROWS) {
        blocks->part_blocks = INF_MAX(PART_FLOATS / width / blocks->block, 1u);
        blocks->part_blocks = INF_MIN(blocks->part_blocks, blocks->count);
        blocks->scratch_step = (blocks->part_blocks * blocks->block + 1) * width;
        inf_native_need_scratch(step, blocks->scratch_step * blocks->workers);
        return;
    }
    if (blocks->depth % blocks->word_weights != 0)
        blocks->x_step =
            blocks->depth / blocks->word_weights * blocks->word_weights + blocks->word_weights;
    blocks->scratch_step = width;
    inf_native_need_scratch(step, blocks->rows * (blocks->x_step + blocks->row_scratch) +
                                      width * blocks->workers);
}

// Chooses the loops for digits of x, if the node and the ISA level allow them.
static void choose_digits(const struct inf_cpu_step *step, struct blocks *blocks)
{
    const struct inf_attrs_matmul_blocks *attrs = &step->node->attrs.matmul_blocks;
    if (!attrs->rounds_x || attrs->bits != 8 || blocks->rows > DIRECT_ROWS ||
        blocks->block > INF_DIGITS_BLOCK_MAX ||
        (blocks->packed_zeros != NULL && !blocks->zero_bytes))
        return;
    blocks->digits = step->isa->q8->digits;
    blocks->digits_half = step->isa->q8->digits_half;
    blocks->digit_step = (blocks->depth + WORD_BYTES - 1) / WORD_BYTES * WORD_BYTES;
    if (blocks->digits != NULL)
        blocks->row_scratch = INF_DIGITS * (blocks->count + blocks->digit_step / sizeof(float));
}

static enum inf_code blocks_create(struct inf_cpu_step *step, struct inf_error *err)
{
    const struct inf_attrs_matmul_blocks *attrs = &step->node->attrs.matmul_blocks;
    const struct inf_shape *x = inf_cpu_input_shape(step->graph, step->node, 0);
    const struct inf_shape *w = inf_cpu_input_shape(step->graph, step->node, 1);
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct blocks), err));
    struct blocks *blocks = step->state;
    blocks->nn = step->isa->nn;
    blocks->form = inf_blocks_form((size_t)attrs->bits);
    blocks->depth = (size_t)x->dims[x->rank - 1];
    blocks->rows = inf_shape_elements(x) / blocks->depth;
    blocks->columns = (size_t)w->dims[0];
    blocks->count = (size_t)w->dims[1];
    blocks->words = blocks->count * (size_t)w->dims[2] / WORD_BYTES;
    blocks->block = (size_t)attrs->block;
    blocks->word_weights = (size_t)(8 * WORD_BYTES / attrs->bits);
    blocks->middle = (float)(1 << (attrs->bits - 1));
    blocks->has_bias = inf_cpu_has_input(step->node, 4);
    INF_TRY(pack_operands(step, blocks, err));
    choose_digits(step, blocks);
    divide_work(step, blocks);
    step->run = blocks_run;
    step->kernel = blocks->rows > DIRECT_ROWS ? "blocks_expanded"
                   : blocks->digits != NULL   ? "blocks_digits"
                                              : "blocks_direct";
    return INF_OK;
}

const struct inf_cpu_kernel inf_cpu_blocks_kernels[] = {
    {INF_OP_MATMUL_BLOCKS, blocks_supports, blocks_create,
     .packs = INF_CPU_PACKS(1) | INF_CPU_PACKS(2) | INF_CPU_PACKS(3)},
    {0},
};
