// SPDX-License-Identifier: Apache-2.0
// Weights of the cubic that resample and grid_sample share.
#ifndef INF_BACKENDS_REF_SAMPLE_H
#define INF_BACKENDS_REF_SAMPLE_H

// The weight of an element `distance` away, for the cubic with parameter `a`.
double inf_ref_cubic(double distance, double a);

#endif
