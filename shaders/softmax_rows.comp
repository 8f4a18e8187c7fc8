// SPDX-License-Identifier: Apache-2.0
// Computes exp(x - max) / sum, or its logarithm, along the last axis of [count, n]. A subgroup
// computes one row.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "constants.h"
#include "lib/storage.glsl"
#include "lib/rows.glsl"
#include "lib/functions.glsl"

layout(constant_id = 1) const bool LOGARITHM = false;

READS(0, x)
WRITES(1, y)
layout(push_constant) uniform P { uint count, n, inner; } p;

void main()
{
    uint id = row();
    if (id >= p.count)
        return;
    uint lane = subgroupExclusiveAdd(1u), lanes = subgroupAdd(1u);
    uint at = id * p.n, n = p.n;
    float largest = -INFINITY;
    for (uint i = lane; i < n; i += lanes)
        largest = max(largest, x(at + i));
    largest = subgroupMax(largest);
    float sum = 0.0;
    for (uint i = lane; i < n; i += lanes)
        sum += exp_of(x(at + i) - largest);
    sum = subgroupAdd(sum);
    float scale = LOGARITHM ? log_of(sum) : 1.0 / sum;
    for (uint i = lane; i < n; i += lanes) {
        float value = x(at + i) - largest;
        put_y(at + i, LOGARITHM ? value - scale : exp_of(value) * scale);
    }
}
