// SPDX-License-Identifier: Apache-2.0
// The cpu device, as seen by its programs.
#ifndef INF_BACKENDS_CPU_PROGRAM_DEVICE_H
#define INF_BACKENDS_CPU_PROGRAM_DEVICE_H

#include "backends/cpu/core/core_set.h"
#include "backends/cpu/core/pack.h"
#include "backends/cpu/kernels/isa.h"
#include "backends/cpu/program/race_key.h"
#include "backends/device/backend.h"

struct inf_cpu_device {
    struct inf_device base;
    struct inf_cpu_core_set cores;
    uint64_t wake_ns;          // time to wake all helpers of a run; 0 if a run has one thread
    const struct inf_isa *isa; // ISA level of the kernels in use; at most the configured level
    bool bf16_dot; // true: bf16 products also round their operands; see inf_round_bf16_is_faster()
    struct inf_cpu_packs packs;
    // Peak rate of dot products of bytes on one core (dot_peak.h); 0 before the first profile that
    // needs it.
    _Atomic double dot_rate;
    // Winners of timing comparisons. NULL: kernels and fusion levels are chosen by fixed rules,
    // without timing.
    struct inf_race_results *race_results;
};

// Returns the most threads of a run of the segment's programs, at least 1.
uint32_t inf_cpu_device_threads(const struct inf_cpu_device *device,
                                const struct inf_segment *segment);

// Returns the time until all helpers of a run work, if they slept before: the median of several
// measurements, or the shortest one if other programs use the processors. 0 if a run has one
// thread.
uint64_t inf_cpu_device_measure_wake_ns(struct inf_cpu_device *device) INF_MAY_BLOCK;

#endif
