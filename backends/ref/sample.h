// SPDX-License-Identifier: Apache-2.0
// The cubic filter function that resample and grid_sample use for their interpolation weights.
#ifndef INF_BACKENDS_REF_SAMPLE_H
#define INF_BACKENDS_REF_SAMPLE_H

// Returns the weight of an element at `distance`, for the cubic with parameter `a`.
double inf_ref_cubic(double distance, double a);

#endif
