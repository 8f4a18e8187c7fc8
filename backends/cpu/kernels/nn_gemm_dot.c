// SPDX-License-Identifier: Apache-2.0
// Products of bf16 operands with bf16 weights. The processor multiplies two neighbouring elements
// at once and adds both products to an fp32 sum (vdpbf16ps). This takes half as long as fp32
// products on some processors and twice as long on others (backends/cpu/native/round_bf16.h).
// Weights have the layout of nn_gemm_bf16.c, which keeps the operands in fp32.
#include "backends/cpu/kernels/nn_gemm.h"

// Multiplies the two elements at `at` of each pixel with the pairs of weights `b`, and adds both
// products to the sums. at[0] to at[3] point to pixels 0, 3, 6 and 9; every other pixel is one or
// two steps after one of these.
INF_VEC_INLINE void add_pairs(inf_gemm_sums sum, const inf_vec *b, const char *const *at,
                              const size_t step, const size_t pixels, const size_t vectors)
{
    INF_VEC_UNROLL
    for (size_t i = 0; i < pixels; i++) {
        inf_vec x = vec_pair_all(at[i / 3] + i % 3 * step);
        INF_VEC_UNROLL
        for (size_t v = 0; v < vectors; v++)
            sum[i][v] = vec_dot_pairs(x, b[v], sum[i][v]);
    }
}

// Multiplies the last element of a segment that has an odd number of elements, and adds the product
// to the sums. The next element in memory is not part of the operand, so the pair is completed with
// 0. add_pairs() multiplies all other elements.
INF_VEC_INLINE void add_lasts(inf_gemm_sums sum, const inf_vec *b, const char *const *at,
                              const size_t step, const size_t pixels, const size_t vectors)
{
    INF_VEC_UNROLL
    for (size_t i = 0; i < pixels; i++) {
        uint16_t last[2] = {0};
        memcpy(last, at[i / 3] + i % 3 * step, sizeof *last);
        inf_vec x = vec_pair_all((const char *)last);
        INF_VEC_UNROLL
        for (size_t v = 0; v < vectors; v++)
            sum[i][v] = vec_dot_pairs(x, b[v], sum[i][v]);
    }
}

INF_VEC_INLINE void multiply_panel(const struct inf_gemm_panel *panel, const struct inf_gemm *gemm,
                                   const size_t pixels, const size_t vectors)
{
    inf_gemm_sums sum;
    begin_sums(panel, sum, pixels, vectors);
    const float *w = panel->w;
    const size_t step = gemm->a_step * sizeof(uint16_t);
    const size_t width = vectors * INF_VEC_WIDTH;
    const char *prefetch = gemm->prefetch;
    for (size_t s = 0; s < panel->segments; s++) {
        if (gemm->rounded[s] == NULL) {
            w += (panel->depth + 1) / 2 * width;
            continue;
        }
        const char *a0 = (const char *)(gemm->rounded[s] + gemm->a_first);
        const char *a3 = a0 + 3 * step;
        const char *a6 = a0 + 6 * step;
        const char *a9 = a0 + 9 * step;
        const char *stop = a0 + panel->depth / 2 * sizeof(uint32_t);
        inf_vec b[INF_GEMM_PANELS];
        for (; a0 < stop; w += width, prefetch += INF_GEMM_PREFETCH_BYTES) {
            __builtin_prefetch(prefetch, 0, 2);
            INF_VEC_UNROLL
            for (size_t v = 0; v < vectors; v++)
                b[v] = vec_load(w + v * INF_VEC_WIDTH);
            add_pairs(sum, b, (const char *[]){a0, a3, a6, a9}, step, pixels, vectors);
            a0 += sizeof(uint32_t);
            a3 += sizeof(uint32_t);
            a6 += sizeof(uint32_t);
            a9 += sizeof(uint32_t);
        }
        if (panel->depth % 2 == 0)
            continue;
        INF_VEC_UNROLL
        for (size_t v = 0; v < vectors; v++)
            b[v] = vec_load(w + v * INF_VEC_WIDTH);
        add_lasts(sum, b, (const char *[]){a0, a3, a6, a9}, step, pixels, vectors);
        w += width;
    }
    finish_sums(panel, gemm, sum, pixels, vectors);
}

static void round_operands(size_t count, const float *x, uint16_t *y)
{
    vec_round_all(count, x, y);
}

GEMM_FUNCTIONS

const struct inf_nn_gemm INF_NN_GEMM = {
    .width = INF_VEC_WIDTH,
    .rows_max = INF_VEC_PIXELS,
    .gemm = {GEMMS(1), GEMMS(2)},
    .round = round_operands,
};
