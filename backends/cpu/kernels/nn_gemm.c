// SPDX-License-Identifier: Apache-2.0
// Products of pixels and panels in fp32. Compiled once for each ISA level; INF_NN_GEMM is the name
// of the table that it defines.
//
// All sums of a call stay in registers. Each element of `a` is broadcast to a vector and multiplied
// with one or two vectors of weights.
#include "backends/cpu/kernels/nn_gemm.h"

INF_VEC_INLINE void multiply_panel(const struct inf_gemm_panel *panel, const struct inf_gemm *gemm,
                                   const size_t pixels, const size_t vectors)
{
    inf_gemm_sums sum;
    begin_sums(panel, sum, pixels, vectors);
    const float *w = panel->w;
    const size_t step = gemm->a_step * sizeof(float);
    const size_t width = vectors * INF_VEC_WIDTH;
    const char *prefetch = gemm->prefetch;
    const size_t prefetch_step =
        INF_VEC_SHARES_PREFETCH ? gemm->prefetch_step : INF_GEMM_PREFETCH_BYTES;
    const size_t depth = panel->depth;
    const size_t first = gemm->a_first;
    const float *const *segments_end = gemm->a + panel->segments;
    for (const float *const *a = gemm->a; a != segments_end; a++) {
        if (*a == NULL) {
            w += depth * width;
            continue;
        }
        // Keep pointers to pixels 0, 3, 6 and 9 only. Every other pixel is one or two steps after
        // one of these, which an addressing mode of the load instruction can express.
        const char *a0 = (const char *)(*a + first);
        const char *stop = a0 + depth * sizeof(float);
        const char *a3 = a0 + 3 * step;
        const char *a6 = a0 + 6 * step;
        const char *a9 = a0 + 9 * step;
        for (; a0 < stop; w += width, prefetch += prefetch_step) {
            __builtin_prefetch(prefetch, 0, 2);
            inf_vec b[INF_GEMM_PANELS];
            INF_VEC_UNROLL
            for (size_t v = 0; v < vectors; v++)
                b[v] = vec_load(w + v * INF_VEC_WIDTH);
            INF_VEC_UNROLL
            for (size_t i = 0; i < pixels; i++) {
                const char *base = i < 3 ? a0 : i < 6 ? a3 : i < 9 ? a6 : a9;
                inf_vec x = vec_all(*(const float *)(base + i % 3 * step));
                INF_VEC_UNROLL
                for (size_t v = 0; v < vectors; v++)
                    sum[i][v] = vec_fma(x, b[v], sum[i][v]);
            }
            a0 += sizeof(float);
            a3 += sizeof(float);
            a6 += sizeof(float);
            a9 += sizeof(float);
        }
    }
    finish_sums(panel, gemm, sum, pixels, vectors);
}

GEMM_FUNCTIONS

const struct inf_nn_gemm INF_NN_GEMM = {
    .width = INF_VEC_WIDTH,
    .rows_max = INF_VEC_PIXELS,
    .shares_prefetch = INF_VEC_SHARES_PREFETCH,
    .gemm = {GEMMS(1), GEMMS(2)},
};
