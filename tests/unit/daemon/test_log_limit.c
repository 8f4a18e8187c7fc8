// SPDX-License-Identifier: Apache-2.0
// Tests of the limit on log lines: how many lines of the same kind are written in a minute.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "daemon/system/log_limit.h"

#define SECOND ((uint64_t)1000000000)

Test(log_limit, admits_a_number_of_lines_of_each_kind_in_a_minute)
{
    static struct inf_log_limit limit;
    char report[256];
    for (int i = 0; i < 5; i++) {
        char line[64];
        snprintf(line, sizeof line, "model failed name=m%d reason=\"x\"", i);
        cr_expect_eq(inf_log_limit_admit(&limit, line, 2, 10 * SECOND), i < 2, "line %d", i);
    }
    cr_expect(inf_log_limit_admit(&limit, "model demoted name=m", 2, 10 * SECOND));
    // The report of refused lines is made once, after the minute of the first line has passed.
    cr_expect(!inf_log_limit_next_report(&limit, false, 69 * SECOND, report, sizeof report));
    cr_expect(inf_log_limit_next_report(&limit, false, 70 * SECOND, report, sizeof report));
    cr_expect_str_eq(report, "log lines left out count=3 kind=\"model failed\"");
    cr_expect(!inf_log_limit_next_report(&limit, true, 70 * SECOND, report, sizeof report));
    // A new minute begins with the next line.
    cr_expect(inf_log_limit_admit(&limit, "model failed name=a", 2, 80 * SECOND));
    cr_expect(inf_log_limit_admit(&limit, "model failed name=a", 2, 139 * SECOND));
    cr_expect(!inf_log_limit_admit(&limit, "model failed name=a", 2, 139 * SECOND));
    cr_expect(inf_log_limit_admit(&limit, "model failed name=a", 2, 140 * SECOND));
    cr_expect(inf_log_limit_next_report(&limit, true, 140 * SECOND, report, sizeof report));
    cr_expect_str_eq(report, "log lines left out count=1 kind=\"model failed\"");
}

Test(log_limit, zero_means_no_limit)
{
    static struct inf_log_limit limit;
    char report[256];
    for (int i = 0; i < 1000; i++)
        cr_expect(inf_log_limit_admit(&limit, "client refused uid=1", 0, SECOND));
    cr_expect(!inf_log_limit_next_report(&limit, true, SECOND, report, sizeof report));
}

// The kind of a line is the words before its first key=value or before a colon.
Test(log_limit, kinds_end_at_the_first_key_or_colon)
{
    static struct inf_log_limit limit;
    char report[256];
    cr_expect(inf_log_limit_admit(&limit, "not started: port 1", 1, SECOND));
    cr_expect(!inf_log_limit_admit(&limit, "not started: port 2", 1, SECOND));
    cr_expect(inf_log_limit_next_report(&limit, true, SECOND, report, sizeof report));
    cr_expect_str_eq(report, "log lines left out count=1 kind=\"not started:\"");
    cr_expect(inf_log_limit_admit(&limit, "a=1 b", 1, SECOND));
    cr_expect(inf_log_limit_admit(&limit, "a=1 b", 1, SECOND), "a line without a kind");
}

// Lines are always admitted if their kind is empty, too long, or does not fit in the full table.
// Nothing is written out of bounds.
Test(log_limit, odd_lines_do_no_harm)
{
    static struct inf_log_limit limit;
    char line[512];
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\0';
    cr_expect(inf_log_limit_admit(&limit, line, 1, SECOND));
    cr_expect(inf_log_limit_admit(&limit, line, 1, SECOND), "one word longer than a kind");
    line[20] = ' ';
    cr_expect(inf_log_limit_admit(&limit, line, 1, SECOND));
    cr_expect(!inf_log_limit_admit(&limit, line, 1, SECOND), "the words that fit are the kind");
    cr_expect(inf_log_limit_admit(&limit, "", 1, SECOND));
    cr_expect(inf_log_limit_admit(&limit, "  ", 1, SECOND));
    for (int i = 0; i < 1000; i++) {
        snprintf(line, sizeof line, "kind%d key=1", i);
        cr_expect(inf_log_limit_admit(&limit, line, 1, SECOND));
    }
    cr_expect(!inf_log_limit_admit(&limit, "kind0 key=2", 1, SECOND));
    cr_expect(inf_log_limit_admit(&limit, "kind999 key=2", 1, SECOND), "the table is full");
}
