// SPDX-License-Identifier: Apache-2.0
// The choice among the shaders that can compute a node: the fixed rule, the list of candidates for
// a race, and the recorded winners of races (program/shader_race.h).
#ifndef INF_BACKENDS_VULKAN_OPS_SHADER_CHOICE_H
#define INF_BACKENDS_VULKAN_OPS_SHADER_CHOICE_H

#include "backends/device/attention_nodes.h"
#include "backends/storage/race_results.h"
#include "backends/vulkan/ops/conv.h"
#include "backends/vulkan/ops/product.h"

// The shaders, which differ in how they divide the work among invocations.
enum vk_shader_method {
    VK_BY_STRIPS,         // conv.comp: an invocation computes some pixels of one row
    VK_BY_SQUARES,        // matmul.comp: an invocation computes four rows and columns of a product
    VK_BY_TILES,          // conv_tile.comp: subgroups of eight share weights
    VK_BY_WINOGRAD,       // Winograd's F(4), winograd_in.comp, conv_tile.comp, winograd_out.comp
    VK_BY_WINOGRAD_2,     // Winograd's F(2), winograd_in.comp, conv_block.comp, winograd_out.comp
    VK_BY_WINOGRAD_4,     // the same in the form F(4)
    VK_BY_WINOGRAD_2_F16, // as WINOGRAD_2, with products in 16 bits
    VK_BY_WINOGRAD_2_MATRICES, // as WINOGRAD_2, with products by conv_matrix.comp
    VK_BY_BLOCKS,              // conv_block.comp: work groups share x and weights, or a and b
    VK_BY_BLOCKS_F16,          // conv_block.comp with products in 16 bits
    VK_BY_MATRICES,            // conv_matrix.comp: instructions multiply matrices of 16-bit floats
    VK_BY_SPLIT,               // conv_split.comp: several invocations add one sum
    VK_BY_DEPTHWISE,           // depthwise.comp
    VK_BY_ATTENTION,           // attention.comp: one dispatch computes an attention
    VK_BY_NODES,               // the nodes of an attention, one by one
    VK_METHODS
};

// A shader with the sizes that it can be built for.
struct vk_shader_choice {
    enum vk_shader_method method;
    // The number of pixels that an invocation computes; for products of two tensors, of rows.
    // MATRICES: the number of rows of matrices that a subgroup computes. 0: the method has no such
    // size.
    uint32_t pixels;
    // BLOCKS and BLOCKS_F16: the number of vectors of channels that an invocation computes.
    // WINOGRAD_*: both sizes are those of the product by BLOCKS, BLOCKS_F16 or MATRICES.
    // MATRICES: the number of columns of matrices that a subgroup computes. DEPTHWISE: the number
    // of rows that an invocation computes. SPLIT: the number of invocations that add a sum. 0: the
    // method has no such size.
    uint32_t vectors;
    // BLOCKS and BLOCKS_F16: the number of work groups that share the sums of a block of a
    // convolution; 0: one.
    uint32_t splits;
};

// The kinds of nodes among whose shaders a race chooses.
enum vk_race_subject {
    VK_RACE_CONV,
    VK_RACE_PRODUCT,
    VK_RACE_ATTENTION
};

// The largest number of candidates of a node.
#define VK_SHADER_CANDIDATES 40u

// The candidates for a node, the choice of the fixed rule first. Filled by the function that lowers
// the node, if the lowering context points to this struct.
struct vk_shader_candidates {
    uint64_t key; // under which the winner is recorded; 0: there is no choice
    uint32_t count;
    struct vk_shader_choice list[VK_SHADER_CANDIDATES];
    // The node as it is lowered: the member of the union that `subject` names.
    enum vk_race_subject subject;
    union {
        struct vk_conv conv;
        struct vk_product product;
        struct inf_attention attention;
    };
};

// Writes the name of a choice, such as "blocks_4_2", or "blocks_4_2_8" if sums are split.
void vk_shader_choice_print(const struct vk_shader_choice *choice, char text[INF_RACE_WINNER_TEXT]);

// Returns the key under which the winner for a node is recorded; 0 if the GPU has no races. The
// `size_bytes` bytes of `parts` describe the node.
uint64_t vk_shader_key(const struct vk_lowering *lowering, const void *parts, size_t size_bytes);

// Chooses how the node is computed: as the lowering context demands, else by the recorded winner,
// else by `rule`. Every one of the `count` candidates must be possible; `rule` may be one of them.
// If the lowering context asks for the candidates and `key` is not 0, lists them there, `rule`
// first.
struct vk_shader_choice vk_shader_choose(const struct vk_lowering *lowering, uint64_t key,
                                         struct vk_shader_choice rule,
                                         const struct vk_shader_choice *candidates, uint32_t count);

// Chooses how a convolution is computed, as vk_shader_choose() does.
struct vk_shader_choice vk_conv_choose(const struct vk_lowering *lowering,
                                       const struct vk_conv *conv, struct vk_shader_choice rule,
                                       const struct vk_shader_choice *candidates, uint32_t count);

#endif
