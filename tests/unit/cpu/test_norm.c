// SPDX-License-Identifier: Apache-2.0
// The normalisation loops at every ISA level of this processor, compared with the same computation
// in double. Operands end at a guard page, so that a read beyond them crashes.
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>

#include "backends/cpu/kernels/isa.h"
#include "tests/support/device/fence.h"

#define ROWS 7

static struct fence fences[3];

static void drop_operands(void)
{
    for (int i = 0; i < 3; i++)
        fence_fini(&fences[i]);
}

TestSuite(norm, .fini = drop_operands);

static const size_t lengths[] = {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64};

#define LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

static uint32_t state = 1;

// Makes values with a large mean. Precision is lost unless the mean is subtracted first.
static float *make_numbers(int operand, size_t count)
{
    float *x = fence_bytes(&fences[operand], count * sizeof(*x), 0, 0);
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = 1000.0f + (float)(state >> 8) / 4194304.0f;
    }
    return x;
}

static struct inf_norm_moments moments_of(const float *x, size_t count, size_t stride, float about)
{
    struct inf_norm_moments sum = {0, 0};
    for (size_t i = 0; i < count; i++) {
        double distance = (double)x[i * stride] - (double)about;
        sum.first += distance;
        sum.second += distance * distance;
    }
    return sum;
}

static void check_moments(const struct inf_isa *isa, struct inf_norm_moments got,
                          struct inf_norm_moments wanted)
{
    cr_assert_float_eq(got.first, wanted.first, 1e-11, "%s", isa->name);
    cr_assert_float_eq(got.second, wanted.second, 1e-11, "%s", isa->name);
}

static void check_length(const struct inf_isa *isa, size_t count)
{
    float *x = make_numbers(0, count * ROWS);
    float *line = x + count * (ROWS - 1);
    float *y = make_numbers(1, count);
    float *about = make_numbers(2, count);
    struct inf_norm_moments moments[INF_NORM_COLUMNS];
    check_moments(isa, isa->norm->line(count, line, 1001.5f), moments_of(line, count, 1, 1001.5f));
    isa->norm->rows(count, x, ROWS, count, about, moments);
    for (size_t i = 0; i < count; i++)
        check_moments(isa, moments[i], moments_of(x + i, ROWS, count, about[i]));
    isa->norm->apply_line(count, line, 1001.0f, 0.25f, 3.0f, y);
    for (size_t i = 0; i < count; i++)
        cr_assert_float_eq((double)y[i], ((double)line[i] - 1001.25) * 3, 1e-5, "%s", isa->name);
    isa->norm->apply_row(count, line, about, about, about, y);
    for (size_t i = 0; i < count; i++)
        cr_assert_float_eq((double)y[i],
                           ((double)line[i] - 2 * (double)about[i]) * (double)about[i], 0.5, "%s",
                           isa->name);
}

Test(norm, sums_differences_and_applies_them)
{
    for (unsigned level = 0; inf_isa_level(level) != NULL; level++)
        for (int round = 0; round < 10; round++)
            for (size_t i = 0; i < LENGTHS; i++)
                check_length(inf_isa_level(level), lengths[i]);
}

Test(norm, keeps_nan)
{
    const float x[20] = {[3] = NAN, [17] = 1};
    float y[20];
    for (unsigned level = 0; inf_isa_level(level) != NULL; level++) {
        const struct inf_norm *loops = inf_isa_level(level)->norm;
        cr_assert(isnan(loops->line(20, x, 0).second));
        cr_assert_eq(loops->line(2, x, 0).second, 0.0);
        loops->apply_line(20, x, 0, 0, 1, y);
        cr_assert(isnan(y[3]) && y[17] == 1.0f);
    }
}
