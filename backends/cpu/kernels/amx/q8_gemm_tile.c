// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit numbers in tile registers (tile.h). The weights have the layout of q8_gemm.c,
// which is also that of a tile register: row k of the register has the weights of group k of 16
// columns. Sums are exact modulo 2^32, as those of all other kernels.
//
// A call computes up to 64 pixels of one or two blocks of 16 columns. It multiplies 16 or 32 rows
// of operands at a time, so it reads operands behind the last pixel; their sums are dropped. Calls
// for one to three pixels use vector registers, because a tile register takes as long for one row
// as for 16.
#include "backends/cpu/kernels/amx/tile.h"
#include "backends/cpu/kernels/q8_store.h"

#define CALL_ROUNDS (INF_Q8_ROWS_MAX / INF_TILE_CALL_ROWS)

// Multiplies the operands from pixel `first` on with the weights of the panel and stores the sums,
// with the bias. `wide` and `high` say whether there is a second block of columns and of pixels.
INF_QVEC_INLINE void multiply_blocks(const struct inf_q8_panel *panel,
                                     const struct inf_q8_gemm *gemm, size_t first,
                                     inf_tile_sums sums, const int wide, const int high)
{
    const size_t depth = panel->tile_depth;
    const size_t a_step = gemm->a_step;
    const size_t column_step = INF_TILE_COLUMNS * sizeof(uint32_t);
    const size_t w_step = (wide ? 2 : 1) * column_step;
    const int8_t *w = panel->w;
    // Each row of a register is the same bias.
    _tile_loadd(0, panel->bias, 0);
    if (wide)
        _tile_loadd(1, panel->bias + INF_TILE_COLUMNS, 0);
    if (high)
        _tile_loadd(2, panel->bias, 0);
    if (high && wide)
        _tile_loadd(3, panel->bias + INF_TILE_COLUMNS, 0);
    for (size_t s = 0; s < panel->segments; s++) {
        const uint8_t *a = gemm->a[s] + first * a_step;
        for (size_t k = 0; k < panel->quads; k += depth) {
            _tile_loadd(6, w, w_step);
            _tile_loadd(4, a, a_step);
            _tile_dpbusd(0, 4, 6);
            if (wide) {
                _tile_loadd(7, w + column_step, w_step);
                _tile_dpbusd(1, 4, 7);
            }
            if (high) {
                _tile_loadd(5, a + INF_TILE_ROWS * a_step, a_step);
                _tile_dpbusd(2, 5, 6);
                if (wide)
                    _tile_dpbusd(3, 5, 7);
            }
            a += depth * sizeof(uint32_t);
            w += depth * w_step;
        }
    }
    inf_tile_store_sums(sums, wide, high);
}

// Adds the products of the weights' ninth bits (struct inf_q8_carry) to the sums of a pixel.
INF_QVEC_INLINE inf_qvec add_carries(inf_qvec sum, const struct inf_q8_panel *panel,
                                     const struct inf_q8_gemm *gemm, size_t pixel,
                                     const size_t vector, const size_t vectors)
{
    for (size_t c = 0; c < panel->carry_count; c++) {
        const struct inf_q8_carry *carry = &panel->carries[c];
        const int8_t *w = carry->w + 4 * vector * INF_QVEC_WIDTH;
        inf_qvec_x x = qvec_x_all(gemm->a[carry->segment] + pixel * gemm->a_step + 4 * carry->quad);
        inf_qvec_w twice = qvec_w(w);
        sum = qvec_dot(qvec_dot(sum, x, twice), x, twice);
        sum = qvec_dot(sum, x, qvec_w(w + 4 * vectors * INF_QVEC_WIDTH));
    }
    return sum;
}

