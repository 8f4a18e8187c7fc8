// SPDX-License-Identifier: Apache-2.0
// Tests of how a value depends on the length of the history, by its shapes for several lengths.
#include <criterion/criterion.h>

#include "backends/graph/history/sample.h"

// Compares four samples of a value, for lengths of 0, 6, 12 and 13.
static struct inf_history_value compare_shapes(const struct inf_shape shapes[INF_HISTORY_SAMPLES])
{
    struct inf_history_samples samples = {.lengths = {0, 6, 12, 13}};
    uint32_t value;
    for (int i = 0; i < INF_HISTORY_SAMPLES; i++) {
        cr_assert_eq(inf_graph_create(&samples.graphs[i], NULL), INF_OK);
        cr_assert_eq(
            inf_graph_add_value(samples.graphs[i], "v", INF_DTYPE_F32, &shapes[i], &value, NULL),
            INF_OK);
    }
    const struct inf_history_value found = inf_history_compare(&samples, value);
    for (int i = 0; i < INF_HISTORY_SAMPLES; i++)
        inf_graph_destroy(&samples.graphs[i]);
    return found;
}

Test(history_sample, a_value_grows_along_one_axis_only)
{
    struct inf_history_value found = compare_shapes(
        (struct inf_shape[]){INF_SHAPE(1, 2), INF_SHAPE(1, 8), INF_SHAPE(1, 14), INF_SHAPE(1, 15)});
    cr_expect_eq(found.kind, INF_HISTORY_COMPUTED);
    cr_expect_eq(found.axis, 1);
    found = compare_shapes(
        (struct inf_shape[]){INF_SHAPE(4, 2), INF_SHAPE(4, 2), INF_SHAPE(4, 2), INF_SHAPE(4, 2)});
    cr_expect_eq(found.kind, INF_HISTORY_COMPUTED);
    cr_expect_eq(found.axis, -1);
    // The value grows along axis 0 for the second length, and along axis 1 for the other lengths.
    found = compare_shapes(
        (struct inf_shape[]){INF_SHAPE(1, 1), INF_SHAPE(7, 1), INF_SHAPE(7, 7), INF_SHAPE(7, 8)});
    cr_expect_eq(found.kind, INF_HISTORY_OTHER);
    // The value does not grow for the second length, or not for the last one.
    found = compare_shapes(
        (struct inf_shape[]){INF_SHAPE(1, 1), INF_SHAPE(1, 1), INF_SHAPE(1, 7), INF_SHAPE(1, 8)});
    cr_expect_eq(found.kind, INF_HISTORY_OTHER);
    found = compare_shapes(
        (struct inf_shape[]){INF_SHAPE(1, 1), INF_SHAPE(1, 7), INF_SHAPE(1, 13), INF_SHAPE(1, 13)});
    cr_expect_eq(found.kind, INF_HISTORY_OTHER);
    // The value grows along both axes at once, or by more rows than the history.
    found = compare_shapes((struct inf_shape[]){INF_SHAPE(1, 1), INF_SHAPE(7, 7), INF_SHAPE(13, 13),
                                                INF_SHAPE(14, 14)});
    cr_expect_eq(found.kind, INF_HISTORY_OTHER);
    found = compare_shapes((struct inf_shape[]){INF_SHAPE(1, 1), INF_SHAPE(1, 13), INF_SHAPE(1, 25),
                                                INF_SHAPE(1, 27)});
    cr_expect_eq(found.kind, INF_HISTORY_OTHER);
}
