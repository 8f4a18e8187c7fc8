// SPDX-License-Identifier: Apache-2.0
// measure_ulp [--step N] [FUNCTION...]
//
// Measures the distance of the cpu device's functions from the exact result, over floats of all
// sizes and both signs: every float, or every N-th by its bits (default 101). Prints one line for
// each function and ISA level: the largest error in units in the last place, and the input that has
// it; and the number of results that are NaN, infinite or finite while the exact result is not.
// Below the smallest normal float, a unit is 2^-149.
//
// The exact result is the result of libm in double. gelu and gelu_tanh lose precision by
// cancellation for x below 0. For them, a second number is printed: the error in units of the
// larger of |y| and 2^-6 |x|. kernels/simd.h guarantees a bound for it.
#include <getopt.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/kernels/isa.h"
#include "proto/core/span.h"

#define BLOCK      4096
#define LEVELS_MAX 8
#define STEP       101

static double exact_sigmoid(double x)
{
    return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}

static double exact_silu(double x)
{
    return x * exact_sigmoid(x);
}

static double exact_gelu(double x)
{
    return 0.5 * x * erfc(-x * sqrt(0.5));
}

static double exact_gelu_tanh(double x)
{
    return x * exact_sigmoid(2 * sqrt(2 / acos(-1.0)) * (x + 0.044715 * x * x * x));
}

static double exact_hard_swish(double x)
{
    return x * fmin(fmax(x + 3, 0), 6) / 6;
}

static double exact_rsqrt(double x)
{
    return 1 / sqrt(x);
}

static double exact_reciprocal(double x)
{
    return 1 / x;
}

static const struct function {
    const char *name;
    double (*exact)(double);
    size_t offset; // offset of the function in struct inf_simd
    bool cancels;  // the function loses precision by cancellation for x below 0
} functions[] = {
    {"exp", exp, offsetof(struct inf_simd, exp), false},
    {"log", log, offsetof(struct inf_simd, log), false},
    {"tanh", tanh, offsetof(struct inf_simd, tanh), false},
    {"sigmoid", exact_sigmoid, offsetof(struct inf_simd, sigmoid), false},
    {"erf", erf, offsetof(struct inf_simd, erf), false},
    {"silu", exact_silu, offsetof(struct inf_simd, silu), false},
    {"gelu", exact_gelu, offsetof(struct inf_simd, gelu), true},
    {"gelu_tanh", exact_gelu_tanh, offsetof(struct inf_simd, gelu_tanh), true},
    {"hard_swish", exact_hard_swish, offsetof(struct inf_simd, hard_swish), false},
    {"rsqrt", exact_rsqrt, offsetof(struct inf_simd, rsqrt), false},
    {"reciprocal", exact_reciprocal, offsetof(struct inf_simd, reciprocal), false},
};

// The largest errors that were found for one function at one ISA level.
struct worst {
    double units, units_at; // largest error in units in the last place of the result
    double scaled;          // largest error in units of the larger of |y| and 2^-6 |x|
    // number of results whose class (NaN, infinite or finite) differs from the exact result's
    uint64_t classes;
    double class_at;
};

static double unit_of(double size)
{
    float nearest = (float)size;
    if (nearest >= 0x1p127f)
        return 0x1p104;
    return (double)nextafterf(nearest, INFINITY) - (double)nearest;
}

static void judge_result(struct worst *worst, float x, float got, double exact)
{
    float rounded = (float)exact;
    if (isnan(got) != isnan(rounded) || isinf(got) != isinf(rounded)) {
        // Within half a unit of the largest float, the result may be infinite or finite, depending
        // on rounding.
        if (isnan(got) || isnan(rounded) || fabs(exact) > 0x1.000002p128 ||
            fabs(exact) < 0x1.fffffcp127) {
            worst->classes++;
            worst->class_at = (double)x;
        }
        return;
    }
    if (!isfinite(got))
        return;
    double off = fabs((double)got - exact);
    double units = off / unit_of(fabs(exact));
    if (units > worst->units) {
        worst->units = units;
        worst->units_at = (double)x;
    }
    worst->scaled =
        fmax(worst->scaled, off / unit_of(fmax(fabs(exact), ldexp(fabs((double)x), -6))));
}

static void measure_function(const struct function *function, uint32_t step)
{
    static float x[BLOCK], y[BLOCK];
    static double exact[BLOCK];
    struct worst worst[LEVELS_MAX] = {0};
    for (uint64_t first = 0; first <= UINT32_MAX; first += (uint64_t)BLOCK * step) {
        size_t count = 0;
        for (uint64_t bits = first; count < BLOCK && bits <= UINT32_MAX; bits += step, count++) {
            uint32_t word = (uint32_t)bits;
            memcpy(&x[count], &word, sizeof(word));
            exact[count] = function->exact((double)x[count]);
        }
        for (unsigned level = 0; level < LEVELS_MAX && inf_isa_level(level) != NULL; level++) {
            const char *table = (const char *)inf_isa_level(level)->simd;
            (*(inf_simd_map_fn *const *)(table + function->offset))(count, x, y);
            for (size_t i = 0; i < count; i++)
                judge_result(&worst[level], x[i], y[i], exact[i]);
        }
    }
    for (unsigned level = 0; level < LEVELS_MAX && inf_isa_level(level) != NULL; level++) {
        const struct worst *w = &worst[level];
        printf("%-10s %-14s %12.3f ulp at %-14.7g", function->name, inf_isa_level(level)->name,
               w->units, w->units_at);
        if (function->cancels)
            printf(" %8.3f scaled", w->scaled);
        if (w->classes > 0)
            printf(" %llu of another class, one at %.7g", (unsigned long long)w->classes,
                   w->class_at);
        putchar('\n');
        fflush(stdout);
    }
}

static bool is_wanted(const char *name, int count, char **names)
{
    for (int i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return count == 0;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"step", required_argument, NULL, 's'}, {0}};
    uint32_t step = STEP;
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        step = option == 's' ? (uint32_t)strtoul(optarg, NULL, 10) : 0;
        if (step == 0) {
            fputs("usage: measure_ulp [--step N] [FUNCTION...]\n", stderr);
            return 2;
        }
    }
    for (size_t i = 0; i < INF_ARRAY_LENGTH(functions); i++)
        if (is_wanted(functions[i].name, argc - optind, argv + optind))
            measure_function(&functions[i], step);
    return 0;
}
