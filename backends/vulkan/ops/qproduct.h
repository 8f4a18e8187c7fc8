// SPDX-License-Identifier: Apache-2.0
// Operands that qconv2d and qmatmul have in common, packed for shaders.
#ifndef INF_BACKENDS_VULKAN_OPS_QPRODUCT_H
#define INF_BACKENDS_VULKAN_OPS_QPRODUCT_H

#include "backends/vulkan/ops/conv.h"

// A product of bytes whose operands other than x are constants. The geometry, and the layout of the
// weights in the graph, are those of a convolution, whose pointer to weights is NULL. The bounds of
// its activation are those of the result minus its zero point.
struct vk_qproduct {
    struct vk_conv conv;
    // XOR with these converts bytes of x and of the weights to signed ones: 0 or 0x80
    uint8_t x_flip, w_flip;
    int32_t x_zero; // of signed x
    int32_t y_zero;
    const uint8_t *weights;
    const uint8_t *w_zeros; // as in the graph; NULL: all zero points are 0
    size_t w_zero_count;    // 1, or the number of channels
    const int32_t *bias;    // NULL: there is no bias
    const float *scales;    // NULL: the result is the sums
    size_t scale_count;     // 1, or the number of channels
};

// Reads inputs 1 to 6 and the output of the node, which has the given bounds. Fills all members but
// `conv`, of which it sets only the activation.
//
// INF_UNSUPPORTED  an operand is not constant, or the device cannot store bytes.
enum inf_code vk_qproduct_init(struct vk_qproduct *product, const struct vk_lowering *lowering,
                               int32_t min, int32_t max, struct inf_error *err) INF_NODISCARD;

// Returns true if at least one signed weight has a zero point that is not 0.
bool vk_qproduct_has_w_zeros(const struct vk_qproduct *product);

// Adds the operands to the dispatch, in the order of the shaders: x, the weights as `fill` packs
// them to `weight_bytes` from the product, the channels (lib/requantize.glsl), and y. The starts of
// sums include all terms that depend on no x if `expands` is set, and only the bias otherwise.
enum inf_code vk_qproduct_bind(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                               const struct vk_qproduct *product, size_t weight_bytes,
                               vk_fill_fn *fill, bool expands, struct inf_error *err) INF_NODISCARD;

// Returns weight `out` of tap `tap` and input channel `in` of its group, as a signed byte.
int32_t vk_qproduct_weight(const struct vk_qproduct *product, uint32_t tap, uint32_t in,
                           uint32_t out);

// Returns the zero point of the signed weights of channel `out`.
int32_t vk_qproduct_w_zero(const struct vk_qproduct *product, uint32_t out);

// Emits the dispatch, whose shader is chosen and whose operands are bound, for invocations of
// `pixels` pixels. `tap` has the iterations of loops that each tap of the window takes.
enum inf_code vk_qproduct_emit(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                               struct vk_qproduct *product, uint32_t pixels, struct vk_loops tap,
                               struct inf_error *err) INF_NODISCARD;

#endif
