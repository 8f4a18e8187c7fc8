// SPDX-License-Identifier: Apache-2.0
// A convolution that is being lowered: what all its shaders share. conv.c chooses the shader.
#ifndef INF_BACKENDS_VULKAN_OPS_CONV_H
#define INF_BACKENDS_VULKAN_OPS_CONV_H

#include "backends/vulkan/lowering/lowering.h"

// Where weights are in the graph, and the shape in which shaders read them.
struct vk_conv_weights {
    const float *from;
    uint32_t taps;
    uint32_t group_in, group_out, groups;
    uint32_t group_blocks; // blocks of four output channels
    // Elements between neighbours in `from`.
    size_t tap_stride, in_stride, out_stride;
};

// One convolution, without the places of its operands.
struct vk_conv {
    struct vk_window window;
    struct vk_conv_weights weights;
    struct vk_activation activation;
    uint32_t bias_index; // operand index; the slopes of prelu are the next operand
    uint32_t images;
    bool transposed, one_tap;
    const float *slopes; // of prelu; NULL: none
    uint32_t added, y;   // values: the residual (INF_VALUE_NONE: none) and the result
};

// Returns the multiply-adds of the convolution.
uint64_t vk_conv_macs(const struct vk_conv *conv);

// Binds the bias and, for prelu, the slopes: `group_blocks` blocks of four channels in a group.
enum inf_code vk_conv_bind_channels(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                                    const struct vk_conv *conv, uint32_t group_blocks,
                                    struct inf_error *err) INF_NODISCARD;

// Binds the residual. Without one the input is bound again, and the shader does not read it.
enum inf_code vk_conv_bind_added(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                                 const struct vk_conv *conv, struct inf_error *err) INF_NODISCARD;

// Returns how the residual is loaded (ADDED_*).
uint32_t vk_conv_added_mode(const struct vk_conv *conv);

// Emits a convolution whose window, weights and activation are set.
enum inf_code vk_emit_conv(struct vk_lowering *lowering, struct vk_conv *conv,
                           struct inf_error *err) INF_NODISCARD;

// Returns true if conv_tile.comp can compute it on this device, and was measured to be faster.
bool vk_conv_is_tiled(const struct vk_lowering *lowering, const struct vk_conv *conv);

// Returns true if Winograd's algorithm can compute it on this device, and was measured to be
// faster.
bool vk_conv_is_winograd(const struct vk_lowering *lowering, const struct vk_conv *conv);

// Emits the dispatches of Winograd's algorithm. *out_built is false, and nothing is emitted, if the
// driver cannot build them.
enum inf_code vk_emit_winograd(struct vk_lowering *lowering, const struct vk_conv *conv,
                               bool *out_built, struct inf_error *err) INF_NODISCARD;

// Emits conv_tile.comp. *out_built is false, and nothing is emitted, if the driver cannot build it.
enum inf_code vk_emit_tiles(struct vk_lowering *lowering, struct vk_conv *conv, bool *out_built,
                            struct inf_error *err) INF_NODISCARD;

#endif
