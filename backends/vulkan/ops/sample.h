// SPDX-License-Identifier: Apache-2.0
// Compares samples of the results of a shader with sums in double.
//
// All functions return the largest error of a sample, divided by the sum of the absolute values of
// its terms. They return infinity if a checked result is not finite. A result is not checked if
// that sum is not finite or is above `most`, the largest number that the shader can store, because
// the shader may then give infinity or NaN.
#ifndef INF_BACKENDS_VULKAN_OPS_SAMPLE_H
#define INF_BACKENDS_VULKAN_OPS_SAMPLE_H

#include "backends/vulkan/ops/conv.h"
#include "backends/vulkan/ops/product.h"

// One result before the activation: the sum of its terms, and the sum of their absolute values.
struct vk_sample {
    double sum, size;
};

// The results of a node or of an attention, and what they are computed from.
struct vk_sampled {
    const void *node;       // describes the node or the attention; `compute` knows the type
    const float *inputs[4]; // the operands, in the order that `compute` expects
    size_t count, channels; // number of results, and number of results in a row
    size_t samples;         // number of results that are checked
    struct vk_activation activation;
    const float *slopes; // of prelu
    double pixel_min;    // magnitude that each pixel of a convolution counts as at least
    // Computes result `at`.
    struct vk_sample (*compute)(const struct vk_sampled *sampled, size_t at);
};

// Checks samples of the results `y`. Returns -1 if the activation is not one that this function
// knows.
double vk_sample_error(const struct vk_sampled *sampled, const float *y, double most);

// Checks samples of the results of a convolution whose input is `x`. Returns -1 as
// vk_sample_error() does. In the sum of the absolute values, each pixel of a window counts as at
// least `pixel_min`, also those outside the image: 0, or more for an algorithm whose rounding
// errors depend on all weights and on pixels beside the window.
double vk_conv_sample_error(const struct vk_conv *conv, const float *bias, const float *x,
                            const float *y, double most, double pixel_min);

// Checks samples of the results of a product of two tensors. Returns -1 as vk_sample_error() does.
double vk_product_sample_error(const struct vk_product *product, const float *a, const float *b,
                               const float *bias, const float *y, double most);

#endif
