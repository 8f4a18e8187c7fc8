// SPDX-License-Identifier: Apache-2.0
// The vector functions of each ISA level, compared with double precision: error in ulps, special
// values, sums and extremes. Also checks that no function accesses memory beyond its operands.
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/kernels/isa.h"
#include "tests/support/device/fence.h"

// Returns the distance between `got` and `exact` in units in the last place (ulps) of `exact` as a
// float.
static double distance_ulps(float got, double exact)
{
    float nearest = (float)exact;
    double unit = (double)nextafterf(fabsf(nearest), INFINITY) - (double)fabsf(nearest);
    return fabs((double)got - exact) / unit;
}

static const struct inf_isa *isa; // the ISA level under test

static void check_table(const struct inf_simd *simd)
{
    float x[257];
    float y[257];
    for (int round = 0; round < 400; round++) {
        for (int i = 0; i < 257; i++)
            x[i] = ldexpf((float)(round * 257 + i - 51400) / 51400, round % 12 - 6);
        simd->tanh(257, x, y);
        for (int i = 0; i < 257; i++)
            cr_assert_leq(distance_ulps(y[i], tanh((double)x[i])), 4.0, "%s tanh(%a) = %a",
                          isa->name, (double)x[i], (double)y[i]);
        simd->sigmoid(257, x, y);
        for (int i = 0; i < 257; i++)
            cr_assert_leq(distance_ulps(y[i], 1 / (1 + exp(-(double)x[i]))), 4.0,
                          "%s sigmoid(%a) = %a", isa->name, (double)x[i], (double)y[i]);
    }
    const float far[6] = {1e30f, -1e30f, 88, -120, 1e-30f, -0.0f};
    const float tanh_far[6] = {1, -1, 1, -1, 1e-30f, -0.0f};
    const float sigmoid_far[6] = {1, 0, 1, 0, 0.5f, 0.5f};
    simd->tanh(6, far, y);
    cr_assert_eq(memcmp(y, tanh_far, sizeof tanh_far), 0, "%s", isa->name);
    simd->sigmoid(6, far, y);
    cr_assert_eq(memcmp(y, sigmoid_far, sizeof sigmoid_far), 0, "%s", isa->name);
}

Test(simd, tanh_and_sigmoid_are_within_four_units)
{
    for (unsigned level = 0; (isa = inf_isa_level(level)) != NULL; level++)
        check_table(isa->simd);
}

static double exact_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double exact_silu(double x)
{
    return x / (1 + exp(-x));
}

static double exact_gelu(double x)
{
    return x / 2 * erfc(-x / sqrt(2.0));
}

