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

static double silu(double x)
{
    return x / (1 + exp(-x));
}

static double gelu(double x)
{
    return x / 2 * erfc(-x / sqrt(2.0));
}

static double gelu_tanh(double x)
{
    return x / (1 + exp(-2 * sqrt(2 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

// Where results are far less than x, units of 2^-6 |x| count.
static void check_function(const struct inf_simd *simd, inf_simd_map_fn *function,
                           double (*exact)(double), float low, float high, double units)
{
    enum {
        COUNT = 20011
    };
    static float x[COUNT], y[COUNT];
    for (int i = 0; i < COUNT; i++)
        x[i] = low + (high - low) * (float)i / COUNT;
    function(COUNT, x, y);
    for (int i = 0; i < COUNT; i++) {
        double wanted = exact((double)x[i]);
        float scale = fabsf((float)wanted);
        if (exact == gelu || exact == gelu_tanh)
            scale = fmaxf(scale, ldexpf(fabsf(x[i]), -6));
        double unit = (double)nextafterf(scale, INFINITY) - (double)scale;
        cr_assert_leq(fabs((double)y[i] - wanted), units * unit, "%s: f(%a) = %a, not %a",
                      simd->name, (double)x[i], (double)y[i], wanted);
    }
}

static void check_functions(const struct inf_simd *simd)
{
    check_function(simd, simd->exp, exp, -87, 88.5f, 4);
    check_function(simd, simd->exp, exp, -1e-3f, 1e-3f, 4);
    check_function(simd, simd->log, log, 1e-6f, 3, 4);
    check_function(simd, simd->log, log, 1, 1e9f, 4);
    check_function(simd, simd->erf, erf, -5, 5, 4);
    check_function(simd, simd->erf, erf, -1e-3f, 1e-3f, 4);
    check_function(simd, simd->silu, silu, -20, 20, 6);
    check_function(simd, simd->gelu, gelu, -9, 9, 16);
    check_function(simd, simd->gelu_tanh, gelu_tanh, -9, 9, 16);
    const float odd[7] = {NAN, INFINITY, -INFINITY, 0.0f, -1.0f, 1e-40f, 1e30f};
    float y[7];
    simd->exp(7, odd, y);
    cr_assert(isnan(y[0]) && y[1] == INFINITY && y[2] == 0 && y[3] == 1 && y[6] == INFINITY);
    simd->log(7, odd, y);
    cr_assert(isnan(y[0]) && y[1] == INFINITY && isnan(y[2]) && y[3] == -INFINITY && isnan(y[4]));
    cr_assert_float_eq(y[5], -92.103404f, 1e-4f);
    simd->erf(7, odd, y);
    cr_assert(isnan(y[0]) && y[1] == 1 && y[2] == -1 && y[3] == 0 && y[6] == 1);
    simd->gelu(7, odd, y);
    cr_assert(isnan(y[0]) && y[1] == INFINITY && y[3] == 0 && y[6] == 1e30f);
}

Test(simd, functions_are_within_the_stated_units)
{
    cr_assert_eq(inf_xnn_init(NULL), INF_OK);
    check_functions(&inf_simd_baseline);
    check_functions(inf_simd_best());
}

Test(simd, sums_and_extremes_of_neighbours)
{
    cr_assert_eq(inf_xnn_init(NULL), INF_OK);
    const struct inf_simd *tables[] = {&inf_simd_baseline, inf_simd_best()};
    for (int t = 0; t < 2; t++) {
        float x[5000];
        for (size_t count = 1; count <= 5000; count += 1 + count / 3) {
            for (size_t i = 0; i < count; i++)
                x[i] = (float)(i * 7919 % 1001);
            double sum = 0;
            float most = 0;
            for (size_t i = 0; i < count; i++) {
                sum += (double)x[i];
                most = fmaxf(most, x[i]);
            }
            cr_assert_float_eq(tables[t]->sum(count, x), sum, 1e-6 * sum);
            cr_assert_eq(tables[t]->max(count, x), most);
            cr_assert_eq(tables[t]->min(count, x), 0.0f);
            x[count / 2] = NAN;
            cr_assert(isnan(tables[t]->max(count, x)) && isnan(tables[t]->min(count, x)));
        }
    }
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

Test(simd, mix_goes_from_one_to_the_other)
{
    enum {
        MOST = 70
    };
    for (size_t count = 1; count <= MOST; count++) {
        float a[MOST], b[MOST], y[MOST + 1];
        float weight = (float)count / MOST;
        for (size_t i = 0; i < count; i++) {
            a[i] = (float)i - 7.25f;
            b[i] = (float)(i * i) * 0.125f;
        }
        y[count] = 5;
        inf_simd_best()->mix(count, a, b, weight, y);
        for (size_t i = 0; i < count; i++) {
            double wanted = (double)a[i] + ((double)b[i] - (double)a[i]) * (double)weight;
            cr_assert_float_eq((double)y[i], wanted, 2e-7 * (fabs((double)a[i]) + fabs(wanted) + 1),
                               "%zu of %zu", i, count);
        }
        cr_assert_eq(y[count], 5.0f);
    }
}
