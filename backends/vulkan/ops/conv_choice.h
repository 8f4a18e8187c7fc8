// SPDX-License-Identifier: Apache-2.0
// The choice among the shaders that can compute a convolution: the fixed rule, the list of
// candidates for a race, and the recorded winners of races (program/shader_race.h).
#ifndef INF_BACKENDS_VULKAN_OPS_CONV_CHOICE_H
#define INF_BACKENDS_VULKAN_OPS_CONV_CHOICE_H

#include "backends/storage/race_results.h"
#include "backends/vulkan/ops/conv.h"

// The shaders, which differ in how they divide the work among invocations.
enum vk_conv_method {
    VK_CONV_STRIPS,     // conv.comp: an invocation computes some pixels of one row
    VK_CONV_TILES,      // conv_tile.comp: subgroups of eight share weights
    VK_CONV_WINOGRAD,   // Winograd's algorithm, winograd_in.comp, conv_tile.comp, winograd_out.comp
    VK_CONV_BLOCKS,     // conv_block.comp: work groups share x and weights
    VK_CONV_BLOCKS_F16, // conv_block.comp with products in 16 bits
    VK_CONV_MATRICES,   // conv_matrix.comp: instructions multiply matrices of 16-bit floats
    VK_CONV_SPLIT,      // conv_split.comp: several invocations add one sum
    VK_CONV_DEPTHWISE,  // depthwise.comp
    VK_CONV_METHODS
};

// A shader with the sizes that it can be built for.
struct vk_conv_choice {
    enum vk_conv_method method;
    // Of an invocation. MATRICES: the rows of matrices of a subgroup. 0 for methods that do not
    // have this size.
    uint32_t pixels;
    // BLOCKS and BLOCKS_F16: the vectors of channels of an invocation. MATRICES: the columns of
    // matrices of a subgroup. DEPTHWISE: its rows. SPLIT: the invocations that add a sum. Else 0.
    uint32_t vectors;
};

// The most candidates of a convolution.
#define VK_CONV_CANDIDATES 24u

// The candidates for a convolution, the choice of the fixed rule first. Filled by the function that
// lowers the node, if the lowering context points to this struct.
struct vk_conv_candidates {
    uint64_t key; // under which the winner is recorded; 0: the node is no convolution
    uint32_t count;
    struct vk_conv_choice list[VK_CONV_CANDIDATES];
    struct vk_conv conv; // as it is lowered
};

// Writes the name of a choice, such as "blocks_4_2".
void vk_conv_choice_print(const struct vk_conv_choice *choice, char text[INF_RACE_WINNER_TEXT]);

// Chooses how the convolution is computed: as the lowering context demands, or as a race found out,
// or by `rule`. All of the `count` candidates must be possible; `rule` may be one of them. If the
// lowering context asks for the candidates, copies them there, `rule` first.
struct vk_conv_choice vk_conv_choose(const struct vk_lowering *lowering, const struct vk_conv *conv,
                                     struct vk_conv_choice rule,
                                     const struct vk_conv_choice *candidates, uint32_t count);

// Checks some results of a convolution whose input is `x` against sums in double. Returns the
// largest error, divided by the sum of the absolute products of its result, or infinity if a result
// is not finite. Results are not checked if the sum of the absolute products is above `most`, the
// largest number that the shader can store, or not finite: a shader may then give infinity or NaN.
// Returns -1 if the activation is not one that this function knows.
double vk_conv_sample_error(const struct vk_conv *conv, const float *bias, const float *x,
                            const float *y, double most);

#endif