static double gelu_tanh(double x)
{
    return x / (1 + exp(-2 * sqrt(2 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

// Asserts that every error is at most `units` ulps. For gelu, an ulp is at least an ulp of x / 64.
static void check_function(inf_simd_map_fn *function, double (*exact)(double), float low,
                           float high, double units)
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
        if (exact == exact_gelu || exact == gelu_tanh)
            scale = fmaxf(scale, ldexpf(fabsf(x[i]), -6));
        double unit = (double)nextafterf(scale, INFINITY) - (double)scale;
        cr_assert_leq(fabs((double)y[i] - wanted), units * unit, "%s: f(%a) = %a, not %a",
                      isa->name, (double)x[i], (double)y[i], wanted);
    }
}

static void check_functions(const struct inf_simd *simd)
{
    check_function(simd->exp, exp, -87, 88.5f, 4);
    check_function(simd->exp, exp, -1e-3f, 1e-3f, 4);
    check_function(simd->log, log, 1e-6f, 3, 4);
    check_function(simd->log, log, 1, 1e9f, 4);
    check_function(simd->erf, erf, -5, 5, 4);
    check_function(simd->erf, erf, -1e-3f, 1e-3f, 4);
    // The range includes results below the smallest normal float.
    check_function(simd->exp, exp, -103.9f, -80, 4);
    check_function(simd->sigmoid, exact_sigmoid, -103.9f, -80, 4);
    check_function(simd->silu, exact_silu, -108.5f, -80, 6);
    check_function(simd->silu, exact_silu, -20, 20, 6);
    check_function(simd->gelu, exact_gelu, -9, 9, 16);
    check_function(simd->gelu_tanh, gelu_tanh, -9, 9, 16);
    check_function(simd->sin, sin, -3000, 3000, 1);
    check_function(simd->cos, cos, -3000, 3000, 1);
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
    const float far[7] = {-9, -10.5f, -12, -15.9f, -FLT_MAX, 17, FLT_MAX};
    simd->gelu(7, far, y);
    for (int i = 0; i < 5; i++)
        cr_assert(y[i] <= 0 && y[i] > -1e-17f, "%s: gelu(%a) = %a", isa->name, (double)far[i],
                  (double)y[i]);
    cr_assert(y[3] == 0 && y[4] == 0 && y[5] == 17 && y[6] == FLT_MAX);
    const float large[3] = {FLT_MAX, -FLT_MAX, 3e38f};
    simd->hard_swish(3, large, y);
    cr_assert(y[0] == FLT_MAX && y[1] == 0 && y[2] == 3e38f);
    simd->silu(3, large, y);
    cr_assert(y[0] == FLT_MAX && y[1] == 0 && y[2] == 3e38f);
}

Test(simd, functions_are_within_the_stated_units)
{
    for (unsigned level = 0; (isa = inf_isa_level(level)) != NULL; level++)
        check_functions(isa->simd);
}

// Asserts that all three forms of pow give `wanted`, or NaN if `wanted` is NaN.
static void check_pow(const struct inf_simd *simd, float base, float power, float wanted)
{
    float a[19], b[19], y[19];
    for (int i = 0; i < 19; i++) {
        a[i] = base;
        b[i] = power;
    }
    for (int form = 0; form < INF_SIMD_FORM_COUNT; form++) {
        simd->binary[INF_SIMD_POW][form](19, a, b, y, -INFINITY, INFINITY);
        for (int i = 0; i < 19; i++)
            cr_assert(isnan(wanted) ? isnan(y[i]) : y[i] == wanted, "%s, form %d: %a^%a is %a",
                      isa->name, form, (double)base, (double)power, (double)y[i]);
    }
    simd->binary[INF_SIMD_POW][INF_SIMD_B_SCALAR](19, a, b, y, -1, 1);
    cr_assert(isnan(wanted) || y[18] == fminf(fmaxf(wanted, -1), 1));
}

Test(simd, powers_are_those_of_libm)
{
    for (unsigned level = 0; (isa = inf_isa_level(level)) != NULL; level++) {
        check_pow(isa->simd, -3, 2, 9);
        check_pow(isa->simd, -3, 3, -27);
        check_pow(isa->simd, -INFINITY, 3, -INFINITY);
        check_pow(isa->simd, 1e30f, 2, INFINITY);
        check_pow(isa->simd, 2.25f, 0.5f, 1.5f);
        check_pow(isa->simd, 2, -3, 0.125f);
        check_pow(isa->simd, -8, 1.0f / 3, NAN);
        check_pow(isa->simd, NAN, 0, 1);
        check_pow(isa->simd, NAN, 3, NAN);
        check_pow(isa->simd, 0, -1, INFINITY);
    }
}

Test(simd, sums_and_extremes_of_neighbours)
{
    for (unsigned level = 0; (isa = inf_isa_level(level)) != NULL; level++) {
        const struct inf_simd *simd = isa->simd;
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
            cr_assert_float_eq(simd->sum(count, x), sum, 1e-6 * sum);
            cr_assert_eq(simd->max(count, x), most);
            cr_assert_eq(simd->min(count, x), 0.0f);
            x[count / 2] = NAN;
            cr_assert(isnan(simd->max(count, x)) && isnan(simd->min(count, x)));
        }
    }
}

#define COUNT_MAX 75

Test(simd, one_nan_makes_extremes_and_sums_of_powers_nan)
{
    float x[COUNT_MAX], y[COUNT_MAX];
    for (unsigned level = 0; (isa = inf_isa_level(level)) != NULL; level++)
        for (size_t count = 1; count <= COUNT_MAX; count++)
            for (size_t at = 0; at < count; at++) {
                for (size_t i = 0; i < count; i++)
                    x[i] = i == at ? NAN : -(float)i;
                cr_assert(isnan(isa->simd->max(count, x)), "%s: %zu of %zu", isa->name, at, count);
                cr_assert(isnan(isa->simd->min(count, x)), "%s: %zu of %zu", isa->name, at, count);
                cr_assert(isnan(isa->simd->powers(count, x, 0, y)), "%s: %zu of %zu", isa->name, at,
                          count);
                x[at] = 1;
                cr_assert_eq(isa->simd->max(count, x), 1.0f, "%s: %zu of %zu", isa->name, at,
                             count);
            }
}

Test(simd, dots_are_sums_of_products)
{
    float a[COUNT_MAX], b[5 * COUNT_MAX], y[6];
    for (unsigned level = 0; (isa = inf_isa_level(level)) != NULL; level++)
        for (size_t depth = 1; depth <= COUNT_MAX; depth++) {
            double sums[5] = {0};
            for (size_t k = 0; k < depth; k++) {
                a[k] = (float)(k * 7 % 11) - 5;
                for (size_t c = 0; c < 5; c++) {
                    b[c * depth + k] = (float)(k * 5 % 13 + c) - 6;
                    sums[c] += (double)a[k] * (double)b[c * depth + k];
                }
            }
            y[5] = 77;
            isa->simd->dots(depth, a, 5, b, y);
            for (size_t c = 0; c < 5; c++)
                cr_assert_eq((double)y[c], sums[c], "%s: %zu", isa->name, depth);
            cr_assert_eq(y[5], 77.0f);
            a[depth - 1] = INFINITY;
            b[0] = 0;
            b[depth - 1] = 0;
            isa->simd->dots(depth, a, 1, b, y);
            cr_assert(isnan(y[0]));
        }
}

Test(simd, powers_are_summed)
{
    for (unsigned level = 0; (isa = inf_isa_level(level)) != NULL; level++) {
        static float x[3001], y[3001];
        for (int i = 0; i < 3001; i++)
            x[i] = -(float)i / 31;
        double sum = 0;
        float total = isa->simd->powers(3001, x, 0, y);
        for (int i = 0; i < 3001; i++) {
            double wanted = x[i] < -87 ? 0 : exp((double)x[i]);
            sum += wanted;
            cr_assert(distance_ulps(y[i], wanted) <= 4.0, "%s: e^%a = %a", isa->name, (double)x[i],
                      (double)y[i]);
        }
        cr_assert_float_eq(total, sum, 1e-5);
        float odd[5] = {0, -INFINITY, -1e30f, NAN, -1};
        cr_assert(isnan(isa->simd->powers(5, odd, 0, odd)));
        cr_assert(odd[0] == 1 && odd[1] == 0 && odd[2] == 0 && isnan(odd[3]));
        float least[2] = {-INFINITY, -INFINITY};
        cr_assert(isnan(isa->simd->powers(2, least, -INFINITY, least)));
    }
}

// Calls all functions on arrays that end at a guard page, so that an access beyond the arrays
// crashes.
static void touch_all(const struct inf_simd *simd, size_t count, float *a, float *y)
{
    inf_simd_map_fn *const maps[] = {simd->tanh,      simd->sigmoid,   simd->hard_swish, simd->exp,
                                     simd->log,       simd->erf,       simd->silu,       simd->gelu,
                                     simd->rsqrt,     simd->gelu_tanh, simd->sin,        simd->cos,
                                     simd->reciprocal};
    for (size_t i = 0; i < count; i++)
        a[i] = (float)i - 35;
    for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++)
        maps[i](count, a, y);
    // y[0] is the result of the last function in `maps`: 1 / x, where x = -35
    cr_assert(count == 36 || isfinite(y[0]));
    double powers = 0;
    for (size_t i = 0; i < count; i++)
        powers += exp((double)i - (double)count + 1);
    cr_assert_float_eq(simd->powers(count, a, (float)count - 36, y), powers, 1e-6);
    cr_assert_eq(y[count - 1], 1.0f);
    y[-1] = 1234;
    simd->clamp(count, a, y, -3, 5);
    for (size_t i = 0; i < count; i++)
        cr_assert_eq(y[i], fminf(fmaxf(a[i], -3), 5));
    for (int op = 0; op < INF_SIMD_BINARY_COUNT; op++)
        for (int form = 0; form < INF_SIMD_FORM_COUNT; form++)
            simd->binary[op][form](count, a, a, y, -INFINITY, INFINITY);
    simd->binary[INF_SIMD_SUB][INF_SIMD_BOTH](count, a, a, y, -INFINITY, INFINITY);
    for (size_t i = 0; i < count; i++)
        cr_assert_eq(y[i], 0.0f);
    simd->binary[INF_SIMD_SUB][INF_SIMD_A_SCALAR](count, a, a, y, -INFINITY, INFINITY);
    for (size_t i = 0; i < count; i++)
        cr_assert_eq(y[i], -35 - a[i]);
    cr_assert_eq(y[-1], 1234.0f);
    float middle = ((float)count - 1) / 2 - 35;
    cr_assert_float_eq(simd->sum(count, a), middle * (float)count, 1e-3);
    cr_assert_eq(simd->max(count, a), (float)count - 36);
    cr_assert_eq(simd->min(count, a), -35.0f);
    simd->dots(count, a, 1, a, y);
    double squares = 0;
    for (size_t i = 0; i < count; i++)
        squares += (double)a[i] * (double)a[i];
    cr_assert_float_eq(y[0], squares, 1e-2);
    simd->sum_rows(count, a, 1, count, 0.5f, y);
    for (size_t i = 0; i < count; i++)
        cr_assert_eq(y[i], 2 * a[i]);
}

