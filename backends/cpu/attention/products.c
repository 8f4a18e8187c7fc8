// SPDX-License-Identifier: Apache-2.0
// The products of an attention. Both matrices of a product are computed at run time, so one is
// packed into panels in every run (core/pack.h describes the layout of panels).
//
// In bf16 the depth of a product is padded with zeros to whole steps of tile registers, so that the
// number of keys may be odd: a padded key has the weight 0 and the value 0. Rows of rounded
// operands are an odd number of cache lines apart (round_bf16.h). Memory for some more rows follows
// the last row, because kernels with tile registers read past it.
#include "backends/cpu/attention/products.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "backends/cpu/core/panel.h"
#include "backends/cpu/native/round_bf16.h"

#define LINE      ((size_t)16)           // floats of a cache line
#define PANEL_MAX (INF_GEMM_PANELS * 16) // most columns of a panel
// Elements of one step of tile registers, which the depth of products in bf16 is a multiple of.
#define STEP ((size_t)2 * INF_TILE_DEPTH)

void inf_attention_products_init(struct inf_attention_products *products,
                                 const struct inf_cpu_step *step, bool bf16)
{
    const struct inf_nn *nn = step->isa->nn;
    *products = (struct inf_attention_products){nn, nn->gemm, nn->gemm_half};
    if (bf16 && nn->gemm_tile != NULL) {
        products->whole = nn->gemm_tile;
        products->half = nn->gemm_tile_half;
    } else if (bf16 && step->bf16_dot) {
        products->whole = nn->gemm_dot;
        products->half = nn->gemm_dot_half;
    }
}

bool inf_attention_products_round(const struct inf_attention_products *products)
{
    return products->whole->round != NULL;
}

size_t inf_attention_products_unit(const struct inf_attention_products *products)
{
    return products->whole->rows_max;
}

// Returns the number of rows of a product that has `depth` rows without padding.
static size_t pad_depth(const struct inf_attention_products *products, size_t depth)
{
    return inf_attention_products_round(products) ? (depth + STEP - 1) / STEP * STEP : depth;
}

// Returns the floats of each column of a packed matrix with `depth` rows.
static size_t packed_depth(const struct inf_attention_products *products, size_t depth)
{
    return pad_depth(products, depth) / (inf_attention_products_round(products) ? 2 : 1);
}

size_t inf_attention_packed_size(const struct inf_attention_products *products, size_t depth,
                                 size_t columns)
{
    size_t width, size;
    (void)inf_cpu_panel_count(products->nn, columns, &width);
    size = width * packed_depth(products, depth);
    // Kernels with tile registers and half vectors read half a cache line behind the panel.
    return (size + LINE - 1) / LINE * LINE + (inf_attention_products_round(products) ? LINE : 0);
}

// --- packing ---

// Packs the columns of a panel. `by_column`: each column of the matrix is contiguous.
static void pack_panel(const struct inf_cpu_panel *panel, const float *from, size_t depth,
                       size_t columns, bool by_column, float *to)
{
    for (size_t k = 0; k < depth && !by_column; k++)
        memcpy(to + k * panel->width, from + k * columns + panel->first,
               panel->columns * sizeof(float));
    if (by_column)
        inf_cpu_panel_transpose(depth, panel->columns, from + panel->first * depth, depth, to,
                                panel->width);
}

// Rounds the columns of a panel of which each is `depth` contiguous floats.
static void round_columns(const struct inf_nn_gemm *gemm, const struct inf_cpu_panel *panel,
                          const float *from, size_t depth, uint32_t *to)
{
    _Alignas(64) uint16_t rounded[PANEL_MAX][STEP];
    assert(panel->columns <= PANEL_MAX);
    for (size_t line = 0; line < depth; line += STEP) {
        size_t count = INF_MIN(STEP, depth - line);
        for (size_t c = 0; c < panel->columns; c++) {
            gemm->round(count, from + (panel->first + c) * depth + line, rounded[c]);
            if (count % 2 != 0)
                rounded[c][count] = 0; // completes the last pair
        }
        inf_cpu_panel_transpose((count + 1) / 2, panel->columns, rounded, STEP / 2,
                                to + line / 2 * panel->width, panel->width);
    }
}

// Rounds the columns of a panel of a matrix whose rows are contiguous.
static void round_rows(const struct inf_nn_gemm *gemm, const struct inf_cpu_panel *panel,
                       const float *from, size_t depth, size_t columns, uint32_t *to)
{
    uint16_t first[PANEL_MAX], second[PANEL_MAX];
    assert(panel->columns <= PANEL_MAX);
    memset(second, 0, sizeof(second));
    for (size_t k = 0; k < depth; k += 2, to += panel->width) {
        const float *row = from + k * columns + panel->first;
        gemm->round(panel->columns, row, first);
        if (k + 1 < depth)
            gemm->round(panel->columns, row + columns, second);
        else
            memset(second, 0, sizeof(second));
        uint16_t *pairs = (uint16_t *)to;
        for (size_t c = 0; c < panel->columns; c++) {
            pairs[2 * c] = first[c];
            pairs[2 * c + 1] = second[c];
        }
    }
}

