// SPDX-License-Identifier: Apache-2.0
// The journal of loads: what began and did not end is known at the next start.
#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/base/system/crash_note.h"
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

// Runs a child that computes something with `key` (0: nothing), and crashes in `crash`. Returns the
// signal that ended it.
static int crash_child(uint64_t key, void (*crash)(void))
{
    pid_t child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        struct inf_load_journal *journal = open_journal();
        prctl(PR_SET_DUMPABLE, 0); // no core dump
        for (int number = 1; number < 32; number++)
            signal(number, SIG_DFL); // Criterion has handlers of its own
        if (inf_crash_note_install(inf_load_journal_notes_fd(journal), NULL) != INF_OK)
            _exit(9);
        inf_crash_note_begin(77);
        inf_crash_note_end();
        if (key != 0)
            inf_crash_note_begin(key);
        crash();
        _exit(0);
    }
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void raise_fault(void)
{
    volatile char *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *page = 1;
}

static void end_by_kill(void)
{
    kill(getpid(), SIGSEGV);
}

static void *fault_on_thread(void *context)
{
    (void)context;
    raise_fault();
    return NULL;
}

static void fault_beside(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, fault_on_thread, NULL);
    pthread_join(thread, NULL);
}

static void *hold_key(void *context)
{
    inf_crash_note_begin(*(uint64_t *)context);
    pause();
    return NULL;
}

static void *help_and_fault(void *context)
{
    inf_crash_note_help(*(uint64_t *)context);
    raise_fault();
    return NULL;
}

// Two threads compute, and a third one, which helps one of them or none, crashes.
static void fault_beside_two(void *(*last)(void *))
{
    static uint64_t keys[] = {21, 22};
    pthread_t thread;
    for (int i = 0; i < 2; i++)
        pthread_create(&thread, NULL, hold_key, &keys[i]);
    usleep(200000);
    pthread_create(&thread, NULL, last, &keys[1]);
    pause();
}

static void fault_as_helper(void)
{
    fault_beside_two(help_and_fault);
}

static void fault_as_stranger(void)
{
    fault_beside_two(fault_on_thread);
}

static uint32_t count_crashes(uint64_t key)
{
    struct inf_load_journal *journal = open_journal();
    uint32_t crashes = inf_load_journal_crashes(journal, key);
    inf_load_journal_close(&journal);
    return crashes;
}

Test(load_journal, counts_runs_in_which_the_process_crashed)
{
    cr_expect_eq(crash_child(5, raise_fault), SIGSEGV);
    cr_expect_eq(count_crashes(5), 1u);
    cr_expect_eq(count_crashes(5), 1u, "a note is counted once");
    cr_expect_eq(crash_child(0xfedcba9876543210, abort), SIGABRT);
    cr_expect_eq(count_crashes(0xfedcba9876543210), 1u);
    cr_expect_eq(crash_child(5, fault_beside), SIGSEGV, "the only run is guilty");
    cr_expect_eq(count_crashes(5), 2u);
    cr_expect_eq(crash_child(0, fault_as_helper), SIGSEGV);
    cr_expect_eq(count_crashes(22), 1u);
    cr_expect_eq(count_crashes(21), 0u);
    // These say nothing about a model.
    cr_expect_eq(crash_child(0, raise_fault), SIGSEGV);
    cr_expect_eq(crash_child(6, end_by_kill), SIGSEGV);
    cr_expect_eq(crash_child(0, fault_as_stranger), SIGSEGV);
    cr_expect_eq(count_crashes(6) + count_crashes(77) + count_crashes(21), 0u);
    cr_expect_eq(count_crashes(22), 1u);
}

Test(load_journal, takes_only_notes)
{
    char path[64];
    snprintf(path, sizeof path, "%s/crashes.db", root);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs("0000000000000007\n0000000000000008\n00000000000000x9\n0000000000000007\n", file);
    fclose(file);
    struct inf_load_journal *journal = open_journal();
    cr_expect_eq(inf_load_journal_crashes(journal, 7), 1u, "what follows a damaged note is left");
    cr_expect_eq(inf_load_journal_crashes(journal, 8), 1u);
    inf_load_journal_close(&journal);
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(symlink("elsewhere", path), 0);
    journal = open_journal();
    cr_expect_eq(inf_load_journal_notes_fd(journal), -1, "links are not followed");
    inf_load_journal_close(&journal);
    cr_expect_eq(inf_crash_note_parse("00000000000000009"), 0u);
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
