// SPDX-License-Identifier: Apache-2.0
// Attention without a matrix of scores: softmax(q * keys * scale + mask) * values.
//
// The problem: n rows and m keys have n * m scores for each head. They are written and read four
// times, and with 1500 rows of a speech encoder they are 54 MB, which no cache holds.
//
// The idea: compute the scores of some rows and BLOCK_KEYS keys, turn them into exponentials while
// they are in the cache, multiply them with the values, and go on with the next keys. The largest
// score of a row, which a softmax subtracts, is not known before the last key. So a row keeps the
// largest score m so far, the sum l of its exponentials, and the weighted sum y of values so far
// (Milakov and Gimelshein, 2018). If a block has a larger score m', then l and y were made with
// exponentials that are e^(m' - m) too large:
//
//     l = l * e^(m - m') + sum(e^(score - m'))
//     y = y * e^(m - m') + sum(e^(score - m') * value)
//
// At the end y is divided by l. The results are those of the long form up to rounding.
//
// Keys and values are packed into panels first, once for all rows, by all threads. Then tiles of
// rows are shared by the threads. The products are computed by the kernels for floats; y is the
// residual that they add.
#include "backends/cpu/attention/attention.h"

#include <math.h>
#include <string.h>

#include "backends/cpu/native/work.h"

#define BLOCK_KEYS ((size_t)256) // a multiple of the width of every panel
#define TILE_ROWS  ((size_t)96)
#define LINE       ((size_t)16) // elements of a cache line
#define OPERANDS   4

struct attention {
    struct inf_attention of;
    const struct inf_nn *nn;
    const struct inf_simd *simd;
    size_t keys_size, values_size;     // packed floats of one product
    size_t strips, strip_rows;         // tiles of one product, and most rows of a tile
    size_t mask_steps[INF_LIMIT_RANK]; // elements between neighbours along an axis of the scores
    bool mask_by_key;                  // the mask has an element for each key of a row
    size_t workers;
    size_t scratch_step; // floats of scratch memory of each worker
    uint32_t operands[OPERANDS];
    const void *inputs[OPERANDS];
};

struct attention_task {
    const struct attention *attention;
    const float *q, *keys, *values, *mask;
    float *y;
    float *packed_keys, *packed_values, *scratch;
};

// --- packing keys and values ---

// Packs a matrix, [depth][columns] or if `by_column` [columns][depth], into panels.
static void pack_matrix(const struct inf_nn *nn, const float *from, size_t depth, size_t columns,
                        bool by_column, float *to)
{
    for (size_t first = 0; first < columns;) {
        struct inf_cpu_panel panel = inf_cpu_panel_at(nn, first, columns);
        if (panel.columns < panel.width)
            memset(to, 0, depth * panel.width * sizeof(float));
        for (size_t k = 0; k < depth && !by_column; k++)
            memcpy(to + k * panel.width, from + k * columns + first, panel.columns * sizeof(float));
        for (size_t line = 0; line < depth && by_column; line += LINE)
            for (size_t c = 0; c < panel.columns; c++) {
                const float *column = from + (first + c) * depth;
                for (size_t k = line; k < INF_MIN(line + LINE, depth); k++)
                    to[k * panel.width + c] = column[k];
            }
        to += depth * panel.width;
        first += panel.columns;
    }
}

static void pack_tile(const void *context, size_t tile, size_t worker)
{
    (void)worker;
    const struct attention_task *task = context;
    const struct attention *attention = task->attention;
    const struct inf_attention *of = &attention->of;
    size_t product = tile / 2;
    if (tile % 2 == 0)
        pack_matrix(attention->nn, task->keys + product * of->key_count * of->depth, of->depth,
                    of->key_count, of->keys_by_row,
                    task->packed_keys + product * attention->keys_size);
    else
        pack_matrix(attention->nn, task->values + product * of->key_count * of->width,
                    of->key_count, of->width, false,
                    task->packed_values + product * attention->values_size);
}

// --- the rows of a tile ---

// A tile of rows, and its part of the scratch memory.
struct rows {
    const struct attention_task *task;
    size_t product, first, count; // first row within the product
    float *q;                     // scaled queries, [count][depth]
    float *scores;                // [count][BLOCK_KEYS]
    float *largest, *sums;        // of each row
    const float *zeros;           // start values of a panel
    float *y;
};

// Multiplies all rows of a with a panel: y = a * panel, or y += a * panel if `adds`.
static void multiply_rows(const struct rows *rows, const struct inf_cpu_panel *place,
                          struct inf_gemm_panel *panel, const float *a, size_t a_step, float *y,
                          bool adds)
{
    panel->segments = 1;
    panel->bias = rows->zeros;
    panel->min = -INFINITY;
    panel->max = INFINITY;
    panel->residual_step = panel->y_step;
    panel->residual_columns = panel->columns = place->columns;
    for (size_t row = 0; row < rows->count; row += place->gemm->rows_max) {
        size_t some = INF_MIN(rows->count - row, place->gemm->rows_max);
        const float *segment[1] = {a + row * a_step};
        float *to = y + row * panel->y_step;
        struct inf_gemm gemm = {.a = segment,
                                .a_step = a_step,
                                .prefetch = panel->w,
                                .residual = adds ? to : NULL,
                                .y = to};
        place->gemm->gemm[place->vectors - 1][some - 1](panel, &gemm);
    }
}

