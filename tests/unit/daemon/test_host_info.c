// SPDX-License-Identifier: Apache-2.0
// Facts about the host, read from imitated system files and from the real system.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/system/host_info.h"
#include "tests/unit/daemon/fake_root.h"

TestSuite(host_info, .init = start_fake_root, .fini = end_fake_root);

Test(host_info, reads_an_x86_machine_in_a_control_group)
{
    struct inf_host_info facts;
    make_file("/proc/cpuinfo",
              "processor\t: 0\nmodel name\t: AMD EPYC 9R14\n"
              "flags\t\t: fpu sse2 avx avx2 fma avx512f avx512_vnni notavx512bw\n"
              "model name\t: another one\n");
    make_file("/proc/meminfo", "MemTotal:        8048576 kB\nMemFree: 1 kB\n");
    make_file("/proc/self/cgroup", "0::/system.slice/inferd.service\n");
    make_file("/sys/fs/cgroup/system.slice/cpu.max", "150000 100000\n");
    make_file("/sys/fs/cgroup/system.slice/inferd.service/cpu.max", "max 100000\n");
    make_file("/sys/fs/cgroup/system.slice/memory.max", "max\n");
    make_file("/sys/fs/cgroup/system.slice/inferd.service/memory.max", "1073741824\n");
    inf_host_info_read(&facts, root);
    cr_expect_str_eq(facts.cpu, "AMD EPYC 9R14");
    cr_expect_str_eq(facts.cpu_isa, "sse2 avx fma avx2 avx512f avx512_vnni");
    cr_expect_eq(facts.memory_bytes, UINT64_C(8241741824));
    cr_expect_eq(facts.cores_quota, 2u, "one and a half, rounded up");
    cr_expect_leq(facts.cores_usable, 2u);
    cr_expect_eq(facts.memory_limit_bytes, UINT64_C(1073741824));
}

Test(host_info, counts_the_quota_of_the_group_that_a_container_sees_as_the_root)
{
    struct inf_host_info facts;
    make_file("/proc/self/cgroup", "0::/a.slice\n");
    make_file("/sys/fs/cgroup/cpu.max", "300000 100000\n");
    make_file("/sys/fs/cgroup/a.slice/cpu.max", "400000 100000\n");
    inf_host_info_read(&facts, root);
    cr_expect_eq(facts.cores_quota, 3u);
    make_file("/proc/self/cgroup", "1:cpu:/old\n0::/\n");
    inf_host_info_read(&facts, root);
    cr_expect_eq(facts.cores_quota, 3u);
}

Test(host_info, reads_an_arm_machine_without_control_groups)
{
    struct inf_host_info facts;
    make_file("/proc/cpuinfo", "processor : 0\nFeatures : fp asimd aes asimdhp asimddp\n");
    inf_host_info_read(&facts, root);
    cr_expect_str_eq(facts.cpu_isa, "asimd asimdhp asimddp");
    cr_expect_str_empty(facts.cpu);
    cr_expect_eq(facts.cores_quota, 0u);
    cr_expect_eq(facts.memory_limit_bytes, 0u);
    cr_expect_eq(facts.memory_bytes, 0u);
}

Test(host_info, reads_this_machine)
{
    struct inf_host_info facts;
    inf_host_info_read(&facts, "");
    cr_expect_geq(facts.cores_usable, 1u);
    cr_expect_leq(facts.cores_usable, facts.cores_online);
    cr_expect_gt(facts.memory_bytes, 0u);
    cr_expect_str_not_empty(facts.architecture);
}
