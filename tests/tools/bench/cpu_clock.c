// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD that replaces monotonic time by the CPU time of the program's threads.
// bench_peers.py --cpu-time uses it.
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *time)
{
    if (clock == CLOCK_MONOTONIC)
        clock = CLOCK_PROCESS_CPUTIME_ID;
    return (int)syscall(SYS_clock_gettime, clock, time);
}
