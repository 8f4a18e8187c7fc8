// SPDX-License-Identifier: Apache-2.0
// What of a replayed inference is the host's: ours apart from the Vulkan driver's.
#ifndef INF_TESTS_TOOLS_BENCH_BENCH_HOST_H
#define INF_TESTS_TOOLS_BENCH_BENCH_HOST_H

#include "tests/tools/bench/bench_subject.h"

struct vulkan_faults;

// Puts the layer that tells what the driver takes before it: before Vulkan is first used. $VULKAN_FAULT_LAYER is
// its folder.
//
// INF_UNAVAILABLE  that cannot be done.
enum inf_code bench_host_prepare(struct vulkan_faults **out_faults,
                                 struct inf_error *err) INF_NODISCARD;

// Runs the model for about `ms` and prints what of a run, in us, the calling thread spends in our code and in the
// driver's submits and waits, median and least: by the clock, less the waits; and of its processor's time.
//
// INF_EXHAUSTED, and as bench_subject_run().
enum inf_code bench_host(const struct bench_subject *subject, struct vulkan_faults *faults,
                         double ms, struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
