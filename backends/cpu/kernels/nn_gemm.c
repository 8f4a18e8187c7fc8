// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set with INF_NN_GEMM, the name of the table it defines.
//
// All sums of a call stay in registers; each element of `a` is spread over a vector and multiplied
// with one or two vectors of weights.
#include "backends/cpu/kernels/nn.h"
#include "backends/cpu/kernels/vec.h"

INF_VEC_INLINE inf_vec end(const struct inf_gemm *gemm, inf_vec v, size_t vector)
{
    if (gemm->slopes != NULL)
        v = vec_slope(v, vec_load(gemm->slopes + vector * INF_VEC_WIDTH));
    return vec_min(vec_all(gemm->max), vec_max(vec_all(gemm->min), v));
}

INF_VEC_INLINE void add_residual(const struct inf_gemm *gemm, inf_vec *sum, size_t pixel,
                                 size_t vector)
{
    size_t first = vector * INF_VEC_WIDTH;
    if (first >= gemm->residual_columns)
        return;
    size_t count = gemm->residual_columns - first;
    const float *from = gemm->residual + pixel * gemm->residual_step + first;
    *sum += count >= INF_VEC_WIDTH ? vec_load(from) : vec_load_some(from, count);
}

INF_VEC_INLINE void finish(const struct inf_gemm *gemm, inf_vec sum, size_t pixel, size_t vector)
{
    size_t first = vector * INF_VEC_WIDTH;
    if (gemm->residual != NULL)
        add_residual(gemm, &sum, pixel, vector);
    sum = end(gemm, sum, vector);
    float *y = gemm->y + pixel * gemm->y_step + first;
    size_t count = gemm->columns - first;
    if (count >= INF_VEC_WIDTH)
        vec_store(y, sum);
    else
        vec_store_some(y, sum, count);
}

INF_VEC_INLINE void multiply(const struct inf_gemm *gemm, const size_t pixels, const size_t vectors)
{
    inf_vec sum[INF_GEMM_ROWS_MAX][INF_GEMM_PANELS];
    for (size_t i = 0; i < pixels; i++) {
        for (size_t v = 0; v < vectors; v++)
            sum[i][v] = vec_load(gemm->bias + v * INF_VEC_WIDTH);
    }
    const float *w = gemm->w;
    const size_t step = gemm->a_step * sizeof(float);
    const size_t panel = vectors * INF_VEC_WIDTH;
    for (size_t s = 0; s < gemm->segments; s++) {
        const char *a0 = (const char *)gemm->a[s];
        if (a0 == NULL) {
            w += gemm->depth * panel;
            continue;
        }
        const char *stop = a0 + gemm->depth * sizeof(float);
        const char *a3 = a0 + 3 * step;
        const char *a6 = a0 + 6 * step;
        const char *a9 = a0 + 9 * step;
        for (; a0 < stop; w += panel) {
            inf_vec b[INF_GEMM_PANELS];
            for (size_t v = 0; v < vectors; v++)
                b[v] = vec_load(w + v * INF_VEC_WIDTH);
            for (size_t i = 0; i < pixels; i++) {
                const char *base = i < 3 ? a0 : i < 6 ? a3 : i < 9 ? a6 : a9;
                inf_vec x = vec_all(*(const float *)(base + i % 3 * step));
                for (size_t v = 0; v < vectors; v++)
                    sum[i][v] = vec_fma(x, b[v], sum[i][v]);
            }
            a0 += sizeof(float);
            a3 += sizeof(float);
            a6 += sizeof(float);
            a9 += sizeof(float);
        }
    }
    for (size_t i = 0; i < pixels; i++) {
        for (size_t v = 0; v < vectors; v++)
            finish(gemm, sum[i][v], i, v);
    }
}

#define GEMM(pixels)                                                                               \
    static void gemm_##pixels##_1(const struct inf_gemm *gemm)                                     \
    {                                                                                              \
        multiply(gemm, pixels, 1);                                                                 \
    }                                                                                              \
    static void gemm_##pixels##_2(const struct inf_gemm *gemm)                                     \
    {                                                                                              \
        multiply(gemm, pixels, 2);                                                                 \
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
    // Two vectors of each pixel, two of weights, one of `a`.
    .rows_max = INF_VEC_REGISTERS == 32 ? 12 : 6,
    .gemm = {GEMMS(1), GEMMS(2)},
};
