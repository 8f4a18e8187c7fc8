// SPDX-License-Identifier: Apache-2.0
// Checks samples of what a shader computed against sums in double.
//
// All functions return the largest error of a sample, divided by the sum of the absolute values of
// its terms, or infinity if a result is not finite. A result is not checked if that sum is above
// `most`, the largest number that the shader can store, or not finite: a shader may then give
// infinity or NaN.
#ifndef INF_BACKENDS_VULKAN_OPS_SAMPLE_H
#define INF_BACKENDS_VULKAN_OPS_SAMPLE_H

#include "backends/vulkan/ops/conv.h"
#include "backends/vulkan/ops/product.h"

// Checks results of a convolution whose input is `x`. Returns -1 if the activation is not one that
// this function knows.
double vk_conv_sample_error(const struct vk_conv *conv, const float *bias, const float *x,
                            const float *y, double most);

// Checks results of the product of two tensors. Returns -1 as vk_conv_sample_error() does.
double vk_product_sample_error(const struct vk_product *product, const float *a, const float *b,
                               const float *bias, const float *y, double most);

#endif
