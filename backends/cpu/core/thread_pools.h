// SPDX-License-Identifier: Apache-2.0
// The threads of the cpu device. Each slot (one concurrent run) has its own pool, so that runs in
// different slots never wait for each other.
#ifndef INF_BACKENDS_CPU_CORE_THREAD_POOLS_H
#define INF_BACKENDS_CPU_CORE_THREAD_POOLS_H

#include <pthreadpool.h>
#include <stdint.h>

#include "backends/base/role.h"
#include "proto/core/status.h"

// The largest number of slots, and of threads in one slot, that may be configured.
#define INF_CPU_SLOTS_MAX   256u
#define INF_CPU_THREADS_MAX 256u

struct inf_cpu_pools {
    uint32_t slots;
    uint32_t threads; // threads of one slot, including the calling thread
    // The thread pools, indexed by slot. All are NULL if a slot has one thread, because then the
    // calling thread computes alone.
    pthreadpool_t *pools;
    uint64_t wake_ns; // time to wake the sleeping threads of a slot; 0 if there is one thread
};

// Creates `slots` pools (0: one pool) of `threads` threads each (0: half the cores, at least 1 and
// at most 8), and measures how long the threads of one pool take to wake up.
//
// INF_INVALID    more than INF_CPU_SLOTS_MAX or INF_CPU_THREADS_MAX.
// INF_EXHAUSTED  no memory, or the system refuses a thread.
enum inf_code inf_cpu_pools_init(struct inf_cpu_pools *pools, uint32_t slots, uint32_t threads,
                                 struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Ends the threads. No run may be using them.
void inf_cpu_pools_fini(struct inf_cpu_pools *pools);

#endif
