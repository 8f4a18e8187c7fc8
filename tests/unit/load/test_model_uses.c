// SPDX-License-Identifier: Apache-2.0
// How much models were used is known at the next start.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/load/source/model_uses.h"

static char root[] = "/tmp/inferd-uses-XXXXXX";
static struct inf_model_use_counts counts;

static void make_root(void)
{
    cr_assert_not_null(mkdtemp(root));
}

static void remove_root(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    cr_assert_eq(system(command), 0);
}

TestSuite(model_uses, .init = make_root, .fini = remove_root);

// Reads the file into `counts`.
static struct inf_model_uses *open_uses(const char *directory)
{
    struct inf_model_uses *uses;
    counts.count = 0;
    cr_assert_eq(inf_model_uses_open(&uses, directory, &counts, NULL, NULL), INF_OK);
    return uses;
}

static void keep_and_read(void)
{
    struct inf_model_use_counts kept = counts;
    struct inf_model_uses *uses = open_uses(root);
    inf_model_uses_write(uses, &kept);
    inf_model_uses_close(&uses);
    cr_expect_null(uses);
    uses = open_uses(root);
    inf_model_uses_close(&uses);
}

Test(model_uses, each_start_counts_earlier_requests_half)
{
    inf_model_use_counts_set(&counts, "a", 9);
    inf_model_use_counts_set(&counts, "b", 1);
    inf_model_use_counts_set(&counts, "c.d-e_f", UINT64_MAX);
    inf_model_use_counts_set(&counts, "a", 10);
    cr_expect_eq(counts.count, 3u);
    keep_and_read();
    cr_expect_eq(inf_model_use_counts_find(&counts, "a"), 5u);
    cr_expect_eq(inf_model_use_counts_find(&counts, "b"), 0u);
    cr_expect_eq(inf_model_use_counts_find(&counts, "c.d-e_f"), UINT64_MAX / 2);
    cr_expect_eq(inf_model_use_counts_find(&counts, "absent"), 0u);
    inf_model_use_counts_set(&counts, "a", 2);
    keep_and_read();
    cr_expect_eq(inf_model_use_counts_find(&counts, "a"), 1u, "the file is replaced");
}

Test(model_uses, the_least_used_models_are_forgotten)
{
    for (uint32_t i = 0; i < INF_MODEL_USES_MAX; i++) {
        char name[16];
        snprintf(name, sizeof name, "m%u", i);
        inf_model_use_counts_set(&counts, name, i == 7 ? 10 : 100 + i);
    }
    inf_model_use_counts_set(&counts, "rare", 10);
    cr_expect_eq(inf_model_use_counts_find(&counts, "rare"), 0u);
    inf_model_use_counts_set(&counts, "frequent", 11);
    cr_expect_eq(counts.count, INF_MODEL_USES_MAX);
    cr_expect_eq(inf_model_use_counts_find(&counts, "frequent"), 11u);
    cr_expect_eq(inf_model_use_counts_find(&counts, "m7"), 0u);
    keep_and_read();
    cr_expect_eq(counts.count, INF_MODEL_USES_MAX);
    cr_expect_eq(inf_model_use_counts_find(&counts, "m1023"), (100u + 1023u) / 2);
}

Test(model_uses, wrong_lines_are_left_out)
{
    inf_model_use_counts_set(&counts, "a", 8);
    inf_model_use_counts_set(&counts, "../b", 8); // no name of a model
    inf_model_use_counts_set(&counts, "c", 6);
    keep_and_read();
    cr_expect_eq(counts.count, 2u);
    cr_expect_eq(inf_model_use_counts_find(&counts, "c"), 3u);
    char command[128];
    snprintf(command, sizeof command, "sed -i 's/^a 8 /a 9 /' '%s/uses.db'", root);
    cr_assert_eq(system(command), 0);
    struct inf_model_uses *uses = open_uses(root);
    cr_expect_eq(inf_model_use_counts_find(&counts, "a"), 0u, "its checksum is wrong");
    inf_model_uses_close(&uses);
    uses = open_uses(NULL);
    cr_expect_eq(counts.count, 0u);
    inf_model_uses_write(uses, &counts);
    inf_model_uses_close(&uses);
}
