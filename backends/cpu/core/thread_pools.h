// SPDX-License-Identifier: Apache-2.0
// The threads of the cpu device: one pool for each slot, so that runs in different slots never wait
// for each other.
#ifndef INF_BACKENDS_CPU_CORE_THREAD_POOLS_H
#define INF_BACKENDS_CPU_CORE_THREAD_POOLS_H

#include <pthreadpool.h>
#include <stdint.h>

#include "backends/base/role.h"
#include "proto/core/status.h"

// Most slots, and most threads of one slot, that may be asked for.
#define INF_CPU_SLOTS_MAX   256u
#define INF_CPU_THREADS_MAX 256u

struct inf_cpu_pools {
    uint32_t slots;
    uint32_t threads;     // of each slot, the calling one included
    pthreadpool_t *pools; // by slot; NULL where there is one thread: the caller does it all
    uint64_t wake_ns; // what calling the threads of a slot takes that sleep; 0: there is one thread
};

// Makes the pools of `slots` slots (0: 1) with `threads` threads each (0: half the cores, 1 to 8), and
// calls the threads of one some times to see how long they take to wake up.
//
// INF_INVALID    more than INF_CPU_SLOTS_MAX or INF_CPU_THREADS_MAX.
// INF_EXHAUSTED  no memory, or the system refuses a thread.
enum inf_code inf_cpu_pools_init(struct inf_cpu_pools *pools, uint32_t slots, uint32_t threads,
                                 struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Ends the threads. Nothing may run on them.
void inf_cpu_pools_fini(struct inf_cpu_pools *pools);

#endif
