// SPDX-License-Identifier: Apache-2.0
// Tests of the comparison of two tensors.
#include <criterion/criterion.h>
#include <math.h>

#include "client/inferctl/tensor/compare.h"

#define COUNT 4

static inferd_tensor make_tensor(float *data)
{
    return (inferd_tensor){.name = "t",
                           .dtype = INFERD_FP32,
                           .rank = 2,
                           .shape = {1, COUNT},
                           .data = data,
                           .size = COUNT * sizeof(float)};
}

static struct tensor_difference compare_arrays(const float *got, const float *wanted,
                                               double tolerance)
{
    inferd_tensor a = make_tensor((float *)got), b = make_tensor((float *)wanted);
    return tensor_compare(&a, &b, tolerance);
}

Test(tensor_compare, finds_the_largest_difference_of_either_kind)
{
    const float got[COUNT] = {1.5f, 100, 0.25f, 0}, wanted[COUNT] = {1, 101, 0.125f, 0};
    struct tensor_difference difference = compare_arrays(got, wanted, 0.1);
    cr_assert_float_eq(difference.max_abs, 1, 1e-12);
    // the difference 0.125, relative to the wanted value 0.125
    cr_assert_float_eq(difference.max_rel, 1, 1e-12);
    cr_assert(difference.same_top);
    cr_assert_not(difference.within); // the difference is 0.5 for a wanted value of 1
    cr_assert(compare_arrays(got, wanted, 0.5).within);
}

Test(tensor_compare, tells_the_angle)
{
    const float x[COUNT] = {1, 0, 0, 0}, y[COUNT] = {0, 2, 0, 0}, minus[COUNT] = {-3, 0, 0, 0};
    const float zero[COUNT] = {0};
    cr_assert_float_eq(compare_arrays(x, x, 0).cosine, 1, 1e-12);
    cr_assert_float_eq(compare_arrays(x, y, 0).cosine, 0, 1e-12);
    cr_assert_float_eq(compare_arrays(x, minus, 0).cosine, -1, 1e-12);
    cr_assert_eq(compare_arrays(zero, zero, 0).cosine, 1);
    cr_assert_eq(compare_arrays(x, zero, 0).cosine, 0);
    cr_assert_not(compare_arrays(x, y, 0).same_top);
}

Test(tensor_compare, takes_equal_values_that_are_not_finite_for_equal)
{
    const float nan[COUNT] = {NAN, INFINITY, -INFINITY, 1}, one[COUNT] = {1, 1, 1, 1};
    struct tensor_difference same = compare_arrays(nan, nan, 0);
    cr_assert(same.within && same.max_abs == 0 && same.max_rel == 0);
    for (int i = 0; i < 2; i++) {
        struct tensor_difference other =
            i == 0 ? compare_arrays(nan, one, 1e9) : compare_arrays(one, nan, 1e9);
        cr_assert_not(other.within);
        cr_assert(isinf(other.max_abs));
    }
}