void inf_attention_pack(const struct inf_attention_products *products, const float *from,
                        size_t depth, size_t columns, bool by_column, float *to)
{
    const struct inf_nn_gemm *gemm = products->whole;
    bool rounds = inf_attention_products_round(products);
    size_t rows = packed_depth(products, depth);
    size_t filled = rounds ? (depth + 1) / 2 : depth; // rows without padding
    for (size_t first = 0; first < columns;) {
        struct inf_cpu_panel panel = inf_cpu_panel_at(products->nn, first, columns);
        size_t size = rows * panel.width;
        // Clear the padding: in bf16 the rows after the last pair. If columns are padded, clear the
        // whole panel.
        size_t padded = panel.columns < panel.width ? 0 : filled;
        memset(to + padded * panel.width, 0, (rows - padded) * panel.width * sizeof(float));
        if (!rounds)
            pack_panel(&panel, from, depth, columns, by_column, to);
        else if (by_column)
            round_columns(gemm, &panel, from, depth, (uint32_t *)(void *)to);
        else
            round_rows(gemm, &panel, from, depth, columns, (uint32_t *)(void *)to);
        to += size;
        first += panel.columns;
    }
}

// --- multiplying ---

static size_t operand_step(const struct inf_attention_products *products, size_t depth)
{
    return inf_round_bf16_padded_step(pad_depth(products, depth));
}

size_t inf_attention_operands_size(const struct inf_attention_products *products, size_t count,
                                   size_t depth)
{
    if (!inf_attention_products_round(products))
        return 0;
    return (count + INF_TILE_CALL_ROWS) * operand_step(products, depth) / 2;
}

void inf_attention_round(const struct inf_attention_products *products, size_t count,
                         const float *from, size_t step, size_t depth, float *memory)
{
    if (!inf_attention_products_round(products))
        return;
    size_t padded = pad_depth(products, depth), to_step = operand_step(products, depth);
    uint16_t *to = (uint16_t *)(void *)memory;
    for (size_t row = 0; row < count; row++, to += to_step) {
        products->whole->round(depth, from + row * step, to);
        memset(to + depth, 0, (padded - depth) * sizeof(*to));
    }
}

void inf_attention_set_operands(const struct inf_attention_products *products,
                                struct inf_attention_rows *rows, const float *from, size_t step,
                                size_t depth, const float *memory)
{
    bool rounds = inf_attention_products_round(products);
    rows->a = rounds ? memory : from;
    rows->a_step = rounds ? operand_step(products, depth) : step;
}

void inf_attention_products_begin(const struct inf_attention_products *products)
{
    if (products->whole->begin != NULL)
        products->whole->begin(INF_TILE_DEPTH);
}

void inf_attention_products_end(const struct inf_attention_products *products)
{
    if (products->whole->end != NULL)
        products->whole->end();
}

// Multiplies the rows with one panel of the part.
static void multiply_panel(const struct inf_attention_products *products,
                           const struct inf_attention_rows *rows, const struct inf_cpu_panel *place,
                           struct inf_gemm_panel *panel, float *y, bool adds)
{
    const struct inf_nn_gemm *gemm =
        place->gemm == products->nn->gemm ? products->whole : products->half;
    bool rounds = inf_attention_products_round(products);
    panel->residual_columns = panel->columns = place->columns;
    for (size_t row = 0; row < rows->count; row += gemm->rows_max) {
        size_t some = INF_MIN(rows->count - row, gemm->rows_max);
        const float *floats[1] = {rounds ? NULL : (const float *)rows->a + row * rows->a_step};
        const uint16_t *rounded[1] = {rounds ? (const uint16_t *)rows->a + row * rows->a_step
                                             : NULL};
        float *to = y + row * rows->y_step;
        struct inf_gemm call = {.a = floats,
                                .rounded = rounded,
                                .pixels = some,
                                .a_step = rows->a_step,
                                .prefetch = panel->w,
                                .residual = adds ? to : NULL,
                                .y = to};
        gemm->gemm[place->vectors - 1][some - 1](panel, &call);
    }
}

void inf_attention_multiply(const struct inf_attention_products *products,
                            const struct inf_attention_rows *rows,
                            const struct inf_attention_part *part, bool adds)
{
    struct inf_gemm_panel panel = {.segments = 1,
                                   .depth = pad_depth(products, part->depth),
                                   .bias = rows->zeros,
                                   .min = -INFINITY,
                                   .max = INFINITY,
                                   .y_step = rows->y_step,
                                   .residual_step = rows->y_step,
                                   .tile_depth = INF_TILE_DEPTH};
    size_t column_size = packed_depth(products, part->matrix_depth);
    for (size_t first = part->column; first < part->column + part->columns;) {
        struct inf_cpu_panel place = inf_cpu_panel_at(products->nn, first, part->matrix_columns);
        panel.w =
            part->packed + first * column_size + packed_depth(products, part->row) * place.width;
        multiply_panel(products, rows, &place, &panel, rows->y + (first - part->column), adds);
        first += place.columns;
    }
}
