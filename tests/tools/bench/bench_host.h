// SPDX-License-Identifier: Apache-2.0
// Measures how much of a run on a Vulkan device the calling thread spends in inferd's code, and how
// much in the Vulkan driver.
#ifndef INF_TESTS_TOOLS_BENCH_BENCH_HOST_H
#define INF_TESTS_TOOLS_BENCH_BENCH_HOST_H

#include "tests/tools/bench/bench_subject.h"

struct vulkan_faults;

// Installs the layer that times the driver. Call it before Vulkan is first used.
// $VULKAN_FAULT_LAYER is the layer's folder.
//
// INF_UNAVAILABLE  the layer cannot be installed.
enum inf_code bench_host_prepare(struct vulkan_faults **out_faults,
                                 struct inf_error *err) INF_NODISCARD;

// Runs the model for about `ms` milliseconds. Prints the median and the minimum, in us, of the time
// that the calling thread spends per run in inferd's code and in the driver's submits and waits:
// elapsed time without the waits, and CPU time.
//
// INF_EXHAUSTED, and the codes of bench_subject_run().
enum inf_code bench_host(const struct bench_subject *subject, struct vulkan_faults *faults,
                         double ms, struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
