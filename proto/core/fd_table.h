// SPDX-License-Identifier: Apache-2.0
// Makes room for descriptors while the process has one thread. The kernel enlarges the table of
// descriptors when it is full, and if the process has several threads, the thread that needs the
// next descriptor waits in accept() or recvmsg() until every processor has passed a quiescent state
// of RCU. On a busy machine that takes hundreds of milliseconds, and an event loop serves no client
// meanwhile. The table never shrinks.
#ifndef INF_PROTO_CORE_FD_TABLE_H
#define INF_PROTO_CORE_FD_TABLE_H

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

// Number of descriptors for which the table has room: LimitNOFILE of the units. The table then
// takes 528 KiB of the kernel's memory.
#define INF_FD_TABLE_SIZE 65536u

// Enlarges the table of descriptors to INF_FD_TABLE_SIZE, or to the soft limit of open files if
// that is lower. To be called before the first thread is started. If the kernel refuses, the table
// grows later.
static inline void inf_fd_table_reserve(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == 0)
        return;
    int last = (int)(limit.rlim_cur < INF_FD_TABLE_SIZE ? limit.rlim_cur : INF_FD_TABLE_SIZE) - 1;
    int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, last); // this enlarges the table
    if (copy >= 0)
        close(copy);
    close(fd);
}

#endif
