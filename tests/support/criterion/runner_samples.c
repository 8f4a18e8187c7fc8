// SPDX-License-Identifier: Apache-2.0
// Tests that pass, fail and are skipped on purpose. check_plain_runner.py runs them with
// plain_runner.c and compares what the runner reports.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

Test(samples, pass_if_all_holds)
{
    cr_expect_eq(1, 1);
}

Test(samples, pass_with_the_declared_exit_code, .exit_code = 3)
{
    exit(3);
}

Test(samples, fail_by_an_expectation)
{
    cr_expect_eq(1, 2);
    cr_expect_eq(1, 1);
}

Test(samples, fail_by_an_assertion)
{
    cr_assert_eq(1, 2);
}

Test(samples, fail_by_an_expectation_before_the_declared_exit, .exit_code = 3)
{
    cr_expect_eq(1, 2);
    exit(3);
}

Test(samples, fail_by_an_expectation_in_a_child_process)
{
    pid_t child = fork();
    if (child == 0) {
        cr_expect_eq(1, 2);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

Test(samples, fail_with_another_exit_code_than_declared, .exit_code = 3)
{
    exit(4);
}

Test(samples, skip_themselves)
{
    cr_skip_test("on purpose");
}
