// SPDX-License-Identifier: Apache-2.0
// Products whose weights are pairs of bf16, with operands in fp32 and in bf16, compared with sums
// in double. Runs at every ISA level of this processor that has such products. Every operand ends
// at a guard page, behind the bytes that kernels with tile registers may read.
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/half.h"
#include "backends/cpu/kernels/isa.h"
#include "tests/support/device/fence.h"

#define DEPTH_MAX 50

// Indices of the operands of a call in the array `fences`. Each operand has its own memory that
// ends at an unreadable page.
enum {
    A,
    W,
    BIAS,
    Y,
    OPERANDS
};

static struct fence fences[OPERANDS];

static void drop_operands(void)
{
    for (int i = 0; i < OPERANDS; i++)
        fence_fini(&fences[i]);
}

TestSuite(simd_bf16, .fini = drop_operands);

static uint32_t state = 1;

// Returns a number with 8 bits of precision, which bf16 represents exactly.
static float draw_number(void)
{
    state = state * 1664525u + 1013904223u;
    return (float)((int)(state >> 24) - 128) / 128;
}

struct product {
    size_t pixels, vectors, segments, depth;
    size_t w_slack; // bytes behind the weights that kernels may read
};

// Packs weights[segment][depth][width] in pairs of consecutive depths of a segment. If the depth is
// odd, the second element of the last pair is 0.
static uint32_t *pair_weights(const struct product *p, size_t width, const float *weights)
{
    size_t pairs = (p->depth + 1) / 2;
    uint32_t *to =
        fence_bytes(&fences[W], p->segments * pairs * width * sizeof(*to) + p->w_slack, 0, 0xff);
    memset(to, 0, p->segments * pairs * width * sizeof(*to));
    for (size_t s = 0; s < p->segments; s++)
        for (size_t k = 0; k < p->depth; k++)
            for (size_t c = 0; c < width; c++)
                to[(s * pairs + k / 2) * width + c] |=
                    (uint32_t)inf_bf16_from_float(weights[(s * p->depth + k) * width + c])
                    << k % 2 * 16;
    return to;
}

static void check_product(const struct inf_nn_gemm *nn, const struct product *p)
{
    static float weights[3 * DEPTH_MAX * 32];
    static float plain[3 * INF_GEMM_CALL_ROWS * (DEPTH_MAX + 1)];
    const size_t width = p->vectors * nn->width;
    const size_t a_step = p->depth + 1;
    const size_t a_count = p->segments * p->pixels * a_step - 1;
    for (size_t i = 0; i < p->segments * p->depth * width; i++)
        weights[i] = draw_number();
    const uint32_t *w = pair_weights(p, width, weights);
    float *bias = fence_bytes(&fences[BIAS], width * sizeof(*bias), 0, 0);
    float *y = fence_bytes(&fences[Y], p->pixels * width * sizeof(*y), 0, 0xff);
    // The number between two pixels is a NaN, because kernels must not read it.
    for (size_t i = 0; i < a_count; i++)
        plain[i] = i % a_step == p->depth ? NAN : draw_number();
    size_t size = nn->round != NULL ? sizeof(uint16_t) : sizeof(float);
    // Operands behind the last pixel are NaN, and must not change the results.
    size_t slack = nn->begin != NULL ? INF_TILE_CALL_ROWS * a_step * size : 0;
    void *a = fence_bytes(&fences[A], a_count * size + slack, 0, 0xff);
    if (nn->round != NULL)
        nn->round(a_count, plain, a);
    else
        memcpy(a, plain, a_count * size);
    const float *segments[3];
    const uint16_t *rounded[3];
    for (size_t s = 0; s < p->segments; s++) {
        segments[s] = s == 1 ? NULL : (const float *)a + s * p->pixels * a_step;
        rounded[s] = s == 1 ? NULL : (const uint16_t *)a + s * p->pixels * a_step;
    }
    const struct inf_gemm_panel panel = {.segments = p->segments,
                                         .depth = p->depth,
                                         .w = (const float *)w,
                                         .bias = bias,
                                         .min = -INFINITY,
                                         .max = INFINITY,
                                         .y_step = width,
                                         .columns = width,
                                         .tile_depth = inf_tile_depth(p->depth / 2)};
    const struct inf_gemm gemm = {.a = segments,
                                  .rounded = rounded,
                                  .pixels = p->pixels,
                                  .a_step = a_step,
                                  .prefetch = w,
                                  .y = y};
    if (nn->begin != NULL)
        nn->begin(panel.tile_depth);
    nn->gemm[p->vectors - 1][p->pixels - 1](&panel, &gemm);
    if (nn->end != NULL)
        nn->end();
    for (size_t i = 0; i < p->pixels * width; i++) {
        double sum = 0;
        for (size_t s = 0; s < p->segments; s++)
            for (size_t k = 0; k < p->depth && s != 1; k++)
                sum += (double)plain[(s * p->pixels + i / width) * a_step + k] *
                       (double)weights[(s * p->depth + k) * width + i % width];
        cr_assert_float_eq(y[i], sum, 1e-4, "%zu pixels, depth %zu x %zu: element %zu", p->pixels,
                           p->segments, p->depth, i);
    }
}

