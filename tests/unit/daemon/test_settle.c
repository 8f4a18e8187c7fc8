// SPDX-License-Identifier: Apache-2.0
// Tests of inf_settle, which delays the report of a changed model until the model has not changed
// for a quiet time. Times are literals in ns; the quiet time is 1000 ns.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/model/settle.h"

static struct inf_settle *settle;

static void create_settle(void)
{
    settle = calloc(1, sizeof *settle);
    cr_assert_not_null(settle);
    settle->quiet_ns = 1000;
}

static void free_settle(void)
{
    free(settle);
}

TestSuite(settle, .init = create_settle, .fini = free_settle);

Test(settle, takes_a_model_once_after_its_last_change)
{
    struct inf_settle_model *model = inf_settle_obtain(settle, "emo");
    cr_expect_eq(inf_settle_next_ns(settle), INF_SETTLE_NEVER);
    inf_settle_note_change(settle, model, 100);
    inf_settle_note_change(settle, model, 900);
    cr_expect_eq(inf_settle_next_ns(settle), 1900);
    cr_expect_null(inf_settle_take(settle, 1899));
    cr_expect_eq(inf_settle_take(settle, 1900), model);
    cr_expect_null(inf_settle_take(settle, 5000), "it was taken");
    cr_expect_eq(inf_settle_next_ns(settle), INF_SETTLE_NEVER);
}

Test(settle, waits_while_a_file_is_written)
{
    struct inf_settle_model *model = inf_settle_obtain(settle, "emo");
    inf_settle_note_write(settle, model, 1, "a", 0);
    inf_settle_note_write(settle, model, 2, "a", 0);
    inf_settle_note_write(settle, model, 1, "a", 50);
    cr_expect_null(inf_settle_take(settle, 1000000), "both files are open");
    inf_settle_note_close(settle, model, 1, "a", 1000000);
    cr_expect_null(inf_settle_take(settle, 2000000), "the file of directory 2 is open");
    cr_expect_eq(inf_settle_next_ns(settle), INF_SETTLE_NEVER);
    inf_settle_note_close(settle, model, 2, "a", 3000000);
    cr_expect_null(inf_settle_take(settle, 3000999));
    cr_expect_eq(inf_settle_take(settle, 3001000), model);
}

Test(settle, does_not_let_one_model_wait_for_another)
{
    struct inf_settle_model *written = inf_settle_obtain(settle, "written");
    struct inf_settle_model *other = inf_settle_obtain(settle, "other");
    inf_settle_note_write(settle, written, 1, "a", 0);
    inf_settle_note_change(settle, other, 0);
    cr_expect_eq(inf_settle_take(settle, 1000), other);
    cr_expect_null(inf_settle_take(settle, 1000));
    inf_settle_forget_writers(settle);
    cr_expect_eq(inf_settle_take(settle, 1000), written);
}

Test(settle, forgets_the_writers_of_a_directory)
{
    struct inf_settle_model *model = inf_settle_obtain(settle, "emo");
    inf_settle_note_write(settle, model, 1, "a", 0);
    inf_settle_note_write(settle, model, 2, "a", 0);
    inf_settle_note_write(settle, model, 1, "b", 0);
    inf_settle_forget_directory(settle, 1);
    cr_expect_eq(settle->writer_count, 1);
    cr_expect_null(inf_settle_take(settle, 5000), "the file of directory 2 is open");
    inf_settle_forget_directory(settle, 2);
    cr_expect_eq(inf_settle_take(settle, 5000), model);
}

Test(settle, gives_the_place_of_a_forgotten_model_to_another)
{
    char name[32];
    for (unsigned i = 0; i < INF_SETTLE_MODELS; i++) {
        snprintf(name, sizeof name, "m%u", i);
        cr_assert_not_null(inf_settle_obtain(settle, name));
    }
    struct inf_settle_model *model = inf_settle_obtain(settle, "m500");
    model->fingerprint = 7;
    inf_settle_note_write(settle, inf_settle_obtain(settle, "m3"), 1, "a", 0);
    inf_settle_note_write(settle, model, 1, "b", 0);
    inf_settle_forget(settle, model);
    cr_expect_eq(settle->writer_count, 1, "the writer of m3 stays");
    cr_expect_eq(inf_settle_next_ns(settle), INF_SETTLE_NEVER, "m3 is written, m500 forgotten");
    struct inf_settle_model *next = inf_settle_obtain(settle, "next");
    cr_assert_eq(next, model);
    cr_expect_str_eq(next->name, "next");
    cr_expect_eq(next->fingerprint, 0);
    cr_expect_null(inf_settle_obtain(settle, "more"));
}

Test(settle, bounds_models_and_files)
{
    char name[32];
    for (unsigned i = 0; i < INF_SETTLE_MODELS; i++) {
        snprintf(name, sizeof name, "m%u", i);
        cr_assert_not_null(inf_settle_obtain(settle, name));
    }
    cr_expect_null(inf_settle_obtain(settle, "more"));
    cr_expect_eq(inf_settle_obtain(settle, "m7"), &settle->models[7]);
    struct inf_settle_model *last = inf_settle_obtain(settle, "m1023");
    for (unsigned i = 0; i < INF_SETTLE_WRITERS; i++) {
        snprintf(name, sizeof name, "f%u", i);
        inf_settle_note_write(settle, &settle->models[0], 1, name, 0);
    }
    inf_settle_note_write(settle, last, 1, "one-too-many", 0);
    cr_expect_eq(inf_settle_take(settle, 1000), last, "its time counts, the file does not");
    inf_settle_note_close(settle, last, 1, "one-too-many", 1000);
    cr_expect_eq(settle->writer_count, INF_SETTLE_WRITERS);
}
