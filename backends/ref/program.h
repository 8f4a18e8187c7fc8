// SPDX-License-Identifier: Apache-2.0
// Programs of the reference device: a list of nodes whose operands were looked up at compilation.
#ifndef INF_BACKENDS_REF_PROGRAM_H
#define INF_BACKENDS_REF_PROGRAM_H

#include "backends/device/backend.h"

// Implements the `compile` entry of struct inf_backend.
enum inf_code inf_ref_program_compile(struct inf_program **out_program, struct inf_device *device,
                                      const struct inf_segment *segment, uint32_t flags,
                                      struct inf_error *err) INF_NODISCARD;
// Implements the `program_destroy` entry of struct inf_backend.
void inf_ref_program_destroy(struct inf_program *program);
// Implements the `run` entry of struct inf_backend.
enum inf_code inf_ref_program_run(struct inf_program *program, const struct inf_run *run,
                                  struct inf_ticket *ticket, struct inf_error *err) INF_NODISCARD;
// Implements the `profile` entry of struct inf_backend.
uint32_t inf_ref_program_profile(const struct inf_program *program, uint32_t slot,
                                 struct inf_step_profile *steps, uint32_t capacity);

// Returns INF_OK if the reference device can compute `node`: the operator has a kernel, and all
// types and shapes are known.
enum inf_code inf_ref_program_supports(struct inf_device *device, const struct inf_graph *graph,
                                       uint32_t node, struct inf_error *err) INF_NODISCARD;

#endif
