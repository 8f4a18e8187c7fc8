// SPDX-License-Identifier: Apache-2.0
// Tests of the statistics of measured times.
#include <criterion/criterion.h>

#include "client/inferctl/bench/latency.h"

Test(latency, of_one_sample_is_that_sample)
{
    double samples[] = {2.5};
    struct latency latency = latency_of(samples, 1);
    cr_assert_eq(latency.median, 2.5);
    cr_assert_eq(latency.mean, 2.5);
    cr_assert_eq(latency.p95, 2.5);
    cr_assert_eq(latency.p99, 2.5);
    cr_assert_eq(latency.min, 2.5);
    cr_assert_eq(latency.max, 2.5);
}

Test(latency, median_is_the_middle_or_between_the_two)
{
    double odd[] = {9, 1, 5};
    cr_assert_eq(latency_of(odd, 3).median, 5.0);
    double even[] = {4, 1, 100, 2};
    cr_assert_eq(latency_of(even, 4).median, 3.0);
}

Test(latency, percentiles_are_of_the_nearest_rank)
{
    // For the values 200 down to 1, the percentiles 95 and 99 have the ranks 190 and 198.
    double samples[200];
    for (int i = 0; i < 200; i++)
        samples[i] = 200 - i;
    struct latency latency = latency_of(samples, 200);
    cr_assert_eq(latency.p95, 190.0);
    cr_assert_eq(latency.p99, 198.0);
    cr_assert_eq(latency.median, 100.5);
    cr_assert_eq(latency.mean, 100.5);
    cr_assert_eq(latency.min, 1.0);
    cr_assert_eq(latency.max, 200.0);
    // 95 % of 7 is 6.65, so the percentile is the 7th value.
    double few[] = {7, 6, 5, 4, 3, 2, 1};
    cr_assert_eq(latency_of(few, 7).p95, 7.0);
    // 95 % of 20 is 19, so the percentile is the 19th value.
    double twenty[20];
    for (int i = 0; i < 20; i++)
        twenty[i] = i + 1;
    cr_assert_eq(latency_of(twenty, 20).p95, 19.0);
    cr_assert_eq(latency_of(twenty, 20).p99, 20.0);
}
