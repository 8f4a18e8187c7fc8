// SPDX-License-Identifier: Apache-2.0
// The weights of Winograd's algorithm: G g G' of backends/base/winograd.h, as the products read
// them.
#ifndef INF_BACKENDS_VULKAN_OPS_WINOGRAD_WEIGHTS_H
#define INF_BACKENDS_VULKAN_OPS_WINOGRAD_WEIGHTS_H

#include "backends/base/winograd.h"
#include "backends/vulkan/ops/conv.h"

// What is packed, and in which layout.
struct vk_winograd_packing {
    const struct vk_conv_weights *weights; // of one group, with nine taps
    const struct inf_winograd_form *form;
    size_t rows;   // of a matrix: at least the input channels; the rows behind them stay 0
    size_t across; // output channels of a block; those behind the last one stay 0
};

// A vk_fill_fn whose context is a struct vk_winograd_packing. Writes floats in the layout
// [matrix][block of output channels][row][output channel of the block].
void vk_winograd_pack(void *bytes, const void *context);

#endif