static void compute_scores(const struct rows *rows, size_t key, size_t count)
{
    const struct attention *attention = rows->task->attention;
    size_t depth = attention->of.depth;
    const float *keys = rows->task->packed_keys + rows->product * attention->keys_size;
    for (size_t first = key; first < key + count;) {
        struct inf_cpu_panel place =
            inf_cpu_panel_at(attention->nn, first, attention->of.key_count);
        struct inf_gemm_panel panel = {
            .depth = depth, .w = keys + first * depth, .y_step = BLOCK_KEYS};
        multiply_rows(rows, &place, &panel, rows->q, depth, rows->scores + (first - key), false);
        first += place.columns;
    }
}

static void add_values(const struct rows *rows, size_t key, size_t count)
{
    const struct attention *attention = rows->task->attention;
    size_t width = attention->of.width;
    const float *values = rows->task->packed_values + rows->product * attention->values_size;
    for (size_t first = 0; first < width;) {
        struct inf_cpu_panel place = inf_cpu_panel_at(attention->nn, first, width);
        struct inf_gemm_panel panel = {.depth = count,
                                       .w = values + first * attention->of.key_count +
                                            key * place.width,
                                       .y_step = width};
        multiply_rows(rows, &place, &panel, rows->scores, BLOCK_KEYS, rows->y + first, key > 0);
        first += place.columns;
    }
}

// Adds the mask to the scores of a row.
static void add_mask(const struct rows *rows, size_t row, size_t key, size_t count, float *scores)
{
    const struct attention *attention = rows->task->attention;
    const struct inf_shape *shape = &attention->of.scores;
    const float *mask = rows->task->mask;
    size_t index = rows->product * attention->of.rows + rows->first + row;
    for (int32_t axis = shape->rank - 2; axis >= 0; axis--) {
        mask += index % (size_t)shape->dims[axis] * attention->mask_steps[axis];
        index /= (size_t)shape->dims[axis];
    }
    enum inf_simd_form form = attention->mask_by_key ? INF_SIMD_BOTH : INF_SIMD_B_SCALAR;
    attention->simd->binary[INF_SIMD_ADD][form](
        count, scores, mask + (attention->mask_by_key ? key : 0), scores, -INFINITY, INFINITY);
}

// Multiplies the weighted sum of values of a row.
static void scale_row(const struct rows *rows, size_t row, float by)
{
    const struct attention *attention = rows->task->attention;
    float *y = rows->y + row * attention->of.width;
    attention->simd->binary[INF_SIMD_MUL][INF_SIMD_B_SCALAR](attention->of.width, y, &by, y,
                                                             -INFINITY, INFINITY);
}

// Replaces the scores of a block by their exponentials, and corrects what each row has so far.
static void weigh_scores(const struct rows *rows, size_t key, size_t count)
{
    const struct attention *attention = rows->task->attention;
    const struct inf_simd *simd = attention->simd;
    for (size_t row = 0; row < rows->count; row++) {
        float *scores = rows->scores + row * BLOCK_KEYS, before = rows->largest[row];
        if (rows->task->mask != NULL)
            add_mask(rows, row, key, count, scores);
        float largest = simd->max(count, scores);
        // NaN is kept.
        largest = largest <= before ? before : largest;
        if (largest == -INFINITY) {
            // All keys so far are hidden. If no key is visible, y becomes 0 / 0, as in a softmax.
            memset(scores, 0, count * sizeof(float));
            continue;
        }
        float correction = before == largest ? 1 : expf(before - largest);
        float sum = simd->powers(count, scores, largest, scores);
        rows->sums[row] = rows->sums[row] * correction + sum;
        rows->largest[row] = largest;
        if (correction != 1 && key > 0)
            scale_row(rows, row, correction);
    }
}

