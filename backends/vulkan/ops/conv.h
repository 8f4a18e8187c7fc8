// SPDX-License-Identifier: Apache-2.0
// A convolution on its way to a dispatch: what its shaders share. conv.c says which of them makes it.
#ifndef INF_BACKENDS_VULKAN_OPS_CONV_H
#define INF_BACKENDS_VULKAN_OPS_CONV_H

#include "backends/vulkan/lowering/lowering.h"

// How the weights of any of them lie in the graph and in the shader.
struct vk_conv_weights {
    const float *from;
    uint32_t taps;
    uint32_t group_in, group_out, groups;
    uint32_t group_blocks; // of four output channels
    // Elements between neighbours in `from`.
    size_t tap_stride, in_stride, out_stride;
};

// One convolution, all but its operands' places.
struct vk_conv {
    struct vk_window window;
    struct vk_conv_weights weights;
    struct vk_activation activation;
    uint32_t bias_index; // of the operand; the slopes of prelu are the next one
    uint32_t images;
    bool transposed, one_tap;
    const float *slopes; // of prelu; NULL: none
    uint32_t added, y;   // values: what is added, INF_VALUE_NONE where nothing is, and what is made
};

// Multiply-adds of it.
uint64_t vk_conv_macs(const struct vk_conv *conv);

// Appends its bias and, for prelu, its slopes: `group_blocks` blocks of four channels a group.
enum inf_code vk_conv_bind_channels(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                                    const struct vk_conv *conv, uint32_t group_blocks,
                                    struct inf_error *err) INF_NODISCARD;

// Appends what is added to it; where nothing is, its input once more, which the shader does not read.
enum inf_code vk_conv_bind_added(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                                 const struct vk_conv *conv, struct inf_error *err) INF_NODISCARD;

// How that is loaded (ADDED_*).
uint32_t vk_conv_added_mode(const struct vk_conv *conv);

// Makes the dispatch of a convolution whose window, weights and activation are filled in.
enum inf_code vk_emit_conv(struct vk_lowering *lowering, struct vk_conv *conv,
                           struct inf_error *err) INF_NODISCARD;

// Whether conv_tile.comp makes it, on this device: where it can, and was measured to be quicker.
bool vk_conv_is_tiled(const struct vk_lowering *lowering, const struct vk_conv *conv);

// Whether Winograd's algorithm makes it, on this device: where it can, and was measured to be quicker.
bool vk_conv_is_winograd(const struct vk_lowering *lowering, const struct vk_conv *conv);

// Makes the dispatches of it by that. *out_built is false where the driver cannot build them: nothing was made then.
enum inf_code vk_emit_winograd(struct vk_lowering *lowering, const struct vk_conv *conv,
                               bool *out_built, struct inf_error *err) INF_NODISCARD;

// Makes the dispatch by conv_tile.comp. *out_built is false where the driver cannot build it: nothing was made then.
enum inf_code vk_emit_tiles(struct vk_lowering *lowering, struct vk_conv *conv, bool *out_built,
                            struct inf_error *err) INF_NODISCARD;

#endif
