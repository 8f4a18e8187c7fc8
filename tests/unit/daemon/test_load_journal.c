// SPDX-License-Identifier: Apache-2.0
// The journal of loads: what began and did not end is known at the next start.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/model/load_journal.h"

static char root[] = "/tmp/inferd-loads-XXXXXX";

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

TestSuite(load_journal, .init = make_root, .fini = remove_root);

static struct inf_load_journal *open_journal(void)
{
    struct inf_load_journal *journal;
    cr_assert_eq(inf_load_journal_open(&journal, root, NULL, NULL), INF_OK);
    return journal;
}

Test(load_journal, counts_loads_that_did_not_end_until_one_ends)
{
    for (uint32_t start = 0; start < 4; start++) {
        struct inf_load_journal *journal = open_journal();
        cr_expect_eq(inf_load_journal_crashes(journal, 7), start);
        cr_expect_eq(inf_load_journal_crashes(journal, 8), 0);
        inf_load_journal_begin(journal, 8);
        inf_load_journal_end(journal, 8);
        inf_load_journal_begin(journal, 7);
        cr_expect_eq(inf_load_journal_crashes(journal, 7), start, "it may end yet");
        inf_load_journal_close(&journal); // as if the process had ended
        cr_expect_null(journal);
    }
    struct inf_load_journal *journal = open_journal();
    inf_load_journal_begin(journal, 7);
    inf_load_journal_end(journal, 7);
    cr_expect_eq(inf_load_journal_crashes(journal, 7), 0);
    inf_load_journal_close(&journal);
    journal = open_journal();
    cr_expect_eq(inf_load_journal_crashes(journal, 7), 0);
    // A start without a load changes nothing.
    inf_load_journal_begin(journal, 9);
    inf_load_journal_close(&journal);
    for (int i = 0; i < 3; i++) {
        journal = open_journal();
        cr_expect_eq(inf_load_journal_crashes(journal, 9), 1);
        inf_load_journal_close(&journal);
    }
}

Test(load_journal, keeps_a_bounded_file)
{
    char path[64];
    struct stat status;
    struct inf_load_journal *journal = open_journal();
    for (uint64_t i = 0; i < 10000; i++) {
        inf_load_journal_begin(journal, i % 300);
        inf_load_journal_end(journal, i % 300);
    }
    inf_load_journal_begin(journal, 5000);
    inf_load_journal_close(&journal);
    snprintf(path, sizeof path, "%s/loads.db", root);
    cr_assert_eq(stat(path, &status), 0);
    cr_expect_leq(status.st_size, 64 << 10);
    journal = open_journal();
    cr_expect_eq(inf_load_journal_crashes(journal, 5000), 1);
    inf_load_journal_close(&journal);
}

Test(load_journal, works_without_a_directory_and_with_a_damaged_file)
{
    struct inf_load_journal *journal;
    cr_assert_eq(inf_load_journal_open(&journal, NULL, NULL, NULL), INF_OK);
    inf_load_journal_begin(journal, 1);
    inf_load_journal_end(journal, 1);
    inf_load_journal_end(journal, 2);
    inf_load_journal_close(&journal);
    char path[64];
    snprintf(path, sizeof path, "%s/loads.db", root);
    FILE *file = fopen(path, "w");
    fputs("inferd-loads 1\n0000000000000001 1 9\nx\n", file);
    fclose(file);
    journal = open_journal();
    cr_expect_eq(inf_load_journal_crashes(journal, 1), 0, "lines without a checksum do not count");
    inf_load_journal_begin(journal, 1);
    inf_load_journal_close(&journal);
    journal = open_journal();
    cr_expect_eq(inf_load_journal_crashes(journal, 1), 1);
    inf_load_journal_close(&journal);
}