static void rows_tile(const void *context, size_t tile, size_t worker)
{
    const struct attention_task *task = context;
    const struct attention *attention = task->attention;
    const struct inf_attention *of = &attention->of;
    size_t strip = tile % attention->strips, unit = attention->nn->gemm->rows_max;
    float *scratch = task->scratch + worker * attention->scratch_step;
    struct rows rows = {.task = task, .product = tile / attention->strips};
    rows.first = inf_native_strip_start(of->rows, attention->strips, strip, unit);
    rows.count = inf_native_strip_start(of->rows, attention->strips, strip + 1, unit) - rows.first;
    rows.q = scratch;
    rows.scores = rows.q + attention->strip_rows * of->depth;
    rows.largest = rows.scores + attention->strip_rows * BLOCK_KEYS;
    rows.sums = rows.largest + attention->strip_rows;
    float *zeros = rows.sums + attention->strip_rows;
    rows.zeros = zeros;
    memset(zeros, 0, INF_GEMM_PANELS * attention->nn->gemm->width * sizeof(float));
    size_t at = rows.product * of->rows + rows.first;
    rows.y = task->y + at * of->width;
    attention->simd->binary[INF_SIMD_MUL][INF_SIMD_B_SCALAR](
        rows.count * of->depth, task->q + at * of->depth, &of->scale, rows.q, -INFINITY, INFINITY);
    for (size_t row = 0; row < rows.count; row++) {
        rows.largest[row] = -INFINITY;
        rows.sums[row] = 0;
    }
    for (size_t key = 0; key < of->key_count; key += BLOCK_KEYS) {
        size_t count = INF_MIN(BLOCK_KEYS, of->key_count - key);
        compute_scores(&rows, key, count);
        weigh_scores(&rows, key, count);
        add_values(&rows, key, count);
    }
    for (size_t row = 0; row < rows.count; row++)
        scale_row(&rows, row, 1 / rows.sums[row]);
}

static void attention_run(const struct inf_cpu_step *step)
{
    const struct attention *attention = step->state;
    size_t products = attention->of.products;
    struct attention_task task = {.attention = attention,
                                  .q = step->inputs[0],
                                  .keys = step->inputs[1],
                                  .values = step->inputs[2],
                                  .mask = step->operand_count > 3 ? step->inputs[3] : NULL,
                                  .y = step->output,
                                  .packed_keys = step->scratch};
    task.packed_values = task.packed_keys + products * attention->keys_size;
    task.scratch = task.packed_values + products * attention->values_size;
    struct inf_cpu_tiles packing = {pack_tile, &task, 2 * products};
    inf_cpu_team_run_tiles(step->team, &packing, attention->workers);
    struct inf_cpu_tiles work = {rows_tile, &task, products * attention->strips};
    inf_cpu_team_run_tiles(step->team, &work, attention->workers);
}

// --- creating the step ---

// Sets the steps of the mask along the axes of the scores: 0 along axes that it is repeated along.
static void describe_mask(struct attention *attention, const struct inf_graph *graph)
{
    const struct inf_shape *scores = &attention->of.scores;
    const struct inf_shape *mask = &graph->values[attention->of.mask].shape;
    size_t step = 1;
    for (int32_t axis = scores->rank - 1; axis >= 0; axis--) {
        int32_t of_mask = axis - (scores->rank - mask->rank);
        size_t dim = of_mask < 0 ? 1 : (size_t)mask->dims[of_mask];
        attention->mask_steps[axis] = dim == 1 ? 0 : step;
        step *= dim;
    }
    attention->mask_by_key = attention->mask_steps[scores->rank - 1] != 0;
}

static size_t padded_columns(const struct inf_nn *nn, size_t columns)
{
    size_t width;
    (void)inf_cpu_panel_count(nn, columns, &width);
    return width;
}

enum inf_code inf_cpu_attention_create(struct inf_cpu_step *step, const struct inf_attention *of,
                                       struct inf_error *err)
{
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct attention), err));
    struct attention *attention = step->state;
    size_t unit = step->isa->nn->gemm->rows_max;
    attention->of = *of;
    attention->nn = step->isa->nn;
    attention->simd = step->isa->simd;
    attention->keys_size =
        (padded_columns(attention->nn, of->key_count) * of->depth + LINE - 1) / LINE * LINE;
    attention->values_size =
        (padded_columns(attention->nn, of->width) * of->key_count + LINE - 1) / LINE * LINE;
    if (of->mask != INF_VALUE_NONE)
        describe_mask(attention, step->graph);
    attention->workers = inf_native_choose_workers(step, of->products * of->rows * of->key_count *
                                                             (of->depth + of->width));
    attention->strips = (of->rows + TILE_ROWS - 1) / TILE_ROWS;
    // A tile can have up to `unit` rows more than its share, because tiles begin at a multiple.
    attention->strip_rows = of->rows / attention->strips + 2 * unit;
    attention->scratch_step = attention->strip_rows * (of->depth + BLOCK_KEYS + 2) +
                              INF_GEMM_PANELS * attention->nn->gemm->width;
    attention->scratch_step = (attention->scratch_step + LINE - 1) / LINE * LINE;
    inf_native_need_scratch(step, of->products * (attention->keys_size + attention->values_size) +
                                      attention->workers * attention->scratch_step);
    attention->operands[0] = of->q;
    attention->operands[1] = of->keys;
    attention->operands[2] = of->values;
    attention->operands[3] = of->mask;
    step->operands = attention->operands;
    step->operand_count = of->mask == INF_VALUE_NONE ? 3 : 4;
    step->inputs = attention->inputs;
    step->run = attention_run;
    step->kernel = "attention";
    return INF_OK;
}
