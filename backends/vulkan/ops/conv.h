// SPDX-License-Identifier: Apache-2.0
// The state of a convolution that is being lowered, shared by all its shaders. conv.c chooses the
// shader.
#ifndef INF_BACKENDS_VULKAN_OPS_CONV_H
#define INF_BACKENDS_VULKAN_OPS_CONV_H

#include "backends/vulkan/lowering/lowering.h"

// The output channels of a tile of conv_tile.comp, and the bytes after its last weight that it may
// read.
#define VK_TILE_CHANNELS    16u
#define VK_TILE_SPARE_BYTES 128u

// Returns the least multiple of `unit` that is at least `count`.
static inline uint32_t vk_round_up(uint32_t count, uint32_t unit)
{
    return (count + unit - 1) / unit * unit;
}

// The weights of a convolution: how they are laid out in the graph (strides), and how many blocks
// shaders read.
struct vk_conv_weights {
    const float *from;
    uint32_t taps;
    uint32_t group_in, group_out, groups;
    uint32_t group_blocks; // number of blocks of four output channels
    // True: an earlier dispatch of the node writes the weights to scratch memory, in the layout of
    // the shader. `from` and the strides are not used then.
    bool in_scratch;
    // The strides of the weights as they are laid out in the graph, in elements: between taps,
    // between input channels, and between output channels.
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
    // `added`: value of the residual, or INF_VALUE_NONE; `y`: value of the result
    uint32_t added, y;
};

// Returns the multiply-adds of the convolution.
uint64_t vk_conv_macs(const struct vk_conv *conv);

// Binds the bias and, for prelu, the slopes, in blocks of four channels. Each group of the
// convolution has `group_blocks` blocks.
enum inf_code vk_conv_bind_channels(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                                    const struct vk_conv *conv, uint32_t group_blocks,
                                    struct inf_error *err) INF_NODISCARD;

// Binds the residual. If there is none, binds the input again, which the shader then does not read.
enum inf_code vk_conv_bind_added(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                                 const struct vk_conv *conv, struct inf_error *err) INF_NODISCARD;

// Returns how the shader loads the residual (ADDED_*).
uint32_t vk_conv_added_mode(const struct vk_conv *conv);

// Sets `one_tap`: the window has one tap, which never reaches outside the image. If such a
// convolution also has one result for each pixel, treats all pixels as one long row, because its
// result does not depend on rows. Fewer pixels beyond the end of a row are then computed in vain.
void vk_conv_flatten(struct vk_conv *conv);

// Describes the convolution of operand 0 with the filter [kh,kw,ci/groups,co], operand 1. Sets
// `images`, `window` and `weights`, except the pointer to the weights.
void vk_conv_init_filter(struct vk_conv *conv, const struct vk_lowering *lowering, uint32_t groups);

// Describes a product of a matrix of `rows` rows and `k` columns with a constant one of `k` rows
// and `n` columns: a convolution with one tap, whose pixels are the rows. If `transposed` is true,
// the constant matrix is stored as n rows of k numbers. Sets the same members as
// vk_conv_init_filter().
void vk_conv_init_rows(struct vk_conv *conv, uint32_t rows, uint32_t k, uint32_t n,
                       bool transposed);

// Fills in the residual from the lowering context, and the activation. Returns INF_UNSUPPORTED if
// no shader has the activation.
enum inf_code vk_conv_check_activation(const struct vk_lowering *lowering, struct vk_conv *conv,
                                       struct inf_error *err) INF_NODISCARD;

// Emits a convolution whose window, weights and activation are set.
enum inf_code vk_emit_conv(struct vk_lowering *lowering, struct vk_conv *conv,
                           struct inf_error *err) INF_NODISCARD;

// Returns true if the shader conv_tile.comp can compute the convolution on this device and was
// measured to be faster than conv.comp.
bool vk_conv_is_tiled(const struct vk_lowering *lowering, const struct vk_conv *conv);

// Returns the iterations of loops of conv_tile.comp, which reads `step` of the `channels` input
// channels of a tap at once: 4, 3 or 1.
uint64_t vk_tile_iterations(uint32_t taps, uint32_t channels, uint32_t step);

// Emits the convolution with the shader conv_tile.comp. If the driver cannot build the shader,
// emits nothing and sets *out_built to false.
enum inf_code vk_emit_tiles(struct vk_lowering *lowering, struct vk_conv *conv, bool *out_built,
                            struct inf_error *err) INF_NODISCARD;

#endif
