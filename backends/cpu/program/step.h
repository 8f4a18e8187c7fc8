// SPDX-License-Identifier: Apache-2.0
// Creates, sets up and runs a step. XNNPACK's operators get their pointers from a setup call before
// each run. Native kernels need no setup.
#ifndef INF_BACKENDS_CPU_PROGRAM_STEP_H
#define INF_BACKENDS_CPU_PROGRAM_STEP_H

#include "backends/cpu/core/kernel.h"

// Sets the operands of the step to the operands of its node, and allocates the pointer arrays in
// the step's arena.
//
// INF_EXHAUSTED  no memory.
enum inf_code inf_cpu_step_init_operands(struct inf_cpu_step *step,
                                         struct inf_error *err) INF_NODISCARD;

// Points constant operands to their data, and all other operands and the results to a placeholder
// address. Then XNNPACK's first setup call, which allocates memory, can be made before the first
// run.
void inf_cpu_step_bind_placeholders(struct inf_cpu_step *step);

// Creates the step of a single node with a kernel. Restores the evicted constants that the kernel
// reads, and binds placeholders before.
//
// INF_UNSUPPORTED  the kernel needs a race, and declines the node.
// INF_EXHAUSTED    no memory.
enum inf_code inf_cpu_step_create(struct inf_cpu_step *step, const struct inf_cpu_kernel *kernel,
                                  struct inf_error *err) INF_NODISCARD;

// Passes the current addresses of the operands to the operators of the step.
//
// INF_EXHAUSTED  no memory; only the first call can fail with this code.
enum inf_code inf_cpu_step_setup(struct inf_cpu_step *step, struct inf_error *err) INF_NODISCARD;

// Computes the node, or fused nodes, of the step. Within inf_cpu_team_run_region() the threads of
// the slot share the work.
enum inf_code inf_cpu_step_run(struct inf_cpu_step *step, struct inf_error *err) INF_NODISCARD;

// Returns true if the step uses XNNPACK. Such a step runs outside of a parallel region, because
// XNNPACK calls the thread pool itself.
bool inf_cpu_step_is_xnn(const struct inf_cpu_step *step);

// Frees the memory that create() and setup allocated, but not the step itself.
void inf_cpu_step_fini(struct inf_cpu_step *step);

#endif
