// SPDX-License-Identifier: Apache-2.0
// Which row computes a node where several can: by rule the first, or whichever won a race, once for each
// kind of node. Who won is kept in a file, so that the next start chooses alike without a race.
#ifndef INF_BACKENDS_CPU_CHOICES_H
#define INF_BACKENDS_CPU_CHOICES_H

#include "backends/cpu/cpu_kernel.h"

struct inf_cpu_choices;

// Reads DIRECTORY/kernels.db, where there is one; NULL as directory: nothing is kept beyond this run.
// `info` says what the choices hold for: the processor and its level of instruction sets.
// *out_choices is the caller's to close.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_cpu_choices_open(struct inf_cpu_choices **out_choices, const char *directory,
                                   const struct inf_device_info *info, const struct inf_log *log,
                                   struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Frees them. NULL is fine.
void inf_cpu_choices_close(struct inf_cpu_choices **choices);

// *out_kernel, static, computes step->node, of a step on which only what is set before create() is looked
// at. Rows race where several can, nobody knows yet who wins, and races have not taken too long already.
// `choices` NULL: by rule. Any thread that may block.
//
// INF_UNSUPPORTED  no row computes it; the text says why.
enum inf_code inf_cpu_choose(const struct inf_cpu_kernel **out_kernel,
                             struct inf_cpu_choices *choices, const struct inf_cpu_step *step,
                             struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
