// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/kernels/simd.h"
#include "backends/cpu/xnn.h"

// Distance in units in the last place of `exact`.
static double ulps(float got, double exact)
{
    float nearest = (float)exact;
    double unit = (double)nextafterf(fabsf(nearest), INFINITY) - (double)fabsf(nearest);
    return fabs((double)got - exact) / unit;
}

static void check_table(const struct inf_simd *simd)
{
    float x[257];
    float y[257];
    for (int round = 0; round < 400; round++) {
        for (int i = 0; i < 257; i++)
            x[i] = ldexpf((float)(round * 257 + i - 51400) / 51400, round % 12 - 6);
        simd->tanh(257, x, y);
        for (int i = 0; i < 257; i++)
            cr_assert_leq(ulps(y[i], tanh((double)x[i])), 4.0, "%s tanh(%a) = %a", simd->name,
                          (double)x[i], (double)y[i]);
        simd->sigmoid(257, x, y);
        for (int i = 0; i < 257; i++)
            cr_assert_leq(ulps(y[i], 1 / (1 + exp(-(double)x[i]))), 4.0, "%s sigmoid(%a) = %a",
                          simd->name, (double)x[i], (double)y[i]);
    }
    const float far[6] = {1e30f, -1e30f, 88, -88, 1e-30f, -0.0f};
    const float tanh_far[6] = {1, -1, 1, -1, 1e-30f, -0.0f};
    const float sigmoid_far[6] = {1, 0, 1, 0, 0.5f, 0.5f};
    simd->tanh(6, far, y);
    cr_assert_eq(memcmp(y, tanh_far, sizeof tanh_far), 0, "%s", simd->name);
    simd->sigmoid(6, far, y);
    cr_assert_eq(memcmp(y, sigmoid_far, sizeof sigmoid_far), 0, "%s", simd->name);
}

Test(simd, tanh_and_sigmoid_are_within_four_units)
{
    cr_assert_eq(inf_xnn_init(NULL), INF_OK);
    check_table(&inf_simd_baseline);
    check_table(inf_simd_best());
}

Test(simd, loops_touch_exactly_what_they_are_told)
{
    cr_assert_eq(inf_xnn_init(NULL), INF_OK);
    const struct inf_simd *simd = inf_simd_best();
    for (size_t count = 0; count < 70; count++) {
        float a[72];
        float y[72];
        for (size_t i = 0; i < 72; i++) {
            a[i] = (float)i - 35;
            y[i] = 1234;
        }
        simd->clamp(count, a, y + 1, -3, 5);
        cr_assert_eq(y[0], 1234.0f);
        cr_assert_eq(y[count + 1], 1234.0f);
        for (size_t i = 0; i < count; i++)
            cr_assert_eq(y[i + 1], fminf(fmaxf(a[i], -3), 5));
        simd->binary[INF_SIMD_SUB][INF_SIMD_A_SCALAR](count, a, a, y, -INFINITY, INFINITY);
        for (size_t i = 0; i < count; i++)
            cr_assert_eq(y[i], -35 - a[i]);
    }
}

Test(simd, sums_of_many_rows_keep_their_digits)
{
    cr_assert_eq(inf_xnn_init(NULL), INF_OK);
    enum {
        ROWS = 100000,
        CHANNELS = 67
    };
    float *x = malloc(sizeof(float) * ROWS * CHANNELS);
    float y[CHANNELS];
    for (size_t i = 0; i < (size_t)ROWS * CHANNELS; i++)
        x[i] = 0.1f;
    inf_simd_best()->sum_rows(CHANNELS, x, ROWS, CHANNELS, 1.0f / ROWS, y);
    // One running sum in f32 comes out at 0.1000 + 0.00001.
    for (size_t i = 0; i < CHANNELS; i++)
        cr_assert_float_eq(y[i], 0.1f, 5e-7f, "%zu: %.9g", i, (double)y[i]);
    free(x);
}
