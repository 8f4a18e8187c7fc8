// SPDX-License-Identifier: Apache-2.0
// Pressure stall information, read from imitated system files, and the number of open descriptors
// of this process.
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/system/pressure.h"
#include "tests/unit/daemon/fake_root.h"

TestSuite(pressure, .init = start_fake_root, .fini = end_fake_root);

// The text has the form that the kernel's Documentation/accounting/psi.rst gives.
#define PSI(some, full)                                                                            \
    "some avg10=0.00 avg60=1.50 avg300=0.00 total=" some                                           \
    "\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=" full "\n"

Test(pressure, of_the_control_group_is_preferred_to_that_of_the_machine)
{
    struct inf_pressure pressure;
    struct inf_pressure_times times;
    make_file("/proc/self/cgroup", "1:name=x:/old\n0::/system.slice/inferd.service\n");
    make_file("/sys/fs/cgroup/system.slice/inferd.service/cpu.pressure", PSI("1234567", "89"));
    make_file("/proc/pressure/cpu", PSI("5", "6"));
    make_file("/proc/pressure/io", PSI("7", "8"));
    inf_pressure_open(&pressure, root);
    cr_assert(inf_pressure_read(&pressure, INF_PRESSURE_CPU, &times));
    cr_expect_eq(times.some_ns, UINT64_C(1234567000));
    cr_expect_eq(times.full_ns, UINT64_C(89000));
    cr_expect(pressure.is_of_group[INF_PRESSURE_CPU]);
    cr_assert(inf_pressure_read(&pressure, INF_PRESSURE_IO, &times), "the machine's");
    cr_expect_not(pressure.is_of_group[INF_PRESSURE_IO]);
    cr_expect_eq(times.some_ns, UINT64_C(7000));
    cr_expect_not(inf_pressure_read(&pressure, INF_PRESSURE_MEMORY, &times), "there is no file");
    // Expect that a later reading returns the numbers that the file has at that time.
    make_file("/proc/pressure/io", PSI("70", "80"));
    cr_assert(inf_pressure_read(&pressure, INF_PRESSURE_IO, &times));
    cr_expect_eq(times.full_ns, UINT64_C(80000));
    inf_pressure_close(&pressure);
    cr_expect_not(inf_pressure_read(&pressure, INF_PRESSURE_IO, &times), "closed");
}

Test(pressure, of_files_without_numbers_is_not_known)
{
    struct inf_pressure pressure;
    struct inf_pressure_times times;
    make_file("/proc/self/cgroup", "0::\n");
    make_file("/proc/pressure/cpu", "");
    make_file("/proc/pressure/memory", "some avg10=0.00 total=\n");
    inf_pressure_open(&pressure, root);
    cr_expect_not(inf_pressure_read(&pressure, INF_PRESSURE_CPU, &times));
    cr_assert(inf_pressure_read(&pressure, INF_PRESSURE_MEMORY, &times));
    cr_expect_eq(times.some_ns, 0);
    cr_expect_eq(times.full_ns, 0);
    inf_pressure_close(&pressure);
}

// Returns how many descriptors the process has open, by listing them.
static uint64_t list_fds(void)
{
    uint64_t count = 0;
    DIR *directory = opendir("/proc/self/fd");
    cr_assert_not_null(directory);
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(directory);
    return count - 1;
}

Test(pressure, of_the_root_group_is_that_of_the_machine)
{
    struct inf_pressure pressure;
    make_file("/proc/self/cgroup", "0::/\n");
    make_file("/sys/fs/cgroup/memory.pressure", PSI("5", "6"));
    inf_pressure_open(&pressure, root);
    cr_expect_not(pressure.is_of_group[INF_PRESSURE_MEMORY]);
    inf_pressure_close(&pressure);
}

Test(pressure, counts_the_descriptors_of_the_process)
{
    struct inf_pressure pressure;
    uint64_t before = 0, after = 0;
    inf_pressure_open(&pressure, "");
    if (!inf_pressure_count_fds(&pressure, &before))
        cr_skip_test("the kernel is older than Linux 6.2");
    cr_expect_eq(before, list_fds());
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    cr_assert(inf_pressure_count_fds(&pressure, &after));
    cr_expect_eq(after, before + 1);
    close(fd);
    inf_pressure_close(&pressure);
}
