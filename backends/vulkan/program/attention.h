// SPDX-License-Identifier: Apache-2.0
// Attention in one dispatch (shaders/attention.comp): the product of queries and keys, scale, mask,
// softmax and the product with the values.
#ifndef INF_BACKENDS_VULKAN_PROGRAM_ATTENTION_H
#define INF_BACKENDS_VULKAN_PROGRAM_ATTENTION_H

#include "backends/device/attention_nodes.h"
#include "backends/vulkan/ops/shader_choice.h"

// Finds the attention whose last node is `node`, if one dispatch computes it. Returns false if
// there is no such attention, or if the GPU computes its nodes one by one. `forced` decides between
// the two; if it is NULL or a choice for another kind of node, the recorded winner or the rule
// decides.
bool vk_attention_find(struct inf_attention *attention, struct vk_gpu *gpu,
                       const struct inf_segment *segment, uint32_t node,
                       const struct vk_shader_choice *forced);

// Returns the last node of the attention whose dispatch computes `node` too; INF_NODE_NONE if there
// is none, or if `node` is itself the last node. `forced` is as for vk_attention_find().
uint32_t vk_attention_end(struct vk_gpu *gpu, const struct inf_segment *segment, uint32_t node,
                          const struct vk_shader_choice *forced);

// Returns true if `choice`, which may be NULL, is about an attention.
bool vk_attention_is_choice(const struct vk_shader_choice *choice);

// Lists the candidates for the attention whose last node is the node of `lowering`, as
// vk_shader_choose() does: one dispatch, and the nodes one by one.
void vk_attention_list(const struct vk_lowering *lowering, const struct inf_segment *segment);

// Checks samples of the results of an attention, as ops/sample.h describes. `operands` are the
// queries, keys, values and mask; the mask may be NULL.
double vk_attention_sample_error(const struct inf_attention *attention,
                                 const struct inf_graph *graph, const float *const operands[4],
                                 const float *y, double most);

// Emits the dispatch. `lowering` must be set up for the last node.
//
// INF_UNSUPPORTED  the driver cannot build the shader; from then on the nodes are computed one by
// one on this GPU.
enum inf_code vk_lower_attention(struct vk_lowering *lowering,
                                 const struct inf_attention *attention,
                                 struct inf_error *err) INF_NODISCARD;

#endif
