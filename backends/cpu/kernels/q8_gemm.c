// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit numbers. Compiled once for each ISA level; INF_Q8_GEMM is the name of the table
// that it defines.
//
// All sums of a call stay in registers. Four bytes of a pixel are broadcast to a vector and
// multiplied with one or two vectors of weights. ISA levels that can only multiply 16-bit numbers
// process the even bytes of all groups of four first, and then the odd bytes. The caller widens the
// bytes of x, because each of them is multiplied many times. The kernel widens the bytes of the
// weights, because a call reads each of them only once for all its pixels.
#include "backends/cpu/kernels/q8_store.h"

// Adds products to the sums, for the bytes of a segment that belong to part `part` (see
// INF_QVEC_PARTS). `a` is the address of these bytes in the operand of the first pixel. `step` is
// the number of bytes between the operands of neighbouring pixels.
INF_QVEC_INLINE void add_products(inf_qvec (*sum)[INF_Q8_VECTORS_MAX], size_t quads,
                                  const uint8_t *a, const size_t step, const int8_t *w,
                                  const size_t part, const size_t pixels, const size_t vectors)
{
    // Pointers to pixels 0, 3, 6 and 9. Each remaining pixel lies one or two steps after one of
    // these four.
    const uint8_t *a0 = a;
    const uint8_t *stop = a0 + 4 * quads;
    const uint8_t *a3 = a0 + 3 * step;
    const uint8_t *a6 = a0 + 6 * step;
    const uint8_t *a9 = a0 + 9 * step;
    for (; a0 < stop; w += 4 * vectors * INF_QVEC_WIDTH) {
        inf_qvec_part_w b[INF_Q8_VECTORS_MAX];
        INF_QVEC_UNROLL
        for (size_t v = 0; v < vectors; v++)
            b[v] = qvec_part_w(w + 4 * v * INF_QVEC_WIDTH, part);
        INF_QVEC_UNROLL
        for (size_t i = 0; i < pixels; i++) {
            const uint8_t *base = i < 3 ? a0 : i < 6 ? a3 : i < 9 ? a6 : a9;
            inf_qvec_part_x x = qvec_part_x(base + i % 3 * step);
            INF_QVEC_UNROLL
            for (size_t v = 0; v < vectors; v++)
                sum[i][v] = qvec_part_dot(sum[i][v], x, b[v]);
        }
        a0 += 4;
        a3 += 4;
        a6 += 4;
        a9 += 4;
    }
}

// Adds the products of the weights' ninth bits (struct inf_q8_carry).
INF_QVEC_INLINE void add_carry(inf_qvec (*sum)[INF_Q8_VECTORS_MAX],
                               const struct inf_q8_panel *panel, const struct inf_q8_gemm *gemm,
                               const struct inf_q8_carry *carry, const size_t pixels,
                               const size_t vectors)
{
    const int8_t *once = carry->w + 4 * vectors * INF_QVEC_WIDTH;
    INF_QVEC_UNROLL
    for (size_t part = 0; part < INF_QVEC_PARTS; part++) {
        const uint8_t *a = gemm->a[carry->segment] + 4 * (part * panel->quads + carry->quad);
        add_products(sum, 1, a, gemm->a_step, carry->w, part, pixels, vectors);
        add_products(sum, 1, a, gemm->a_step, carry->w, part, pixels, vectors);
        add_products(sum, 1, a, gemm->a_step, once, part, pixels, vectors);
    }
}

INF_QVEC_INLINE void multiply_panel(const struct inf_q8_panel *panel,
                                    const struct inf_q8_gemm *gemm, const size_t pixels,
                                    const size_t vectors)
{
    inf_qvec sum[INF_QVEC_ROWS][INF_Q8_VECTORS_MAX];
    INF_QVEC_UNROLL
    for (size_t i = 0; i < pixels; i++) {
        INF_QVEC_UNROLL
        for (size_t v = 0; v < vectors; v++)
            sum[i][v] = qvec_load(panel->bias + v * INF_QVEC_WIDTH);
    }
    for (size_t s = 0; s < panel->segments; s++) {
        const int8_t *w = panel->w + s * 4 * panel->quads * vectors * INF_QVEC_WIDTH;
        INF_QVEC_UNROLL
        for (size_t part = 0; part < INF_QVEC_PARTS; part++)
            add_products(sum, panel->quads, gemm->a[s] + part * 4 * panel->quads, gemm->a_step, w,
                         part, pixels, vectors);
    }
    for (size_t c = 0; c < panel->carry_count; c++)
        add_carry(sum, panel, gemm, &panel->carries[c], pixels, vectors);
    size_t stored = 0; // pixels
    if (is_plain(panel)) {
        const inf_qvec_end end = end_of(&panel->requant);
        INF_QVEC_UNROLL
        for (; stored + 4 / vectors <= pixels; stored += 4 / vectors) {
            inf_qvec four[4];
            INF_QVEC_UNROLL
            for (size_t i = 0; i < 4; i++)
                four[i] = sum[stored + i / vectors][i % vectors];
            store_four(panel, gemm, four, stored, vectors, &end);
        }
    }
    INF_QVEC_UNROLL
    for (size_t i = 0; i < pixels; i++) {
        if (i < stored)
            continue;
        INF_QVEC_UNROLL
        for (size_t v = 0; v < vectors; v++)
            store_pixel(panel, gemm, sum[i][v], i, v, vectors);
    }
}

static int32_t sum_bytes(const uint8_t *bytes, size_t count, uint8_t flip)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (uint8_t)(bytes[i] ^ flip);
    return (int32_t)sum;
}

static void copy_bytes(uint8_t *restrict to, const uint8_t *restrict from, size_t count,
                       uint8_t flip)
{
    for (size_t i = 0; i < count; i++)
        to[i] = from[i] ^ flip;
}

#define GEMM(pixels)                                                                               \
    static void gemm_##pixels##_1(const struct inf_q8_panel *panel,                                \
                                  const struct inf_q8_gemm *gemm)                                  \
    {                                                                                              \
        multiply_panel(panel, gemm, pixels < INF_QVEC_ROWS ? pixels : INF_QVEC_ROWS, 1);           \
    }                                                                                              \
    static void gemm_##pixels##_2(const struct inf_q8_panel *panel,                                \
                                  const struct inf_q8_gemm *gemm)                                  \
    {                                                                                              \
        multiply_panel(panel, gemm, pixels < INF_QVEC_ROWS ? pixels : INF_QVEC_ROWS, 2);           \
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

_Static_assert(INF_Q8_VECTORS_MAX *INF_QVEC_WIDTH <= INF_Q8_PANEL_COLUMNS_MAX,
               "a panel has no more columns than its users expect");

const struct inf_q8_gemms INF_Q8_GEMM = {
    .name = INF_Q8_NAME,
    .width = INF_QVEC_WIDTH,
    .rows_max = INF_QVEC_ROWS,
    .widen = INF_QVEC_WIDEN,
    .sum = sum_bytes,
    .copy = copy_bytes,
    .gemm = {GEMMS(1), GEMMS(2)},
};