Test(simd, loops_access_only_their_operands)
{
    struct fence fences[2] = {0};
    float *a = fence_bytes(&fences[0], COUNT_MAX * sizeof(*a), 0, 0);
    float *y = fence_bytes(&fences[1], COUNT_MAX * sizeof(*y), sizeof(*y), 0);
    for (unsigned level = 0; (isa = inf_isa_level(level)) != NULL; level++) {
        printf("%s: loops of 1 to %d elements, nothing behind them\n", isa->name, COUNT_MAX);
        for (size_t count = 1; count <= COUNT_MAX; count++)
            touch_all(isa->simd, count, a + COUNT_MAX - count, y + COUNT_MAX - count);
    }
    fence_fini(&fences[0]);
    fence_fini(&fences[1]);
}

Test(simd, sums_of_many_rows_keep_their_precision)
{
    enum {
        ROWS = 100000,
        CHANNELS = 67
    };
    float *x = malloc(sizeof(float) * ROWS * CHANNELS);
    float y[CHANNELS];
    for (size_t i = 0; i < (size_t)ROWS * CHANNELS; i++)
        x[i] = 0.1f;
    for (unsigned level = 0; (isa = inf_isa_level(level)) != NULL; level++) {
        isa->simd->sum_rows(CHANNELS, x, ROWS, CHANNELS, ROWS, y);
        // If the mean were computed with a single running sum in f32, it would be wrong by 0.00001.
        for (size_t i = 0; i < CHANNELS; i++)
            cr_assert_float_eq(y[i], 0.1f, 5e-7f, "%s: %zu: %.9g", isa->name, i, (double)y[i]);
    }
    free(x);
}

static void check_mix(void)
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
        isa->simd->mix(count, a, b, weight, y);
        for (size_t i = 0; i < count; i++) {
            double wanted = (double)a[i] + ((double)b[i] - (double)a[i]) * (double)weight;
            cr_assert_float_eq((double)y[i], wanted, 2e-7 * (fabs((double)a[i]) + fabs(wanted) + 1),
                               "%s: %zu of %zu", isa->name, i, count);
        }
        cr_assert_eq(y[count], 5.0f);
    }
}

Test(simd, mix_goes_from_one_to_the_other)
{
    for (unsigned level = 0; (isa = inf_isa_level(level)) != NULL; level++)
        check_mix();
}
