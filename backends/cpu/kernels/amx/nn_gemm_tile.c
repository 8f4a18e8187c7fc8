// SPDX-License-Identifier: Apache-2.0
// Products of bf16 operands with bf16 weights in tile registers (tile.h). Weights have the layout
// of nn_gemm_bf16.c, which is also that of a tile register: row k of the register has the weights
// of pair k of 16 columns.
//
// A call computes 32 pixels of one or two blocks of 16 columns. It always multiplies 16 or 32 rows
// of operands, so it reads operands behind the last pixel; their sums are dropped. Calls for one to
// three pixels use vector registers, because a tile register takes as long for one row as for 16:
// INF_NN_DOT is the name of the table of these kernels, which read the same operands.
#include "backends/cpu/kernels/amx/tile.h"
#include "backends/cpu/kernels/nn_gemm.h"

// Loads the weights of one or, if `wide`, two blocks of columns.
INF_VEC_INLINE void load_weights(const char *w, size_t w_step, const int wide)
{
    _tile_loadd(6, w, w_step);
    if (wide)
        _tile_loadd(7, w + INF_VEC_WIDTH * sizeof(float), w_step);
}

// Loads the operands of one or, if `high`, two blocks of pixels.
INF_VEC_INLINE void load_operands(const char *a, size_t a_step, const int high)
{
    _tile_loadd(4, a, a_step);
    if (high)
        _tile_loadd(5, a + INF_TILE_ROWS * a_step, a_step);
}

// Adds the products of the loaded operands and weights to the sums.
INF_VEC_INLINE void add_products(const int wide, const int high)
{
    _tile_dpbf16ps(0, 4, 6);
    if (wide)
        _tile_dpbf16ps(1, 4, 7);
    if (high)
        _tile_dpbf16ps(2, 5, 6);
    if (wide && high)
        _tile_dpbf16ps(3, 5, 7);
}

// Prefetches `count` cache lines. Tile registers are loaded from lines that are too far apart for
// the hardware prefetcher.
INF_VEC_INLINE const char *prefetch_lines(const char *at, size_t count)
{
    for (size_t i = 0; i < count; i++, at += INF_GEMM_PREFETCH_BYTES)
        __builtin_prefetch(at, 0, 2);
    return at;
}

// Multiplies the operands with the weights of the panel and stores the sums. `wide` and `high` say
// whether there is a second block of columns and of pixels.
INF_VEC_INLINE void multiply_blocks(const struct inf_gemm_panel *panel, const struct inf_gemm *gemm,
                                    inf_tile_sums sums, const int wide, const int high)
{
    const size_t pairs = panel->depth / 2;
    const size_t depth = panel->tile_depth;
    const size_t a_step = gemm->a_step * sizeof(uint16_t);
    const size_t w_step = (wide ? 2 : 1) * INF_VEC_WIDTH * sizeof(float);
    const char *w = (const char *)panel->w;
    const char *prefetch = gemm->prefetch;
    inf_tile_clear_sums();
    for (size_t s = 0; s < panel->segments; s++, w += pairs * w_step) {
        if (gemm->rounded[s] == NULL)
            continue;
        const char *a = (const char *)(gemm->rounded[s] + gemm->a_first);
        for (size_t k = 0; k < pairs; k += depth, a += depth * sizeof(uint32_t)) {
            prefetch = prefetch_lines(prefetch, depth);
            load_weights(w + k * w_step, w_step, wide);
            load_operands(a, a_step, high);
            add_products(wide, high);
        }
    }
    inf_tile_store_sums(sums, wide, high);
}

// Adds the bias to the sums of all pixels, applies the epilogue and stores the results.
INF_VEC_INLINE void store_sums(const struct inf_gemm_panel *panel, const struct inf_gemm *gemm,
                               const inf_tile_sums sums, size_t pixels, const size_t vectors)
{
    inf_vec bias[INF_GEMM_PANELS];
    INF_VEC_UNROLL
    for (size_t v = 0; v < vectors; v++)
        bias[v] = vec_load(panel->bias + v * INF_VEC_WIDTH);
    for (size_t i = 0; i < pixels; i++) {
        inf_vec sum[INF_GEMM_PANELS];
        INF_VEC_UNROLL
        for (size_t v = 0; v < vectors; v++)
            sum[v] = vec_load((const float *)sums[i] + v * INF_TILE_COLUMNS) + bias[v];
        store_pixel(panel, gemm, sum, i, vectors);
    }
}

INF_VEC_INLINE void multiply_panel(const struct inf_gemm_panel *panel, const struct inf_gemm *gemm,
                                   const size_t vectors)
{
    _Alignas(64) inf_tile_sums sums;
    if (gemm->pixels > INF_TILE_ROWS)
        multiply_blocks(panel, gemm, sums, vectors > 1, 1);
    else
        multiply_blocks(panel, gemm, sums, vectors > 1, 0);
    store_sums(panel, gemm, sums, gemm->pixels, vectors);
}

static void multiply_narrow(const struct inf_gemm_panel *panel, const struct inf_gemm *gemm)
{
    if (gemm->pixels <= INF_TILE_FEW_PIXELS)
        INF_NN_DOT.gemm[0][gemm->pixels - 1](panel, gemm);
    else
        multiply_panel(panel, gemm, 1);
}

static void multiply_wide(const struct inf_gemm_panel *panel, const struct inf_gemm *gemm)
{
    if (gemm->pixels <= INF_TILE_FEW_PIXELS)
        INF_NN_DOT.gemm[1][gemm->pixels - 1](panel, gemm);
    else
        multiply_panel(panel, gemm, 2);
}

static void round_operands(size_t count, const float *x, uint16_t *y)
{
    vec_round_all(count, x, y);
}

const struct inf_nn_gemm INF_NN_GEMM = {
    .width = INF_VEC_WIDTH,
    .rows_max = INF_TILE_CALL_ROWS,
    .gemm = {{[0 ... INF_TILE_CALL_ROWS - 1] = multiply_narrow},
             {[0 ... INF_TILE_CALL_ROWS - 1] = multiply_wide}},
    .round = round_operands,
    .begin = inf_tile_begin,
    .end = inf_tile_end,
};
