// SPDX-License-Identifier: Apache-2.0
// Races of shaders: if several shaders can compute a convolution, a product of two tensors or an
// attention, all of them run on the GPU, and the fastest one is used from then on. Each is checked
// before it may win, because some drivers compile shaders that compute wrongly.
#ifndef INF_BACKENDS_VULKAN_PROGRAM_SHADER_RACE_H
#define INF_BACKENDS_VULKAN_PROGRAM_SHADER_RACE_H

#include "backends/device/device.h"
#include "backends/vulkan/ops/shader_choice.h"

// How one candidate did.
struct vk_shader_time {
    char name[INF_RACE_WINNER_TEXT];
    uint64_t least_ns; // shortest time; 0: it was not built, failed or computed wrongly
    // Largest error of the checked results, relative to the sum of the absolute products; -1: not
    // checked.
    double error;
    bool wrong; // true: the error is too large
};

// Returns the key under which the winner for node `node` of the segment is recorded; 0 if there are
// fewer than two candidates or the GPU has no races. If `attention` is true, the key is that of the
// attention whose last node is `node`.
uint64_t vk_shader_race_key(struct inf_device *device, const struct inf_segment *segment,
                            uint32_t node, bool attention);

// Runs all candidates for node `node` of the segment; if `attention` is true, for the attention
// whose last node is `node`. *out_count is their number, 0 if there is no choice or the GPU has no
// races. *out_key is the key under which the winner is recorded. A candidate that computes wrongly
// is logged. Its shaders are excluded on this GPU from then on, except if the candidate is the
// nodes of an attention.
enum inf_code vk_shader_race_node(struct vk_shader_time times[VK_SHADER_CANDIDATES],
                                  uint32_t *out_count, uint64_t *out_key, struct inf_device *device,
                                  const struct inf_segment *segment, uint32_t node, bool attention,
                                  struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// The function choose_kernels() of struct inf_backend: races all nodes of the segment whose
// winners are not recorded, within the limits of race_results.h.
void vk_shader_race_segment(struct inf_device *device,
                            const struct inf_segment *segment) INF_MAY_BLOCK;

#endif
