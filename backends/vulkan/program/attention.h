// SPDX-License-Identifier: Apache-2.0
// Attention in one dispatch (shaders/attention.comp): the product of queries and keys, scale, mask,
// softmax and the product with the values.
#ifndef INF_BACKENDS_VULKAN_PROGRAM_ATTENTION_H
#define INF_BACKENDS_VULKAN_PROGRAM_ATTENTION_H

#include "backends/device/attention_nodes.h"
#include "backends/vulkan/lowering/lowering.h"

// Finds the attention whose last node is `node`. Returns false if there is none, or if the GPU
// computes its nodes one by one.
bool vk_attention_find(struct inf_attention *attention, struct vk_gpu *gpu,
                       const struct inf_segment *segment, uint32_t node);

// Returns the last node of the attention that computes `node` too; INF_NODE_NONE if there is none,
// or if `node` is itself the last node.
uint32_t vk_attention_end(struct vk_gpu *gpu, const struct inf_segment *segment, uint32_t node);

// Emits the dispatch. `lowering` must be set up for the last node.
//
// INF_UNSUPPORTED  the driver cannot build the shader; from then on the nodes are computed one by
// one on this GPU.
enum inf_code vk_lower_attention(struct vk_lowering *lowering,
                                 const struct inf_attention *attention,
                                 struct inf_error *err) INF_NODISCARD;

#endif
