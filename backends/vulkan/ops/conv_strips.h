// SPDX-License-Identifier: Apache-2.0
// Helpers for the shaders of convolutions whose weights are in blocks of four output channels, and
// for those of them that also compute products of two tensors.
#ifndef INF_BACKENDS_VULKAN_OPS_CONV_STRIPS_H
#define INF_BACKENDS_VULKAN_OPS_CONV_STRIPS_H

#include "backends/vulkan/ops/shader_choice.h"

// Returns the number of pixels that one invocation computes by the fixed rule, for rows of `width`
// pixels. With more pixels each loaded weight is used more often, but more pixels beyond the end of
// a row are computed in vain.
uint32_t vk_strip_pixels(const struct vk_lowering *lowering, uint32_t width);

// Halves the number of pixels of an invocation, constant 1 of the variant, until the driver can
// build the shader. Returns the number.
uint32_t vk_reduce_pixels(struct vk_lowering *lowering, struct vk_dispatch *dispatch);

// Binds x, weights, bias and slopes, the residual if the shader adds one, and y.
enum inf_code vk_conv_bind_operands(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                                    struct vk_conv *conv, struct inf_error *err) INF_NODISCARD;

// Completes the window for invocations that compute `pixels` pixels each.
void vk_conv_finish_window(struct vk_conv *conv, uint32_t pixels);

// Emits conv.comp, whose invocations compute four channels of `pixels` pixels.
enum inf_code vk_emit_strips(struct vk_lowering *lowering, struct vk_conv *conv, uint32_t pixels,
                             struct inf_error *err) INF_NODISCARD;

// Returns true if the GPU can run conv_matrix.comp with the sizes of the choice.
bool vk_can_use_matrices(const struct vk_gpu *gpu, const struct vk_shader_choice *choice);

// Emits conv_block.comp, in 16 bits or not, conv_matrix.comp or conv_split.comp, with the sizes of
// the choice. If the driver cannot build it, emits nothing and sets *out_built to false.
enum inf_code vk_emit_blocks(struct vk_lowering *lowering, struct vk_conv *conv,
                             const struct vk_shader_choice *choice, bool *out_built,
                             struct inf_error *err) INF_NODISCARD;
enum inf_code vk_emit_matrices(struct vk_lowering *lowering, struct vk_conv *conv,
                               const struct vk_shader_choice *choice, bool *out_built,
                               struct inf_error *err) INF_NODISCARD;
enum inf_code vk_emit_split(struct vk_lowering *lowering, struct vk_conv *conv,
                            const struct vk_shader_choice *choice, bool *out_built,
                            struct inf_error *err) INF_NODISCARD;

// The constants of a variant for products of two tensors that are 1 if the shader reads vectors of
// four numbers of a or of b.
#define VK_PAIR_A_VECTOR 2
#define VK_PAIR_B_VECTOR 6

// Returns the variant of conv_block.comp, in 16 bits or not, or of conv_matrix.comp that computes a
// product of two tensors with the sizes of the choice.
struct vk_variant vk_pair_variant(const struct vk_gpu *gpu, const struct vk_product *product,
                                  const struct vk_shader_choice *choice);

// Sets the push constants, the invocations and the cost of a dispatch with the variant that
// vk_pair_variant() returns.
void vk_pair_set_size(struct vk_dispatch *dispatch, const struct vk_gpu *gpu,
                      const struct vk_product *product, const struct vk_shader_choice *choice);

// Returns the iterations of loops of an invocation of the variant that vk_pair_variant() returns.
uint64_t vk_pair_iterations(const struct vk_gpu *gpu, const struct vk_product *product,
                            const struct vk_shader_choice *choice);

// Emits a product of two tensors with the variant that vk_pair_variant() returns. If the driver
// cannot build it, emits nothing and sets *out_built to false.
enum inf_code vk_emit_pair(struct vk_lowering *lowering, const struct vk_product *product,
                           const struct vk_shader_choice *choice, bool *out_built,
                           struct inf_error *err) INF_NODISCARD;

#endif
