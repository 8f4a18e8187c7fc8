// SPDX-License-Identifier: Apache-2.0
// The memory that the process may use, read from imitated system files, and the trigger that
// reports pressure on memory. A TCP socket stands for the file of the kernel: its urgent data sets
// the same condition (EPOLLPRI).
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/system/memory_limit.h"
#include "daemon/system/memory_trigger.h"
#include "tests/unit/daemon/fake_root.h"

TestSuite(memory_limit, .init = start_fake_root, .fini = end_fake_root);

#define MEMINFO "MemTotal:       16000000 kB\nMemFree: 1 kB\nMemAvailable:    9000000 kB\n"
#define GROUP   "/sys/fs/cgroup/a.slice/b.service"

static struct inf_memory_limit read_limit(void)
{
    struct inf_memory_limit limit;
    inf_memory_limit_read(&limit, root);
    return limit;
}

Test(memory_limit, is_the_smallest_on_the_path_of_the_control_group)
{
    make_file("/proc/self/cgroup", "4:memory:/old\n0::/a.slice/b.service\n");
    make_file("/proc/meminfo", MEMINFO);
    make_file(GROUP "/memory.high", "3000000000\n");
    make_file(GROUP "/memory.max", "4000000000\n");
    struct inf_memory_limit limit = read_limit();
    cr_expect_eq(limit.bytes, UINT64_C(3000000000));
    cr_expect_str_eq(limit.source, "memory.high of /a.slice/b.service");
    make_file("/sys/fs/cgroup/a.slice/memory.max", "2000000000\n");
    make_file("/sys/fs/cgroup/a.slice/memory.high", "max\n");
    limit = read_limit();
    cr_expect_eq(limit.bytes, UINT64_C(2000000000));
    cr_expect_str_eq(limit.source, "memory.max of /a.slice");
    // A limit of 0 is none.
    make_file(GROUP "/memory.max", "0\n");
    cr_expect_eq(read_limit().bytes, UINT64_C(2000000000));
    // A container has its limit in the group that it sees as the root.
    make_file("/sys/fs/cgroup/memory.max", "1000000000\n");
    limit = read_limit();
    cr_expect_eq(limit.bytes, UINT64_C(1000000000));
    cr_expect_str_eq(limit.source, "memory.max of /");
}

Test(memory_limit, of_the_root_group_is_found)
{
    make_file("/proc/self/cgroup", "0::/\n");
    make_file("/proc/meminfo", MEMINFO);
    make_file("/sys/fs/cgroup/memory.max", "123456789\n");
    cr_expect_eq(read_limit().bytes, UINT64_C(123456789));
}

Test(memory_limit, is_what_the_machine_has_left_if_no_group_has_one)
{
    make_file("/proc/self/cgroup", "0::/a.slice/b.service\n");
    make_file("/proc/meminfo", MEMINFO);
    make_file(GROUP "/memory.high", "max\n");
    make_file(GROUP "/memory.max", "0\n");
    struct inf_memory_limit limit = read_limit();
    cr_expect_eq(limit.bytes, UINT64_C(9000000) * 1024);
    cr_expect_str_eq(limit.source, "MemAvailable of the machine");
    // A limit that the machine cannot reach is none.
    make_file(GROUP "/memory.max", "16384000001\n");
    cr_expect_eq(read_limit().bytes, UINT64_C(9000000) * 1024);
    make_file(GROUP "/memory.max", "16384000000\n");
    cr_expect_eq(read_limit().bytes, UINT64_C(16384000000));
}

Test(memory_limit, is_not_known_without_files)
{
    struct inf_memory_limit limit = read_limit();
    cr_expect_eq(limit.bytes, 0);
    cr_expect_str_eq(limit.source, "");
}

