// SPDX-License-Identifier: Apache-2.0
// Copies with axes in another order, beside a plain loop.
#include <criterion/criterion.h>
#include <stdlib.h>

#include "backends/base/permute.h"

#define AXES_MAX 5

// Checks one transposition of an array of `rank` axes with these counts: axis i of the copy is axis
// perm[i] of the source.
static void check_permutation(uint32_t rank, const size_t *counts, const uint32_t *perm)
{
    size_t steps[AXES_MAX], total = 1;
    struct inf_permutation permutation = {.rank = rank};
    for (uint32_t i = rank; i > 0; i--) {
        steps[i - 1] = total;
        total *= counts[i - 1];
    }
    for (uint32_t i = 0; i < rank; i++) {
        permutation.counts[i] = counts[perm[i]];
        permutation.steps[i] = steps[perm[i]];
    }
    // Of the exact size, so that AddressSanitizer finds an access behind the arrays.
    uint32_t *from = calloc(total + (total == 0), sizeof *from);
    uint32_t *to = calloc(total + (total == 0), sizeof *to);
    for (size_t i = 0; i < total; i++)
        from[i] = (uint32_t)i + 1;
    inf_permute_32(&permutation, to, from);
    size_t at[AXES_MAX] = {0};
    for (size_t i = 0; i < total; i++) {
        size_t source = 0;
        for (uint32_t axis = 0; axis < rank; axis++)
            source += at[axis] * permutation.steps[axis];
        cr_assert_eq(to[i], from[source], "element %zu of %zu", i, total);
        for (uint32_t axis = rank; axis > 0 && ++at[axis - 1] == permutation.counts[axis - 1];
             axis--)
            at[axis - 1] = 0;
    }
    free(from);
    free(to);
}

// Checks all orders of the axes. `used` has a bit for each axis that perm[0..rank) has.
static void check_orders(uint32_t rank, const size_t *counts, uint32_t *perm, uint32_t count,
                         uint32_t used)
{
    if (count == rank)
        check_permutation(rank, counts, perm);
    for (uint32_t axis = 0; axis < rank; axis++)
        if ((used >> axis & 1) == 0) {
            perm[count] = axis;
            check_orders(rank, counts, perm, count + 1, used | 1u << axis);
        }
}

Test(permute, copies_all_orders_of_odd_shapes)
{
    static const size_t shapes[][AXES_MAX] = {
        {3, 5, 2, 17, 33}, {1, 16, 1, 16, 1}, {2, 1, 31, 1, 7}, {4, 3, 1, 1, 1},
        {1, 1, 1, 1, 1},   {2, 2, 2, 2, 2},   {3, 0, 2, 17, 1}, {15, 2, 18, 3, 2}};
    uint32_t perm[AXES_MAX];
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (uint32_t rank = 1; rank <= AXES_MAX; rank++)
            check_orders(rank, shapes[i], perm, 0, 0);
}

Test(permute, copies_a_single_element)
{
    const struct inf_permutation permutation = {.rank = 0};
    const uint32_t from = 7;
    uint32_t to = 0;
    inf_permute_32(&permutation, &to, &from);
    cr_assert_eq(to, 7);
}

// A filter of a convolution, OIHW to HWIO: literals.
Test(permute, reorders_a_filter)
{
    // [2][3][1][2]: 100 * output + 10 * input + column
    const uint32_t oihw[] = {0, 1, 10, 11, 20, 21, 100, 101, 110, 111, 120, 121};
    const uint32_t hwio[] = {0, 100, 10, 110, 20, 120, 1, 101, 11, 111, 21, 121};
    const struct inf_permutation permutation = {
        .rank = 4, .counts = {1, 2, 3, 2}, .steps = {2, 1, 2, 6}};
    uint32_t to[12];
    inf_permute_32(&permutation, to, oihw);
    cr_assert_arr_eq(to, hwio, sizeof hwio);
}
