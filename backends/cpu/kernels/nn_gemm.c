// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set with INF_NN_GEMM, the name of the table it defines.
//
// All sums of a call stay in registers; each element of `a` is spread over a vector and multiplied
// with one or two vectors of weights.
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

// Adds the residual and ends; `y` holds the vectors of a pixel.
INF_VEC_INLINE void store(const struct inf_gemm_panel *panel, const struct inf_gemm *gemm,
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
        // Only the last vector may be cut.
        if (v + 1 < vectors || panel->columns == vectors * INF_VEC_WIDTH)
            vec_store(y + v * INF_VEC_WIDTH, x);
        else
            vec_store_some(y + v * INF_VEC_WIDTH, x, panel->columns - v * INF_VEC_WIDTH);
    }
}

INF_VEC_INLINE void store_plain(const struct inf_gemm_panel *panel, const struct inf_gemm *gemm,
                                const inf_vec *sum, const size_t pixel, const size_t vectors)
{
    const inf_vec min = vec_all(panel->min);
    const inf_vec max = vec_all(panel->max);
    float *y = gemm->y + pixel * panel->y_step;
    INF_VEC_UNROLL
    for (size_t v = 0; v < vectors; v++)
        vec_store(y + v * INF_VEC_WIDTH, vec_min(max, vec_max(min, sum[v])));
}

INF_VEC_INLINE void multiply(const struct inf_gemm_panel *panel, const struct inf_gemm *gemm,
                             const size_t pixels, const size_t vectors)
{
    inf_vec sum[INF_GEMM_ROWS_MAX][INF_GEMM_PANELS];
    INF_VEC_UNROLL
    for (size_t i = 0; i < pixels; i++) {
        INF_VEC_UNROLL
        for (size_t v = 0; v < vectors; v++)
            sum[i][v] = vec_load(panel->bias + v * INF_VEC_WIDTH);
    }
    const float *w = panel->w;
    const size_t step = gemm->a_step * sizeof(float);
    const size_t width = vectors * INF_VEC_WIDTH;
    const char *ahead = gemm->ahead;
    for (size_t s = 0; s < panel->segments; s++) {
        // Pixels 0, 3, 6 and 9: the others are one or two steps behind them.
        if (gemm->a[s] == NULL) {
            w += panel->depth * width;
            continue;
        }
        const char *a0 = (const char *)(gemm->a[s] + gemm->a_first);
        const char *stop = a0 + panel->depth * sizeof(float);
        const char *a3 = a0 + 3 * step;
        const char *a6 = a0 + 6 * step;
        const char *a9 = a0 + 9 * step;
        for (; a0 < stop; w += width, ahead += INF_GEMM_AHEAD_BYTES) {
            __builtin_prefetch(ahead, 0, 2);
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
    if (gemm->residual == NULL && panel->slopes == NULL && panel->columns == width) {
        INF_VEC_UNROLL
        for (size_t i = 0; i < pixels; i++)
            store_plain(panel, gemm, sum[i], i, vectors);
        return;
    }
    INF_VEC_UNROLL
    for (size_t i = 0; i < pixels; i++)
        store(panel, gemm, sum[i], i, vectors);
}

#define GEMM(pixels)                                                                               \
    static void gemm_##pixels##_1(const struct inf_gemm_panel *panel, const struct inf_gemm *gemm) \
    {                                                                                              \
        multiply(panel, gemm, pixels, 1);                                                          \
    }                                                                                              \
    static void gemm_##pixels##_2(const struct inf_gemm_panel *panel, const struct inf_gemm *gemm) \
    {                                                                                              \
        multiply(panel, gemm, pixels, 2);                                                          \
    }

GEMM(1)
GEMM(2)
GEMM(3)
GEMM(4)
GEMM(5)
GEMM(6)
GEMM(7)
GEMM(8)
GEMM(9)
GEMM(10)
GEMM(11)
GEMM(12)

#define GEMMS(vectors)                                                                             \
    {                                                                                              \
        gemm_1_##vectors, gemm_2_##vectors, gemm_3_##vectors, gemm_4_##vectors, gemm_5_##vectors,  \
            gemm_6_##vectors, gemm_7_##vectors, gemm_8_##vectors, gemm_9_##vectors,                \
            gemm_10_##vectors, gemm_11_##vectors, gemm_12_##vectors                                \
    }

const struct inf_nn_gemm INF_NN_GEMM = {
    .width = INF_VEC_WIDTH,
    .rows_max = INF_VEC_PIXELS,
    .gemm = {GEMMS(1), GEMMS(2)},
};
