// SPDX-License-Identifier: Apache-2.0
// The cpu device, as seen by its programs.
#ifndef INF_BACKENDS_CPU_PROGRAM_DEVICE_H
#define INF_BACKENDS_CPU_PROGRAM_DEVICE_H

#include "backends/cpu/core/pack.h"
#include "backends/cpu/core/thread_pools.h"
#include "backends/cpu/kernels/isa.h"
#include "backends/cpu/program/race_results.h"
#include "backends/device/backend.h"

struct inf_cpu_device {
    struct inf_device base;
    struct inf_cpu_pools pools;
    const struct inf_isa *isa; // ISA level of the kernels in use; at most the configured level
    bool bf16_dot; // true: bf16 products also round their operands; see inf_round_bf16_is_faster()
    struct inf_cpu_packs packs;
    // Winners of timing comparisons. NULL: kernels and fusion levels are chosen by fixed rules,
    // without timing.
    struct inf_cpu_race_results *race_results;
};

// Returns the thread pool for slot `slot` (one concurrent run) of the segment's programs; NULL if
// the calling thread computes alone. A program uses either all threads of a pool or no pool.
pthreadpool_t inf_cpu_device_pool(const struct inf_cpu_device *device,
                                  const struct inf_segment *segment, uint32_t slot);

#endif
