// SPDX-License-Identifier: Apache-2.0
// What is done with a step, whatever made it: operators of XNNPACK are told where their operands are,
// then run; those of our own just run.
#ifndef INF_BACKENDS_CPU_PROGRAM_STEP_H
#define INF_BACKENDS_CPU_PROGRAM_STEP_H

#include "backends/cpu/core/kernel.h"

// Makes the node's operands those of the step, with room in its arena for where they are.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_cpu_step_init_operands(struct inf_cpu_step *step,
                                         struct inf_error *err) INF_NODISCARD;

// Points constant operands at their data, all others and the result at an address where nothing is: XNNPACK
// allocates in the first setup of an operator only, so that it is done before the first run.
void inf_cpu_step_bind_placeholders(struct inf_cpu_step *step);

// Tells the step's operators where its operands are now.
//
// INF_EXHAUSTED  memory, in the first call only.
enum inf_code inf_cpu_step_setup(struct inf_cpu_step *step, struct inf_error *err) INF_NODISCARD;

// Computes the step's node, or nodes. What others of the slot's team do, they do where
// inf_cpu_team_run_region() is under way.
enum inf_code inf_cpu_step_run(struct inf_cpu_step *step, struct inf_error *err) INF_NODISCARD;

// Whether XNNPACK computes in the step: it calls the pool by itself.
bool inf_cpu_step_is_xnn(const struct inf_cpu_step *step);

// Frees what create() and setup made; not the step.
void inf_cpu_step_fini(struct inf_cpu_step *step);

#endif
