// SPDX-License-Identifier: Apache-2.0
// What is done with a step after a kernel has created it: XNNPACK's operators get their pointers by
// a setup before they run; native kernels just run.
#ifndef INF_BACKENDS_CPU_PROGRAM_STEP_H
#define INF_BACKENDS_CPU_PROGRAM_STEP_H

#include "backends/cpu/core/kernel.h"

// Makes the operands of the node those of the step, and allocates the pointer arrays in its arena.
//
// INF_EXHAUSTED  no memory.
enum inf_code inf_cpu_step_init_operands(struct inf_cpu_step *step,
                                         struct inf_error *err) INF_NODISCARD;

// Points constant operands at their data, and all others and the results at a placeholder address.
// XNNPACK's first setup, which allocates, can then be done before the first run.
void inf_cpu_step_bind_placeholders(struct inf_cpu_step *step);

// Gives the operators of the step the current addresses of their operands.
//
// INF_EXHAUSTED  no memory; in the first call only.
enum inf_code inf_cpu_step_setup(struct inf_cpu_step *step, struct inf_error *err) INF_NODISCARD;

// Computes the node, or fused nodes, of the step. Within inf_cpu_team_run_region() the threads of
// the slot share the work.
enum inf_code inf_cpu_step_run(struct inf_cpu_step *step, struct inf_error *err) INF_NODISCARD;

// Returns true if XNNPACK computes in the step. XNNPACK calls the pool itself, so such a step runs
// outside of a parallel region.
bool inf_cpu_step_is_xnn(const struct inf_cpu_step *step);

// Frees what create() and setup allocated, but not the step itself.
void inf_cpu_step_fini(struct inf_cpu_step *step);

#endif
