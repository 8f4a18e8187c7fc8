// SPDX-License-Identifier: Apache-2.0
// A directory with imitated files of the system, for a test suite that reads them below a root.
#ifndef INF_TESTS_UNIT_DAEMON_FAKE_ROOT_H
#define INF_TESTS_UNIT_DAEMON_FAKE_ROOT_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

// The directory; valid between start_fake_root() and end_fake_root().
static char root[] = "/tmp/inferd-root-XXXXXX";

// Writes a file below the directory, and the directories above it.
static inline void make_file(const char *path, const char *text)
{
    char command[256], name[192];
    snprintf(name, sizeof name, "%s%s", root, path);
    snprintf(command, sizeof command, "mkdir -p \"$(dirname '%s')\"", name);
    cr_assert_eq(system(command), 0);
    FILE *file = fopen(name, "w");
    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
}

static inline void start_fake_root(void)
{
    cr_assert_not_null(mkdtemp(root));
}

static inline void end_fake_root(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    cr_assert_eq(system(command), 0);
}

#endif