// Converts the sums of `pixels` pixels from pixel `first` on, and stores the results.
INF_QVEC_INLINE void store_sums(const struct inf_q8_panel *panel, const struct inf_q8_gemm *gemm,
                                const inf_tile_sums sums, size_t first, size_t pixels,
                                const size_t vectors)
{
    const size_t step = 4 / vectors; // pixels of four vectors
    size_t i = 0;
    if (is_plain(panel)) {
        const inf_qvec_end end = end_of(&panel->requant);
        for (; i + step <= pixels; i += step) {
            inf_qvec four[4];
            INF_QVEC_UNROLL
            for (size_t k = 0; k < 4; k++) {
                size_t v = k % vectors;
                four[k] = qvec_load(sums[i + k / vectors] + v * INF_TILE_COLUMNS);
                four[k] = add_carries(four[k], panel, gemm, first + i + k / vectors, v, vectors);
            }
            store_four(panel, gemm, four, first + i, vectors, &end);
        }
    }
    for (; i < pixels; i++) {
        INF_QVEC_UNROLL
        for (size_t v = 0; v < vectors; v++) {
            inf_qvec sum = qvec_load(sums[i] + v * INF_TILE_COLUMNS);
            sum = add_carries(sum, panel, gemm, first + i, v, vectors);
            store_pixel(panel, gemm, sum, first + i, v, vectors);
        }
    }
}

INF_QVEC_INLINE void multiply_panel(const struct inf_q8_panel *panel,
                                    const struct inf_q8_gemm *gemm, const size_t vectors)
{
    if (gemm->pixels <= INF_TILE_FEW_PIXELS) {
        inf_gemm_q8_vnni.gemm[vectors - 1][gemm->pixels - 1](panel, gemm);
        return;
    }
    _Alignas(64) inf_tile_sums sums[CALL_ROUNDS];
    // All products are begun before the first sums are converted, because a tile register takes
    // long from its first operand to its sums.
    for (size_t first = 0; first < gemm->pixels; first += INF_TILE_CALL_ROWS) {
        if (gemm->pixels - first > INF_TILE_ROWS)
            multiply_blocks(panel, gemm, first, sums[first / INF_TILE_CALL_ROWS], vectors > 1, 1);
        else
            multiply_blocks(panel, gemm, first, sums[first / INF_TILE_CALL_ROWS], vectors > 1, 0);
    }
    for (size_t first = 0; first < gemm->pixels; first += INF_TILE_CALL_ROWS) {
        size_t left = gemm->pixels - first;
        store_sums(panel, gemm, sums[first / INF_TILE_CALL_ROWS], first,
                   left < INF_TILE_CALL_ROWS ? left : INF_TILE_CALL_ROWS, vectors);
    }
}

static void multiply_narrow(const struct inf_q8_panel *panel, const struct inf_q8_gemm *gemm)
{
    multiply_panel(panel, gemm, 1);
}

static void multiply_wide(const struct inf_q8_panel *panel, const struct inf_q8_gemm *gemm)
{
    multiply_panel(panel, gemm, 2);
}

static int32_t sum_bytes(const uint8_t *bytes, size_t count, uint8_t flip)
{
    return inf_gemm_q8_vnni.sum(bytes, count, flip);
}

static void copy_bytes(uint8_t *to, const uint8_t *from, size_t count, uint8_t flip)
{
    inf_gemm_q8_vnni.copy(to, from, count, flip);
}

_Static_assert(INF_Q8_VECTORS_MAX *INF_QVEC_WIDTH <= INF_Q8_PANEL_COLUMNS_MAX,
               "a panel has no more columns than its users expect");

const struct inf_q8_gemms INF_Q8_GEMM = {
    .name = INF_Q8_NAME,
    .width = INF_QVEC_WIDTH,
    .rows_max = INF_Q8_ROWS_MAX,
    .sum = sum_bytes,
    .copy = copy_bytes,
    .gemm = {{[0 ... INF_Q8_ROWS_MAX - 1] = multiply_narrow},
             {[0 ... INF_Q8_ROWS_MAX - 1] = multiply_wide}},
    .begin = inf_tile_begin,
    .end = inf_tile_end,
};
