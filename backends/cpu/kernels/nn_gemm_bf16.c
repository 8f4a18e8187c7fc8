// SPDX-License-Identifier: Apache-2.0
// Products of fp32 operands with weights in bf16, which need half as many bytes as fp32 weights.
// Each 32 bits hold the weights of two rows of a segment, the first row in the lower half. Weights
// are widened to fp32 when they are loaded, and sums are fp32. Otherwise the code is like
// nn_gemm.c.
#include "backends/cpu/kernels/nn_gemm.h"

// Multiplies element `at` of each pixel with the vectors `b`, and adds the products to the sums.
// at[0] to at[3] point to pixels 0, 3, 6 and 9; every other pixel is one or two steps after one of
// these.
INF_VEC_INLINE void add_products(inf_gemm_sums sum, const inf_vec *b, const char *const *at,
                                 const size_t step, const size_t pixels, const size_t vectors)
{
    INF_VEC_UNROLL
    for (size_t i = 0; i < pixels; i++) {
        inf_vec x = vec_all(*(const float *)(at[i / 3] + i % 3 * step));
        INF_VEC_UNROLL
        for (size_t v = 0; v < vectors; v++)
            sum[i][v] = vec_fma(x, b[v], sum[i][v]);
    }
}

INF_VEC_INLINE void multiply_panel(const struct inf_gemm_panel *panel, const struct inf_gemm *gemm,
                                   const size_t pixels, const size_t vectors)
{
    inf_gemm_sums sum;
    begin_sums(panel, sum, pixels, vectors);
    const float *w = panel->w;
    const size_t step = gemm->a_step * sizeof(float);
    const size_t width = vectors * INF_VEC_WIDTH;
    const char *prefetch = gemm->prefetch;
    for (size_t s = 0; s < panel->segments; s++) {
        if (gemm->a[s] == NULL) {
            w += (panel->depth + 1) / 2 * width;
            continue;
        }
        const char *a0 = (const char *)(gemm->a[s] + gemm->a_first);
        const char *a3 = a0 + 3 * step;
        const char *a6 = a0 + 6 * step;
        const char *a9 = a0 + 9 * step;
        inf_vec b[INF_GEMM_PANELS];
        for (size_t pairs = panel->depth / 2; pairs > 0; pairs--) {
            __builtin_prefetch(prefetch, 0, 2);
            inf_vec second[INF_GEMM_PANELS];
            INF_VEC_UNROLL
            for (size_t v = 0; v < vectors; v++) {
                inf_vec pair = vec_load(w + v * INF_VEC_WIDTH);
                b[v] = vec_bf16_first(pair);
                second[v] = vec_bf16_second(pair);
            }
            add_products(sum, b, (const char *[]){a0, a3, a6, a9}, step, pixels, vectors);
            a0 += sizeof(float), a3 += sizeof(float), a6 += sizeof(float), a9 += sizeof(float);
            add_products(sum, second, (const char *[]){a0, a3, a6, a9}, step, pixels, vectors);
            a0 += sizeof(float), a3 += sizeof(float), a6 += sizeof(float), a9 += sizeof(float);
            w += width;
            prefetch += INF_GEMM_PREFETCH_BYTES;
        }
        if (panel->depth % 2 == 0)
            continue;
        INF_VEC_UNROLL
        for (size_t v = 0; v < vectors; v++)
            b[v] = vec_bf16_first(vec_load(w + v * INF_VEC_WIDTH));
        add_products(sum, b, (const char *[]){a0, a3, a6, a9}, step, pixels, vectors);
        w += width;
    }
    finish_sums(panel, gemm, sum, pixels, vectors);
}

GEMM_FUNCTIONS

const struct inf_nn_gemm INF_NN_GEMM = {
    .width = INF_VEC_WIDTH,
    .rows_max = INF_VEC_PIXELS,
    .gemm = {GEMMS(1), GEMMS(2)},
};
