// SPDX-License-Identifier: Apache-2.0
// Measures the rounding error of Winograd's algorithm with the weights of a node.
#ifndef INF_BACKENDS_CPU_WINOGRAD_ERROR_H
#define INF_BACKENDS_CPU_WINOGRAD_ERROR_H

#include "backends/cpu/winograd/conv.h"

// The largest error that is admitted, divided by the largest magnitude of a result.
#define INF_WINOGRAD_ERROR_MAX 1e-3

// Computes a few tiles of results from random inputs, and compares them with direct sums in double.
// `weights` are the weights of the node, which are not transformed.
//
// INF_UNSUPPORTED  the error is above INF_WINOGRAD_ERROR_MAX, or a result is not finite.
// INF_EXHAUSTED    no memory.
enum inf_code inf_winograd_error_check(const struct inf_winograd_conv *conv, const float *weights,
                                       const struct inf_node *node,
                                       struct inf_error *err) INF_NODISCARD;

#endif
