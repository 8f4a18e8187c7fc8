// SPDX-License-Identifier: Apache-2.0
// The loops of recurrent networks, at every ISA level of this processor, compared with the same
// computation in double. Operands end at a guard page, so that a read beyond them crashes.
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>

#include "backends/cpu/kernels/isa.h"
#include "tests/support/device/fence.h"

enum {
    A,
    B,
    C,
    Y,
    OPERANDS
};

static struct fence fences[OPERANDS];

static void drop_operands(void)
{
    for (int i = 0; i < OPERANDS; i++)
        fence_fini(&fences[i]);
}

TestSuite(rnn, .fini = drop_operands);

static const size_t lengths[] = {1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33, 64, 100};

#define LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

static uint32_t state = 1;

static float *make_numbers(int operand, size_t count)
{
    static const float extremes[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1e-42f, 3e38f, -3e38f};
    float *x = fence_bytes(&fences[operand], count * sizeof(*x), 0, 0);
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(state >> 8) / 4194304.0f - 2.0f;
        if (state >> 28 == 0)
            x[i] = extremes[state >> 8 & 7];
    }
    return x;
}

static void check_element(const struct inf_isa *isa, size_t i, float got, double wanted,
                          double least)
{
    double single = (double)(float)wanted;
    bool same = isnan(wanted) ? isnan(got)
                : isinf(single)
                    ? fabs(wanted) > 3.3e38 && fabs((double)got) > 3.3e38
                    : fabs((double)got - wanted) <= 4e-7 * (fabs(wanted) + least) + 1e-44;
    cr_assert(same, "%s: element %zu is %g, not %g", isa->name, i, (double)got, wanted);
}

// Returns true if floats and doubles give comparable sums: none is so large that only floats
// overflow.
static bool is_tame(double a, double b)
{
    return !(fabs(a) > 1e37 || fabs(b) > 1e37) || (isinf(a) && isinf(b));
}

static void check_length(const struct inf_isa *isa, size_t count)
{
    const struct inf_rnn *loops = isa->rnn;
    float *a = make_numbers(A, count);
    float *b = make_numbers(B, count);
    float *c = make_numbers(C, count);
    float *y = make_numbers(Y, count);
    float before[100];
    loops->multiply(count, a, b, y);
    for (size_t i = 0; i < count; i++)
        check_element(isa, i, y[i], (double)a[i] * (double)b[i], 0);
    loops->complement(count, a, y);
    for (size_t i = 0; i < count; i++)
        check_element(isa, i, y[i], 1 - (double)a[i], 1);
    for (size_t i = 0; i < count; i++)
        before[i] = y[i] = c[i];
    loops->add_product(count, a, b, y);
    for (size_t i = 0; i < count; i++)
        if (is_tame((double)a[i] * (double)b[i], (double)before[i]))
            check_element(isa, i, y[i], (double)before[i] + (double)a[i] * (double)b[i], 8);
    for (size_t i = 0; i < count; i++)
        before[i] = y[i] = (float)(i % 7) - 3;
    loops->keep(count, a, b, c, y);
    for (size_t i = 0; i < count; i++) {
        double kept = (double)a[i] * (double)before[i], added = (double)b[i] * (double)c[i];
        if (is_tame(kept, added))
            check_element(isa, i, y[i], kept + added, 16);
    }
    loops->blend(count, a, b, c, y);
    for (size_t i = 0; i < count; i++) {
        double made = (1 - (double)a[i]) * (double)b[i], kept = (double)a[i] * (double)c[i];
        if (is_tame(made, kept))
            check_element(isa, i, y[i], made + kept, 16);
    }
}

Test(rnn, gates_match_the_same_in_double)
{
    for (unsigned level = 0; inf_isa_level(level) != NULL; level++)
        for (int round = 0; round < 20; round++)
            for (size_t i = 0; i < LENGTHS; i++)
                check_length(inf_isa_level(level), lengths[i]);
}

Test(rnn, clips_nan_to_the_lower_bound)
{
    const float wanted[6] = {-0.5f, 0.5f, -0.5f, 0.25f, 0.5f, -0.5f};
    for (unsigned level = 0; inf_isa_level(level) != NULL; level++) {
        float x[6] = {NAN, INFINITY, -INFINITY, 0.25f, 0.75f, -3.0f};
        inf_isa_level(level)->rnn->cut(6, x, 0.5f);
        for (int i = 0; i < 6; i++)
            cr_assert_eq(x[i], wanted[i], "%s: element %d is %g", inf_isa_level(level)->name, i,
                         (double)x[i]);
    }
}

Test(rnn, hard_sigmoid_stays_within_0_and_1)
{
    const float wanted[6] = {0.5f, 1.0f, 0.0f, 0.75f, 0.0f, 1.0f};
    for (unsigned level = 0; inf_isa_level(level) != NULL; level++) {
        float x[7] = {0.0f, INFINITY, -INFINITY, 1.0f, -2.0f, 2.5f, NAN};
        inf_isa_level(level)->rnn->hard_sigmoid(7, x, 0.25f, 0.5f);
        for (int i = 0; i < 6; i++)
            cr_assert_eq(x[i], wanted[i], "%s: element %d is %g", inf_isa_level(level)->name, i,
                         (double)x[i]);
        cr_assert(isnan(x[6]));
    }
}