// Creates a pair of connected TCP sockets.
static void connect_pair(int pair[2])
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert_eq(bind(listener, (struct sockaddr *)&address, size), 0);
    cr_assert_eq(listen(listener, 1), 0);
    cr_assert_eq(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    pair[0] = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert_eq(connect(pair[0], (struct sockaddr *)&address, size), 0);
    pair[1] = accept(listener, NULL, NULL);
    cr_assert_geq(pair[1], 0);
    close(listener);
}

static bool is_readable(int fd, int timeout_ms)
{
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    return poll(&poller, 1, timeout_ms) == 1;
}

Test(memory_limit, trigger_fires_once_for_each_notice_of_the_kernel)
{
    struct inf_memory_trigger trigger;
    struct inf_error err = {0};
    int pair[2];
    connect_pair(pair);
    cr_assert_eq(inf_memory_trigger_adopt(&trigger, pair[1], &err), INF_OK, "%s", err.text);
    int fd = inf_memory_trigger_fd(&trigger);
    cr_expect_not(is_readable(fd, 0));
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(send(pair[0], "x", 1, MSG_OOB), 1);
        cr_assert(is_readable(fd, 5000));
        cr_expect(inf_memory_trigger_clear(&trigger));
        cr_expect_not(is_readable(fd, 0), "the notice was taken");
    }
    // Data that is not urgent is no notice: the file of the kernel is always readable.
    char byte;
    cr_assert_eq(recv(pair[1], &byte, 1, MSG_OOB), 1);
    cr_assert_eq(send(pair[0], "x", 1, 0), 1);
    cr_expect_not(is_readable(fd, 50));
    inf_memory_trigger_close(&trigger);
    cr_expect_eq(inf_memory_trigger_fd(&trigger), -1);
    close(pair[0]);
}

Test(memory_limit, trigger_is_refused_where_the_kernel_has_none)
{
    struct inf_memory_trigger trigger;
    struct inf_error err = {0};
    cr_expect_eq(inf_memory_trigger_open(&trigger, root, &err), INF_UNSUPPORTED);
    // The pressure of the machine is not watched.
    make_file("/proc/self/cgroup", "0::/\n");
    make_file("/proc/pressure/memory", "");
    make_file("/sys/fs/cgroup/memory.pressure", "");
    cr_expect_eq(inf_memory_trigger_open(&trigger, root, &err), INF_UNSUPPORTED);
    cr_expect_not_null(strstr(err.text, "no control group of its own"), "%s", err.text);
    // An ordinary file cannot be watched.
    make_file("/proc/self/cgroup", "0::/a.slice/b.service\n");
    cr_expect_eq(inf_memory_trigger_open(&trigger, root, &err), INF_UNSUPPORTED);
    make_file(GROUP "/memory.pressure", "");
    cr_expect_eq(inf_memory_trigger_open(&trigger, root, &err), INF_UNSUPPORTED, "%s", err.text);
    cr_expect_eq(inf_memory_trigger_fd(&trigger), -1);
    inf_memory_trigger_close(&trigger);
    // The text that was written is the trigger as the kernel's psi.rst describes it.
    char path[128], text[64] = "";
    snprintf(path, sizeof path, "%s" GROUP "/memory.pressure", root);
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file);
    cr_expect_eq(fread(text, 1, sizeof text, file), strlen("some 150000 2000000") + 1);
    fclose(file);
    cr_expect_str_eq(text, "some 150000 2000000");
}

Test(memory_limit, trigger_text_is_accepted_by_this_kernel)
{
    static const char text[] = "some 150000 2000000";
    struct inf_memory_trigger trigger;
    struct inf_error err = {0};
    int fd = open("/proc/pressure/memory", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        cr_skip("the kernel reports no pressure, or only root may set a trigger");
    cr_assert_eq(write(fd, text, sizeof text), (ssize_t)sizeof text);
    cr_expect_eq(inf_memory_trigger_adopt(&trigger, fd, &err), INF_OK, "%s", err.text);
    inf_memory_trigger_close(&trigger);
}
