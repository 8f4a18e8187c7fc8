// SPDX-License-Identifier: Apache-2.0
// Executables for graphs whose shapes are all known before a run. They are planned, compiled for
// devices, and have one arena for each slot (concurrent run). Their runs allocate nothing.
#ifndef INF_BACKENDS_EXEC_STATIC_EXECUTABLE_H
#define INF_BACKENDS_EXEC_STATIC_EXECUTABLE_H

#include "backends/exec/executable.h"

// Compiles `graph` (shapes known, passes run) for devices[0]. Nodes that devices[0] declines fall
// back to the following devices, in order; the last one must be the reference device `ref`. Takes
// ownership of `graph`, even after a failure. The number of slots is that of devices[0]. If
// `options` is NULL, the defaults apply. The caller destroys *out_executable, which holds
// references to the devices.
//
// INF_UNSUPPORTED, INF_EXHAUSTED  as inf_plan_build() and inf_program_compile().
enum inf_code inf_static_executable_create(struct inf_executable **out_executable,
                                           struct inf_graph **graph,
                                           struct inf_device *const *devices, uint32_t device_count,
                                           const struct inf_run_options *options,
                                           struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
