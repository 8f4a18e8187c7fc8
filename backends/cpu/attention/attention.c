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
// Keys and values are packed into panels first, once for all rows, by all threads. Then the threads
// share the tiles of rows. The product of a block's exponentials and values is added to the y of
// the blocks before, as a kernel (products.h) adds a residual to its result.
//
// If the model runs in bf16, the operands of both products are rounded to bf16: queries, keys,
// exponentials and values. Scores, masks, l and y stay in fp32. A mask is only added, and numbers
// such as -3.4e38, which bf16 would round to -infinity, are valid in it.
#include "backends/cpu/attention/attention.h"

#include <math.h>
#include <string.h>

#include "backends/cpu/attention/products.h"
#include "backends/cpu/native/work.h"

#define BLOCK_KEYS INF_ATTENTION_BLOCK
#define TILE_ROWS  ((size_t)96)
#define LINE       ((size_t)16) // elements of a cache line
#define OPERANDS   4

struct attention {
    struct inf_attention of;
    struct inf_attention_products products;
    const struct inf_simd *simd;
    size_t keys_size, values_size;     // packed floats of one product
    size_t strips, strip_rows;         // tiles of one product, and most rows of a tile
    size_t mask_steps[INF_LIMIT_RANK]; // elements between neighbours along an axis of the scores
    bool mask_by_key;                  // the mask has an element for each key of a row
    size_t workers;
    // Floats of scratch memory of each worker, and of the parts of it that rounded queries and
    // exponentials take.
    size_t scratch_step, rounded_q, rounded_scores;
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

static void pack_tile(const void *context, size_t tile, size_t worker)
{
    (void)worker;
    const struct attention_task *task = context;
    const struct attention *attention = task->attention;
    const struct inf_attention *of = &attention->of;
    size_t product = tile / 2;
    if (tile % 2 == 0)
        inf_attention_pack(&attention->products, task->keys + product * of->key_count * of->depth,
                           of->depth, of->key_count, of->keys_by_row,
                           task->packed_keys + product * attention->keys_size);
    else
        inf_attention_pack(&attention->products, task->values + product * of->key_count * of->width,
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
    float *rounded_q, *rounded_scores;
    float *largest, *sums; // of each row
    const float *zeros;    // start values of a panel
    float *y;
};

static void compute_scores(const struct rows *rows, size_t key, size_t count)
{
    const struct attention *attention = rows->task->attention;
    const struct inf_attention *of = &attention->of;
    struct inf_attention_rows operands = {
        .count = rows->count, .y = rows->scores, .y_step = BLOCK_KEYS, .zeros = rows->zeros};
    const struct inf_attention_part keys = {.packed = rows->task->packed_keys +
                                                      rows->product * attention->keys_size,
                                            .matrix_depth = of->depth,
                                            .matrix_columns = of->key_count,
                                            .depth = of->depth,
                                            .column = key,
                                            .columns = count};
    if (key == 0)
        inf_attention_round(&attention->products, rows->count, rows->q, of->depth, of->depth,
                            rows->rounded_q);
    inf_attention_set_operands(&attention->products, &operands, rows->q, of->depth, of->depth,
                               rows->rounded_q);
    inf_attention_multiply(&attention->products, &operands, &keys, false);
}

static void add_values(const struct rows *rows, size_t key, size_t count)
{
    const struct attention *attention = rows->task->attention;
    const struct inf_attention *of = &attention->of;
    struct inf_attention_rows operands = {
        .count = rows->count, .y = rows->y, .y_step = of->width, .zeros = rows->zeros};
    const struct inf_attention_part values = {.packed = rows->task->packed_values +
                                                        rows->product * attention->values_size,
                                              .matrix_depth = of->key_count,
                                              .matrix_columns = of->width,
                                              .row = key,
                                              .depth = count,
                                              .columns = of->width};
    inf_attention_round(&attention->products, rows->count, rows->scores, BLOCK_KEYS, count,
                        rows->rounded_scores);
    inf_attention_set_operands(&attention->products, &operands, rows->scores, BLOCK_KEYS, count,
                               rows->rounded_scores);
    inf_attention_multiply(&attention->products, &operands, &values, key > 0);
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
    size_t strip = tile % attention->strips,
           unit = inf_attention_products_unit(&attention->products);
    float *scratch = task->scratch + worker * attention->scratch_step;
    struct rows rows = {.task = task, .product = tile / attention->strips};
    rows.first = inf_native_strip_start(of->rows, attention->strips, strip, unit);
    rows.count = inf_native_strip_start(of->rows, attention->strips, strip + 1, unit) - rows.first;
    rows.rounded_q = scratch;
    rows.rounded_scores = rows.rounded_q + attention->rounded_q;
    rows.q = rows.rounded_scores + attention->rounded_scores;
    rows.scores = rows.q + attention->strip_rows * of->depth;
    rows.largest = rows.scores + attention->strip_rows * BLOCK_KEYS;
    rows.sums = rows.largest + attention->strip_rows;
    float *zeros = rows.sums + attention->strip_rows;
    rows.zeros = zeros;
    memset(zeros, 0, INF_GEMM_PANELS * attention->products.nn->gemm->width * sizeof(float));
    size_t at = rows.product * of->rows + rows.first;
    rows.y = task->y + at * of->width;
    attention->simd->binary[INF_SIMD_MUL][INF_SIMD_B_SCALAR](
        rows.count * of->depth, task->q + at * of->depth, &of->scale, rows.q, -INFINITY, INFINITY);
    for (size_t row = 0; row < rows.count; row++) {
        rows.largest[row] = -INFINITY;
        rows.sums[row] = 0;
    }
    inf_attention_products_begin(&attention->products);
    for (size_t key = 0; key < of->key_count; key += BLOCK_KEYS) {
        size_t count = INF_MIN(BLOCK_KEYS, of->key_count - key);
        compute_scores(&rows, key, count);
        weigh_scores(&rows, key, count);
        add_values(&rows, key, count);
    }
    inf_attention_products_end(&attention->products);
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

// Returns true if both products may be computed in bf16.
static bool is_in_bf16(const struct inf_cpu_step *step, const struct inf_attention *of)
{
    return step->bf16 && (step->pinned == NULL ||
                          (!step->pinned[of->nodes[0]] && !step->pinned[of->nodes[of->count - 1]]));
}

// Sets the sizes of packed matrices and of the scratch memory of a worker.
static void measure_memory(struct attention *attention)
{
    const struct inf_attention *of = &attention->of;
    const struct inf_attention_products *products = &attention->products;
    size_t unit = inf_attention_products_unit(products);
    attention->keys_size = inf_attention_packed_size(products, of->depth, of->key_count);
    attention->values_size = inf_attention_packed_size(products, of->key_count, of->width);
    attention->strips = (of->rows + TILE_ROWS - 1) / TILE_ROWS;
    // Tiles begin at multiples of `unit`, so the largest has more rows than an equal share: less
    // than one `unit` at its beginning, and less than one at its end.
    attention->strip_rows = of->rows / attention->strips + 2 * unit;
    attention->rounded_q = inf_attention_operands_size(products, attention->strip_rows, of->depth);
    attention->rounded_scores =
        inf_attention_operands_size(products, attention->strip_rows, BLOCK_KEYS);
    attention->scratch_step = attention->rounded_q + attention->rounded_scores +
                              attention->strip_rows * (of->depth + BLOCK_KEYS + 2) +
                              INF_GEMM_PANELS * products->nn->gemm->width;
    attention->scratch_step = (attention->scratch_step + LINE - 1) / LINE * LINE;
}

enum inf_code inf_cpu_attention_create(struct inf_cpu_step *step, const struct inf_attention *of,
                                       struct inf_error *err)
{
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct attention), err));
    struct attention *attention = step->state;
    attention->of = *of;
    attention->simd = step->isa->simd;
    inf_attention_products_init(&attention->products, step, is_in_bf16(step, of));
    step->lowered_nodes += inf_attention_products_round(&attention->products) ? 2 : 0;
    measure_memory(attention);
    if (of->mask != INF_VALUE_NONE)
        describe_mask(attention, step->graph);
    attention->workers = inf_native_choose_workers(step, of->products * of->rows * of->key_count *
                                                             (of->depth + of->width));
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
