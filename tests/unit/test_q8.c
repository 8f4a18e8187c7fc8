// SPDX-License-Identifier: Apache-2.0
// The loops on 8-bit numbers against plain sums, for every instruction set that this processor has:
// equal to the bit, with what they must not touch lying around what they may.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/kernels/isa.h"

#define GUARD  0x5a
#define AROUND 80 // bytes before and behind that must stay

static uint32_t state = 1;

static uint32_t bits(void)
{
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

// Any bytes, the extreme ones often; `slack` more behind them that may be read.
static uint8_t *bytes(size_t count, size_t slack)
{
    static const uint8_t extremes[] = {0, 127, 128, 255};
    uint8_t *x = malloc(count + slack);
    for (size_t i = 0; i < count + slack; i++)
        x[i] = bits() % 3 == 0 ? extremes[bits() % 4] : (uint8_t)bits();
    return x;
}

static uint8_t *guarded(size_t count)
{
    uint8_t *y = malloc(count + (size_t)2 * AROUND);
    memset(y, GUARD, count + (size_t)2 * AROUND);
    return y;
}

static int32_t ending(int32_t sum, float scale, const struct inf_q8_end *end)
{
    float value = (float)sum * scale;
    value = value > end->low ? value : end->low;
    value = value < end->high ? value : end->high;
    return (int32_t)nearbyintf(value) + end->zero;
}

struct product {
    size_t pixels, vectors, columns, segments, quads;
    bool zeros, sums;
};

static void check_product(const struct inf_q8_gemms *q8, const struct product *p)
{
    size_t width = p->vectors * q8->width;
    size_t a_step = 4 * p->quads + 3;
    size_t y_step = p->columns + 5;
    size_t y_size = p->sums ? sizeof(int32_t) : 1;
    uint8_t *a = bytes(p->segments * p->pixels * a_step, 0);
    uint8_t *w = bytes(p->segments * p->quads * width * 4, 0);
    int32_t bias[INF_Q8_VECTORS_MAX * 16];
    int32_t zeros[INF_Q8_VECTORS_MAX * 16];
    int32_t sums[INF_Q8_ROWS_MAX];
    float scales[INF_Q8_VECTORS_MAX * 16];
    const uint8_t *segments[4];
    uint8_t *y = guarded(p->pixels * y_step * y_size);
    for (size_t i = 0; i < width; i++) {
        bias[i] = (int32_t)(bits() % 200000) - 100000;
        zeros[i] = (int32_t)(bits() % 256) - 128;
        scales[i] = i % 5 == 0 ? 0.5f : (float)(bits() % 1000) * 1e-5f;
    }
    bias[0] = INT32_MAX; // sums wrap around
    for (size_t i = 0; i < p->pixels; i++)
        sums[i] = (int32_t)(bits() % 100000);
    for (size_t s = 0; s < p->segments; s++)
        segments[s] = a + s * p->pixels * a_step;
    struct inf_q8_panel panel = {.segments = p->segments,
                                 .quads = p->quads,
                                 .w = (const int8_t *)w,
                                 .bias = bias,
                                 .zeros = p->zeros ? zeros : NULL,
                                 .end = {p->sums ? NULL : scales, -100, 130, 117},
                                 .y_step = y_step,
                                 .columns = p->columns};
    struct inf_q8_gemm gemm = {segments, a_step, sums, y + AROUND};
    q8->gemm[p->vectors - 1][p->pixels - 1](&panel, &gemm);
    for (size_t i = 0; i < p->pixels; i++) {
        for (size_t c = 0; c < p->columns; c++) {
            uint32_t sum = (uint32_t)bias[c];
            for (size_t s = 0; s < p->segments; s++)
                for (size_t k = 0; k < 4 * p->quads; k++)
                    sum += (uint32_t)(segments[s][i * a_step + k] *
                                      (int8_t)w[((s * p->quads + k / 4) * width + c) * 4 + k % 4]);
            if (p->zeros)
                sum -= (uint32_t)zeros[c] * (uint32_t)sums[i];
            const uint8_t *at = y + AROUND + (i * y_step + c) * y_size;
            int32_t got = *at;
            int32_t wanted = ending((int32_t)sum, scales[c], &panel.end) & 255;
            if (p->sums) {
                memcpy(&got, at, sizeof(got));
                wanted = (int32_t)sum;
            }
            cr_assert_eq(got, wanted, "%s: %zu pixels of %zu columns: pixel %zu, column %zu",
                         q8->name, p->pixels, p->columns, i, c);
            memset(y + AROUND + (i * y_step + c) * y_size, GUARD, y_size);
        }
    }
    for (size_t i = 0; i < p->pixels * y_step * y_size + (size_t)2 * AROUND; i++)
        cr_assert_eq(y[i], GUARD, "%s: byte %zu", q8->name, i);
    free(a);
    free(w);
    free(y);
}

Test(q8, products_are_the_same_bits_at_every_level)
{
    for (unsigned level = 0; inf_isa_level(level) != NULL; level++) {
        const struct inf_q8_gemms *q8 = inf_isa_level(level)->q8->gemm;
        printf("%s: %s\n", inf_isa_level(level)->name, q8->name);
        for (size_t pixels = 1; pixels <= q8->rows_max; pixels++) {
            for (size_t vectors = 1; vectors <= INF_Q8_VECTORS_MAX; vectors++) {
                size_t width = vectors * q8->width;
                for (size_t columns = width - q8->width + 1; columns <= width; columns++) {
                    struct product product = {.pixels = pixels,
                                              .vectors = vectors,
                                              .columns = columns,
                                              .segments = 1 + columns % 3,
                                              .quads = 1 + (pixels * 7 + columns) % 30};
                    check_product(q8, &product);
                    product.zeros = true;
                    check_product(q8, &product);
                    product.sums = true;
                    check_product(q8, &product);
                }
            }
        }
    }
}
