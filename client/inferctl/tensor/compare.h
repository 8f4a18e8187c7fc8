// SPDX-License-Identifier: Apache-2.0
// The difference between two tensors.
#ifndef INF_CLIENT_INFERCTL_TENSOR_COMPARE_H
#define INF_CLIENT_INFERCTL_TENSOR_COMPARE_H

#include <stdbool.h>

#include "client/inferd.h"

struct tensor_difference {
    // The largest |got - wanted|; infinite if only one of the two is NaN or infinite.
    double max_abs;
    double max_rel; // the largest |got - wanted| / |wanted|, if |wanted| is at least 1e-6
    double cosine;  // cosine of the angle between the tensors as vectors; 1 if both are zero
    bool same_top;  // the largest element is at the same position in both tensors
    bool within;    // every |got - wanted| is at most tolerance * max(1, |wanted|)
};

// Compares two tensors of the same size element by element. NaN equals NaN at the same position,
// and so do infinities of the same sign.
struct tensor_difference tensor_compare(const inferd_tensor *got, const inferd_tensor *wanted,
                                        double tolerance);

#endif
