// SPDX-License-Identifier: Apache-2.0
// A main function for Criterion tests on platforms on which Criterion's own one cannot start.
// Criterion's sandbox (boxfort) maps memory at addresses that ThreadSanitizer reserves, and
// inspects processes in a way that no emulator allows. Here each test runs in a forked child, one
// after the other. The functions that the macros call are defined here instead of in libcriterion.
// Filters and reports are left out. The output has the lines of Criterion's output that
// tests/report.py reads.
#include <criterion/criterion.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_SKIPPED 77
// time limits of tests are multiplied by this, because sanitizers are slow
#define TIMEOUT_FACTOR    6
#define TIMEOUT_DEFAULT_S 600

// Symbols that the linker defines for the lists of tests and suites that Test() and TestSuite()
// make.
extern struct criterion_test *__start_cr_tst[];
extern struct criterion_test *__stop_cr_tst[];
extern struct criterion_suite *__start_cr_sts[] __attribute__((weak));
extern struct criterion_suite *__stop_cr_sts[] __attribute__((weak));

// Set by a failed assertion of the current test. cr_expect() lets a test continue, so the exit code
// of its process does not tell that it failed. The memory is shared between processes, because the
// test runs in a child of the runner and may fork further children.
static atomic_bool *assertion_failed;

// The test that this child process runs.
static const struct criterion_test *current;
static const struct criterion_suite *current_suite;

static const struct criterion_suite *find_suite(const char *name)
{
    for (struct criterion_suite **suite = __start_cr_sts; suite < __stop_cr_sts; suite++)
        if (*suite != NULL && strcmp((*suite)->name, name) == 0)
            return *suite;
    return NULL;
}

void criterion_internal_test_setup(void)
{
    if (current_suite != NULL && current_suite->data->init != NULL)
        current_suite->data->init();
    if (current->data->init != NULL)
        current->data->init();
}

void criterion_internal_test_main(void (*body)(void))
{
    body();
}

void criterion_internal_test_teardown(void)
{
    if (current->data->fini != NULL)
        current->data->fini();
    if (current_suite != NULL && current_suite->data->fini != NULL)
        current_suite->data->fini();
}

void cri_asserts_passed_incr(void)
{
}

void criterion_send_assert(struct criterion_assert_stats *stats)
{
    if (stats->passed)
        return;
    atomic_store(assertion_failed, true);
    fprintf(stderr, "[----] %s:%u: Assertion Failed\n[----]   %s\n", stats->file, stats->line,
            stats->message != NULL ? stats->message : "");
}

void criterion_abort_test(void)
{
    fflush(NULL);
    _exit(1);
}

void criterion_skip_test(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "[SKIP] %s::%s: ", current->category, current->name);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    fflush(NULL);
    _exit(EXIT_SKIPPED);
}

static unsigned timeout_s(void)
{
    double wanted = current->data->timeout;
    if (wanted <= 0 && current_suite != NULL)
        wanted = current_suite->data->timeout;
    return wanted > 0 ? (unsigned)(wanted * TIMEOUT_FACTOR) + 1 : TIMEOUT_DEFAULT_S;
}

// Runs the test in a child and returns its wait status.
static int run_child(void)
{
    atomic_store(assertion_failed, false);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);
        alarm(timeout_s());
        current->test();
        fflush(NULL);
        exit(0); // not _exit(), because sanitizers report in exit()
    }
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child)
        return -1;
    kill(-child, SIGKILL); // ends a daemon that a failed test left running
    return status;
}

// Returns true if no assertion failed and the test's process ended as the test declares: normally,
// or with the signal or exit code that the test expects.
static bool as_wanted(int status)
{
    if (atomic_load(assertion_failed))
        return false;
    if (WIFSIGNALED(status))
        return WTERMSIG(status) == current->data->signal;
    return WIFEXITED(status) && current->data->signal == 0 &&
           WEXITSTATUS(status) == current->data->exit_code;
}

int main(void)
{
    unsigned passed = 0;
    unsigned failed = 0;
    assertion_failed = mmap(NULL, sizeof *assertion_failed, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (assertion_failed == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    for (struct criterion_test **test = __start_cr_tst; test < __stop_cr_tst; test++) {
        if (*test == NULL || (*test)->data->disabled)
            continue;
        current = *test;
        current_suite = find_suite(current->category);
        int status = run_child();
        if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SKIPPED)
            continue;
        bool good = as_wanted(status);
        passed += good;
        failed += !good;
        fprintf(stderr, "[%s] %s::%s (status 0x%x)\n", good ? "PASS" : "FAIL", current->category,
                current->name, (unsigned)status);
    }
    fprintf(stderr, "[====] Synthesis: Tested: %u | Passing: %u | Failing: %u | Crashing: 0\n",
            passed + failed, passed, failed);
    return failed == 0 ? 0 : 1;
}
