// SPDX-License-Identifier: Apache-2.0
// Tests that results of precision checks survive a restart, and that damaged files lose only what
// is damaged.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/storage/record.h"
#include "daemon/model/precision_results.h"

static char root[] = "/tmp/inferd-precision-XXXXXX";

static void make_root(void)
{
    cr_assert_not_null(mkdtemp(root));
}

static void remove_root(void)
{
    char path[128];
    snprintf(path, sizeof path, "%s/precision.db", root);
    unlink(path);
    rmdir(root);
}

TestSuite(precision_results, .init = make_root, .fini = remove_root);

static struct inf_precision_results *open_results(void)
{
    struct inf_precision_results *results;
    cr_assert_eq(inf_precision_results_open(&results, root, NULL, NULL), INF_OK);
    return results;
}

static const struct inf_precision_result admitted = {.key = 7,
                                                     .admissible = true,
                                                     .pin_count = 2,
                                                     .pins = {UINT64_MAX, 3},
                                                     .text = "2 of 30 values stay 100% fp32"};
static const struct inf_precision_result refused = {.key = 8, .text = "it overflows"};

static void expect_result(const struct inf_precision_results *results,
                          const struct inf_precision_result *wanted)
{
    const struct inf_precision_result *found = inf_precision_results_find(results, wanted->key);
    cr_assert_not_null(found);
    cr_expect_eq(found->admissible, wanted->admissible);
    cr_assert_eq(found->pin_count, wanted->pin_count);
    for (uint32_t i = 0; i < wanted->pin_count; i++)
        cr_expect_eq(found->pins[i], wanted->pins[i]);
    cr_expect_str_eq(found->text, wanted->text);
}

Test(precision_results, survive_a_restart)
{
    struct inf_precision_results *results = open_results();
    cr_expect_null(inf_precision_results_find(results, 7));
    inf_precision_results_add(results, &admitted);
    inf_precision_results_add(results, &refused);
    inf_precision_results_close(&results);
    results = open_results();
    expect_result(results, &admitted);
    expect_result(results, &refused);
    // A later result with the same key replaces the earlier one.
    struct inf_precision_result later = refused;
    later.admissible = true;
    inf_precision_results_add(results, &later);
    inf_precision_results_close(&results);
    results = open_results();
    expect_result(results, &later);
    expect_result(results, &admitted);
    inf_precision_results_close(&results);
}

Test(precision_results, of_a_damaged_file_are_kept_up_to_the_damage)
{
    char path[128];
    struct inf_precision_results *results = open_results();
    inf_precision_results_add(results, &admitted);
    inf_precision_results_close(&results);
    snprintf(path, sizeof path, "%s/precision.db", root);
    FILE *file = fopen(path, "ab");
    cr_assert_not_null(file);
    fputs("0000000000000008 1 99999 1 text 0123456789abcdef\nnonsense\n", file);
    fclose(file);
    results = open_results();
    expect_result(results, &admitted);
    cr_expect_null(inf_precision_results_find(results, 8));
    inf_precision_results_close(&results);
}

Test(precision_results, replace_the_oldest_beyond_the_limit)
{
    struct inf_precision_results *results;
    cr_assert_eq(inf_precision_results_open(&results, NULL, NULL, NULL), INF_OK);
    for (uint64_t key = 1; key <= INF_PRECISION_RESULTS + 1; key++)
        inf_precision_results_add(results, &(struct inf_precision_result){.key = key});
    cr_expect_null(inf_precision_results_find(results, 1));
    cr_expect_not_null(inf_precision_results_find(results, 2));
    cr_expect_not_null(inf_precision_results_find(results, INF_PRECISION_RESULTS + 1));
    inf_precision_results_close(&results);
}

Test(precision_results, have_keys_that_depend_on_every_part)
{
    struct inf_shape shape = INF_SHAPE(1, 4), other = INF_SHAPE(2, 4);
    uint64_t key = inf_precision_results_key(1, &shape, 1, INF_PRECISION_BF16, "a");
    cr_expect_eq(inf_precision_results_key(1, &shape, 1, INF_PRECISION_BF16, "a"), key);
    cr_expect_neq(inf_precision_results_key(2, &shape, 1, INF_PRECISION_BF16, "a"), key);
    cr_expect_neq(inf_precision_results_key(1, &other, 1, INF_PRECISION_BF16, "a"), key);
    cr_expect_neq(inf_precision_results_key(1, &shape, 0, INF_PRECISION_BF16, "a"), key);
    cr_expect_neq(inf_precision_results_key(1, &shape, 1, INF_PRECISION_FP16, "a"), key);
    cr_expect_neq(inf_precision_results_key(1, &shape, 1, INF_PRECISION_BF16, "b"), key);
}

Test(precision_results, a_full_array_of_records_replaces_the_oldest_in_turn)
{
    struct inf_record_places places = {0};
    static const uint32_t wanted[] = {0, 1, 2, 0, 1, 2, 0};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        cr_assert_eq(inf_record_place(&places, 3), wanted[i]);
    cr_assert_eq(places.count, 3);
}
