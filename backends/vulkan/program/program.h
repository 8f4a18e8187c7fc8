// SPDX-License-Identifier: Apache-2.0
// Programs: the dispatches of a segment, recorded once for each slot (concurrent run) and replayed
// by each run. A slot is recorded again only if the bindings of a run change.
#ifndef INF_BACKENDS_VULKAN_PROGRAM_PROGRAM_H
#define INF_BACKENDS_VULKAN_PROGRAM_PROGRAM_H

#include "backends/vulkan/program/recording.h"

struct vk_program {
    struct inf_program base;
    struct vk_dispatch_list list;
    struct vk_recording *slots;
    uint32_t slot_count;
    const struct inf_graph *graph; // outlives the program
};

// The functions of struct inf_backend that run and destroy programs.
enum inf_code vk_program_supports(struct inf_device *device, const struct inf_graph *graph,
                                  uint32_t node, struct inf_error *err);
// Compiles a segment. If `forced` is not NULL, it compiles for a race: the segment is one node or
// the nodes of one attention, which are computed as `forced` says, or by other shaders if the
// driver cannot build that choice. Shaders are not checked (shader_check.h).
enum inf_code vk_program_compile_choice(struct inf_program **out_program, struct inf_device *device,
                                        const struct inf_segment *segment,
                                        const struct vk_shader_choice *forced,
                                        struct inf_error *err);
void vk_program_destroy(struct inf_program *program);
enum inf_code vk_program_run(struct inf_program *program, const struct inf_run *run,
                             struct inf_ticket *ticket, struct inf_error *err);
enum inf_code vk_program_wait(struct inf_device *device, struct inf_ticket ticket,
                              uint64_t timeout_ns, struct inf_error *err);
bool vk_program_lost(const struct inf_program *program);
enum inf_code vk_program_finish(struct inf_program *program, const struct inf_run *run,
                                struct inf_error *err);
uint32_t vk_program_profile(const struct inf_program *program, uint32_t slot,
                            struct inf_step_profile *steps, uint32_t capacity);

#endif
