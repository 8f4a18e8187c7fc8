// SPDX-License-Identifier: Apache-2.0
// The loops that find the largest or smallest elements, at every ISA level of this processor,
// compared with a scalar search. Operands end at a guard page, so that a read beyond them crashes.
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "backends/cpu/kernels/isa.h"
#include "tests/support/device/fence.h"

static struct fence fences[2];

static void drop_operands(void)
{
    fence_fini(&fences[0]);
    fence_fini(&fences[1]);
}

TestSuite(pick, .fini = drop_operands);

static const size_t lengths[] = {1, 2, 3, 7, 31, 63, 64, 65, 127, 128, 129, 200, 256};

#define LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

static uint32_t state = 1;

// Returns one of few different numbers, so that many elements are equal, or sometimes a NaN.
static float draw_number(void)
{
    static const float some[] = {0.0f,     -0.0f,     1.5f, -1.5f, 3e38f, -3e38f, 1e-42f, -1e-42f,
                                 INFINITY, -INFINITY, NAN,  2.0f,  2.0f,  -7.0f,  1.25f,  0.5f};
    state = state * 1664525u + 1013904223u;
    return some[state >> 28];
}

static size_t first_extreme(const float *x, size_t rows, size_t stride, int extreme)
{
    size_t best = 0;
    for (size_t i = 1; i < rows; i++)
        if (extreme == INF_PICK_MAX ? x[i * stride] > x[best * stride]
                                    : x[i * stride] < x[best * stride])
            best = i;
    return best;
}

static void check_floats(const struct inf_isa *isa, size_t count, int extreme)
{
    float *x = fence_bytes(&fences[0], count * 5 * sizeof(*x), 0, 0);
    int32_t index[INF_PICK_COLUMNS];
    for (size_t i = 0; i < 5 * count; i++)
        x[i] = draw_number();
    float *end = x + 4 * count;
    cr_assert_eq(isa->pick->line[extreme][INF_DTYPE_F32](count, end),
                 first_extreme(end, count, 1, extreme), "%s: %zu", isa->name, count);
    isa->pick->rows[extreme][INF_DTYPE_F32](count, x, 5, count, index);
    for (size_t i = 0; i < count; i++)
        cr_assert_eq((size_t)index[i], first_extreme(x + i, 5, count, extreme), "%s: column %zu",
                     isa->name, i);
}

Test(pick, finds_the_first_of_equal_extremes_and_skips_nan)
{
    for (unsigned level = 0; inf_isa_level(level) != NULL; level++)
        for (int round = 0; round < 20; round++)
            for (size_t i = 0; i < LENGTHS; i++)
                for (int extreme = 0; extreme < INF_PICK_EXTREME_COUNT; extreme++)
                    check_floats(inf_isa_level(level), lengths[i], extreme);
}

Test(pick, distinguishes_signed_and_unsigned_integers)
{
    static const enum inf_dtype types[] = {INF_DTYPE_U8,  INF_DTYPE_U16, INF_DTYPE_U32,
                                           INF_DTYPE_U64, INF_DTYPE_I8,  INF_DTYPE_I16,
                                           INF_DTYPE_I32, INF_DTYPE_I64};
    static const size_t sizes[] = {1, 2, 4, 8, 1, 2, 4, 8};
    for (unsigned level = 0; inf_isa_level(level) != NULL; level++) {
        const struct inf_pick *loops = inf_isa_level(level)->pick;
        for (size_t i = 0; i < 8; i++) {
            // Element 65 has only its highest bit set, element 66 is 0, and all other elements are
            // 1.
            unsigned char x[8 * 100] = {0};
            for (size_t k = 0; k < 100; k++)
                x[k * sizes[i]] = 1;
            x[65 * sizes[i]] = x[66 * sizes[i]] = 0;
            x[66 * sizes[i] - 1] = 0x80;
            cr_assert_eq(loops->line[INF_PICK_MAX][types[i]](100, x), i < 4 ? 65u : 0u);
            cr_assert_eq(loops->line[INF_PICK_MIN][types[i]](100, x), i < 4 ? 66u : 65u);
        }
    }
}

// Returns true if a is ordered before b. NaN is ordered last.
static bool is_before(float a, float b, int extreme)
{
    if (isnan(a) || isnan(b))
        return !isnan(a) && isnan(b);
    return extreme == INF_PICK_MAX ? a > b : a < b;
}

Test(pick, keys_have_the_order_of_floats)
{
    enum {
        COUNT = 67
    };
    float *x = fence_bytes(&fences[0], COUNT * sizeof(*x), 0, 0);
    for (unsigned level = 0; inf_isa_level(level) != NULL; level++) {
        for (int extreme = 0; extreme < INF_PICK_EXTREME_COUNT; extreme++) {
            uint32_t *keys = fence_bytes(&fences[1], COUNT * sizeof(*keys), 0, 0);
            uint32_t largest = 0;
            for (size_t i = 0; i < COUNT; i++)
                x[i] = draw_number();
            inf_isa_level(level)->pick->keys[extreme][INF_DTYPE_F32](COUNT, x, keys);
            for (size_t i = 0; i < COUNT; i++) {
                largest = keys[i] > largest ? keys[i] : largest;
                for (size_t k = 0; k < COUNT; k++)
                    cr_assert_eq(keys[i] > keys[k], is_before(x[i], x[k], extreme), "%s: %g and %g",
                                 inf_isa_level(level)->name, (double)x[i], (double)x[k]);
            }
            cr_assert_eq(inf_isa_level(level)->pick->largest_key(COUNT, keys), largest);
        }
    }
}

Test(pick, keys_have_the_order_of_integers)
{
    const int32_t x[5] = {INT32_MIN, -1, 0, 1, INT32_MAX};
    for (unsigned level = 0; inf_isa_level(level) != NULL; level++) {
        uint32_t up[5];
        uint32_t down[5];
        inf_isa_level(level)->pick->keys[INF_PICK_MAX][INF_DTYPE_I32](5, x, up);
        inf_isa_level(level)->pick->keys[INF_PICK_MIN][INF_DTYPE_I32](5, x, down);
        for (int i = 1; i < 5; i++)
            cr_assert(up[i] > up[i - 1] && down[i] < down[i - 1]);
    }
}
