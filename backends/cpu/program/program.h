// SPDX-License-Identifier: Apache-2.0
// Programs of the cpu device. A program holds the steps of a segment once for each slot (one
// concurrent run), because a step cannot run twice at the same time.
#ifndef INF_BACKENDS_CPU_PROGRAM_PROGRAM_H
#define INF_BACKENDS_CPU_PROGRAM_PROGRAM_H

#include "backends/cpu/native/fusion.h"
#include "backends/cpu/program/device.h"
#include "backends/device/backend.h"

// Functions for struct inf_backend. Weights are packed when a program is compiled, so the flag
// INF_COMPILE_ONLY has no effect. The packed weights of native kernels are shared by all slots
// (pack.h); XNNPACK's operators have their own copy in each slot.
enum inf_code inf_cpu_program_compile(struct inf_program **out_program, struct inf_device *device,
                                      const struct inf_segment *segment, uint32_t flags,
                                      struct inf_error *err) INF_NODISCARD;

// Compiles at the fusion level `most`, regardless of which level won a timing comparison. Used by
// timing comparisons.
enum inf_code inf_cpu_program_compile_at_level(struct inf_program **out_program,
                                               struct inf_cpu_device *device,
                                               const struct inf_segment *segment,
                                               enum inf_cpu_fusion_level most,
                                               struct inf_error *err) INF_NODISCARD;

// The functions of struct inf_backend that destroy and run a program, and report its packed weights
// and the times of its steps.
void inf_cpu_program_destroy(struct inf_program *program);
enum inf_code inf_cpu_program_run(struct inf_program *program, const struct inf_run *run,
                                  struct inf_ticket *ticket, struct inf_error *err) INF_NODISCARD;
struct inf_blob_form *inf_cpu_program_packed(const struct inf_program *program, uint32_t node,
                                             uint32_t input);
uint32_t inf_cpu_program_profile(const struct inf_program *program, uint32_t slot,
                                 struct inf_step_profile *steps, uint32_t capacity);

#endif
