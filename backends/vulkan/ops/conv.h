// SPDX-License-Identifier: Apache-2.0
// The state of a convolution that is being lowered, shared by all its shaders. conv.c chooses the
// shader.
#ifndef INF_BACKENDS_VULKAN_OPS_CONV_H
#define INF_BACKENDS_VULKAN_OPS_CONV_H

#include "backends/vulkan/lowering/lowering.h"

// Strides of the weights in the graph, and the shape in which shaders read them.
struct vk_conv_weights {
    const float *from;
    uint32_t taps;
    uint32_t group_in, group_out, groups;
    uint32_t group_blocks; // number of blocks of four output channels
    // The distance in elements between neighbours in `from`.
    size_t tap_stride, in_stride, out_stride;
};

// One convolution, without the addresses of its operands.
struct vk_conv {
    struct vk_window window;
    struct vk_conv_weights weights;
    struct vk_activation activation;
    uint32_t bias_index; // operand index of the bias; the next operand holds the slopes of prelu
    uint32_t images;
    bool transposed, one_tap;
    const float *slopes; // slopes of prelu; NULL: none
    uint32_t added, y;   // values: the residual (INF_VALUE_NONE: none) and the result
};

// Returns the multiply-adds of the convolution.
uint64_t vk_conv_macs(const struct vk_conv *conv);

// Binds the bias and, for prelu, the slopes. Each group has `group_blocks` blocks of four channels.
enum inf_code vk_conv_bind_channels(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                                    const struct vk_conv *conv, uint32_t group_blocks,
                                    struct inf_error *err) INF_NODISCARD;

// Binds the residual. If there is none, binds the input again, which the shader then does not read.
enum inf_code vk_conv_bind_added(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                                 const struct vk_conv *conv, struct inf_error *err) INF_NODISCARD;

// Returns how the shader loads the residual (ADDED_*).
uint32_t vk_conv_added_mode(const struct vk_conv *conv);

// Emits a convolution whose window, weights and activation are set.
enum inf_code vk_emit_conv(struct vk_lowering *lowering, struct vk_conv *conv,
                           struct inf_error *err) INF_NODISCARD;

// Returns true if conv_tile.comp can compute the convolution on this device and was measured to be
// faster.
bool vk_conv_is_tiled(const struct vk_lowering *lowering, const struct vk_conv *conv);

// Returns true if Winograd's algorithm can compute the convolution on this device and was measured
// to be faster.
bool vk_conv_is_winograd(const struct vk_lowering *lowering, const struct vk_conv *conv);

// Emits the dispatches of Winograd's algorithm. If the driver cannot build them, emits nothing and
// sets *out_built to false.
enum inf_code vk_emit_winograd(struct vk_lowering *lowering, const struct vk_conv *conv,
                               bool *out_built, struct inf_error *err) INF_NODISCARD;

// Emits conv_tile.comp. If the driver cannot build it, emits nothing and sets *out_built to false.
enum inf_code vk_emit_tiles(struct vk_lowering *lowering, struct vk_conv *conv, bool *out_built,
                            struct inf_error *err) INF_NODISCARD;

#endif
