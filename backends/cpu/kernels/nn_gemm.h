// SPDX-License-Identifier: Apache-2.0
// Code that the products of pixels and panels share, for all formats of weights: the start values
// of sums, the epilogue, and the generation of one function for each number of pixels. Each file
// that defines multiply_panel() includes this header once.
#ifndef INF_BACKENDS_CPU_KERNELS_NN_GEMM_H
#define INF_BACKENDS_CPU_KERNELS_NN_GEMM_H

#include "backends/cpu/kernels/nn.h"
#include "backends/cpu/kernels/vec.h"

INF_VEC_INLINE inf_vec residual_of(const struct inf_gemm_panel *panel, const struct inf_gemm *gemm,
                                   size_t pixel, size_t vector)
{
    size_t first = vector * INF_VEC_WIDTH;
    const float *from = gemm->residual + pixel * panel->residual_step + first;
    if (first + INF_VEC_WIDTH <= panel->residual_columns)
        return vec_load(from);
    return first < panel->residual_columns ? vec_load_some(from, panel->residual_columns - first)
                                           : vec_all(0);
}

// Adds the residual to the sums of one pixel, applies the epilogue, and stores the vectors of
// results.
INF_VEC_INLINE void store_pixel(const struct inf_gemm_panel *panel, const struct inf_gemm *gemm,
                                const inf_vec *sum, const size_t pixel, const size_t vectors)
{
    const inf_vec min = vec_all(panel->min);
    const inf_vec max = vec_all(panel->max);
    float *y = gemm->y + pixel * panel->y_step;
    INF_VEC_UNROLL
    for (size_t v = 0; v < vectors; v++) {
        inf_vec x = sum[v];
        if (gemm->residual != NULL)
            x += residual_of(panel, gemm, pixel, v);
        if (panel->slopes != NULL)
            x = vec_slope(x, vec_load(panel->slopes + v * INF_VEC_WIDTH));
        x = vec_min(max, vec_max(min, x));
        // Only the last vector may have padding columns, which are not stored.
        if (v + 1 < vectors || panel->columns == vectors * INF_VEC_WIDTH)
            vec_store(y + v * INF_VEC_WIDTH, x);
        else
            vec_store_some(y + v * INF_VEC_WIDTH, x, panel->columns - v * INF_VEC_WIDTH);
    }
}

typedef inf_vec inf_gemm_sums[INF_GEMM_ROWS_MAX][INF_GEMM_PANELS];

INF_VEC_INLINE void begin_sums(const struct inf_gemm_panel *panel, inf_gemm_sums sum,
                               const size_t pixels, const size_t vectors)
{
    INF_VEC_UNROLL
    for (size_t i = 0; i < pixels; i++) {
        INF_VEC_UNROLL
        for (size_t v = 0; v < vectors; v++)
            sum[i][v] = vec_load(panel->bias + v * INF_VEC_WIDTH);
    }
}

INF_VEC_INLINE void finish_sums(const struct inf_gemm_panel *panel, const struct inf_gemm *gemm,
                                const inf_gemm_sums sum, const size_t pixels, const size_t vectors)
{
    if (gemm->residual == NULL && panel->slopes == NULL &&
        panel->columns == vectors * INF_VEC_WIDTH) {
        // Read all members of `panel` and `gemm` before the stores, because the compiler must
        // assume that the stores change them.
        const inf_vec min = vec_all(panel->min);
        const inf_vec max = vec_all(panel->max);
        const size_t y_step = panel->y_step;
        float *y = gemm->y;
        INF_VEC_UNROLL
        for (size_t i = 0; i < pixels; i++, y += y_step) {
            INF_VEC_UNROLL
            for (size_t v = 0; v < vectors; v++)
                vec_store(y + v * INF_VEC_WIDTH, vec_min(max, vec_max(min, sum[i][v])));
        }
        return;
    }
    INF_VEC_UNROLL
    for (size_t i = 0; i < pixels; i++)
        store_pixel(panel, gemm, sum[i], i, vectors);
}

// Defines the kernels, one function for each number of pixels. Each calls the following function,
// which the including file must define. It computes `pixels` pixels and `vectors` vectors of
// columns:
//
//     void multiply_panel(const struct inf_gemm_panel *panel, const struct inf_gemm *gemm,
//                         const size_t pixels, const size_t vectors)
#define GEMM(pixels)                                                                               \
    static void gemm_##pixels##_1(const struct inf_gemm_panel *panel, const struct inf_gemm *gemm) \
    {                                                                                              \
        multiply_panel(panel, gemm, pixels, 1);                                                    \
    }                                                                                              \
    static void gemm_##pixels##_2(const struct inf_gemm_panel *panel, const struct inf_gemm *gemm) \
    {                                                                                              \
        multiply_panel(panel, gemm, pixels, 2);                                                    \
    }

#define GEMM_FUNCTIONS                                                                             \
    GEMM(1)                                                                                        \
    GEMM(2)                                                                                        \
    GEMM(3)                                                                                        \
    GEMM(4)                                                                                        \
    GEMM(5)                                                                                        \
    GEMM(6)                                                                                        \
    GEMM(7)                                                                                        \
    GEMM(8)                                                                                        \
    GEMM(9)                                                                                        \
    GEMM(10)                                                                                       \
    GEMM(11)                                                                                       \
    GEMM(12)

#define GEMMS(vectors)                                                                             \
    {                                                                                              \
        gemm_1_##vectors, gemm_2_##vectors, gemm_3_##vectors, gemm_4_##vectors, gemm_5_##vectors,  \
            gemm_6_##vectors, gemm_7_##vectors, gemm_8_##vectors, gemm_9_##vectors,                \
            gemm_10_##vectors, gemm_11_##vectors, gemm_12_##vectors                                \
    }

#endif