static void check_products(const struct inf_nn_gemm *nn)
{
    for (size_t depth = 1; depth <= DEPTH_MAX; depth++) {
        if (nn->begin != NULL && (depth % 2 != 0 || inf_tile_depth(depth / 2) == 0))
            continue;
        size_t slack = nn->begin != NULL ? 64 - nn->width * sizeof(float) : 0;
        for (size_t pixels = 1; pixels <= nn->rows_max; pixels++)
            for (size_t vectors = 1; vectors <= INF_GEMM_PANELS; vectors++)
                check_product(nn, &(struct product){pixels, vectors, 1 + depth % 3, depth, slack});
    }
}

Test(simd_bf16, products_are_sums_of_products)
{
    for (unsigned level = 0; inf_isa_level(level) != NULL; level++) {
        const struct inf_isa *isa = inf_isa_level(level);
        const struct inf_nn_gemm *tables[] = {isa->nn->gemm_bf16, isa->nn->gemm_bf16_half,
                                              isa->nn->gemm_dot,  isa->nn->gemm_dot_half,
                                              isa->nn->gemm_tile, isa->nn->gemm_tile_half};
        for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
            if (tables[i] == NULL)
                continue;
            check_products(tables[i]);
            printf("%s: vectors of %zu, operands in %s%s\n", isa->name, tables[i]->width,
                   tables[i]->round != NULL ? "bf16" : "fp32",
                   tables[i]->begin != NULL ? ", tile registers" : "");
        }
    }
}

static void check_rounding(const struct inf_nn_gemm *nn)
{
    static const uint32_t bits[] = {0x00000000, 0x80000000, 0x3f800000, 0x3f808000, 0x3f818000,
                                    0x3f808001, 0xbf80ffff, 0x7f7fffff, 0x7f800000, 0xff800000,
                                    0x7fc00000, 0x00800000, 0x42f6e979, 0xc2f6e979};
    const size_t kinds = sizeof bits / sizeof *bits;
    for (size_t count = 1; count <= 50; count++) {
        uint32_t *x = fence_bytes(&fences[A], count * sizeof(*x), 0, 0);
        uint16_t *y = fence_bytes(&fences[Y], count * sizeof(*y), 0, 0xff);
        for (size_t i = 0; i < count; i++)
            x[i] = bits[(i + count) % kinds];
        nn->round(count, (const float *)x, y);
        for (size_t i = 0; i < count; i++) {
            float value;
            memcpy(&value, &x[i], sizeof value);
            cr_assert_eq(y[i], inf_bf16_from_float(value), "%08x is %04x", x[i], y[i]);
        }
    }
}

Test(simd_bf16, operands_are_rounded_to_the_nearest)
{
    for (unsigned level = 0; inf_isa_level(level) != NULL; level++) {
        const struct inf_nn *nn = inf_isa_level(level)->nn;
        if (nn->gemm_dot != NULL)
            check_rounding(nn->gemm_dot);
        if (nn->gemm_dot_half != NULL)
            check_rounding(nn->gemm_dot_half);
        if (nn->gemm_tile != NULL)
            check_rounding(nn->gemm_tile);
        if (nn->gemm_tile_half != NULL)
            check_rounding(nn->gemm_tile_half);
    }
}
