// SPDX-License-Identifier: Apache-2.0
// Executables for graphs that cannot be planned as a whole, because they have branches, loops, or
// shapes that depend on values. Nodes that depend on none of these are planned and compiled as
// usual and run first. The other nodes are interpreted. Runs of such an executable allocate memory.
#ifndef INF_BACKENDS_EXEC_DYNAMIC_DYNAMIC_EXECUTABLE_H
#define INF_BACKENDS_EXEC_DYNAMIC_DYNAMIC_EXECUTABLE_H

#include "backends/exec/executable.h"
#include "backends/graph/pass/pass.h"

// Returns true if a graph whose input shapes are bound has nodes that cannot be planned.
bool inf_graph_needs_values(const struct inf_graph *graph);

// Compiles `graph`, whose shapes may depend on values, in fp32 for all threads. Parameters and
// ownership are those of inf_static_executable_create(). The function reads only two members of
// *options: `cancelled` and `races`. If no shape depends on values, the result is a static
// executable. `evaluator` computes the interpreted nodes. It is copied, and its tables must be
// static.
//
// INF_CANCELLED
// INF_UNSUPPORTED, INF_EXHAUSTED  as inf_static_executable_create().
enum inf_code inf_dynamic_executable_create(
    struct inf_executable **out_executable, struct inf_graph **graph,
    const struct inf_evaluator *evaluator, struct inf_device *const *devices, uint32_t device_count,
    const struct inf_run_options *options, struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
