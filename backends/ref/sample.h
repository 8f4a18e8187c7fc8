// SPDX-License-Identifier: Apache-2.0
// Weights of the cubic filter, for resample and grid_sample.
#ifndef INF_BACKENDS_REF_SAMPLE_H
#define INF_BACKENDS_REF_SAMPLE_H

// Returns the weight of an element at `distance`, for the cubic with parameter `a`.
double inf_ref_cubic(double distance, double a);

#endif
