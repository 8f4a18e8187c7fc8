// SPDX-License-Identifier: Apache-2.0
// Finishes a convolution whose sums were computed in parts (conv_block.comp): adds the parts, the
// bias and the residual, and applies the activation. An invocation computes four channels of a
// pixel.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "constants.h"
#include "lib/storage.glsl"
#include "lib/invocation.glsl"
#include "lib/functions.glsl"

layout(constant_id = 1) const uint ACTIVATION = FN_NONE;
layout(constant_id = 2) const bool Y_VECTOR = false;
layout(constant_id = 3) const bool PRELU = false;
layout(constant_id = 4) const uint ADDED = ADDED_NOTHING;

layout(push_constant) uniform Parts {
    uint count;  // number of invocations: vectors of four channels of all pixels
    uint parts;
    uint blocks; // vectors of a pixel
    uint channels;
    uint added; // number of channels of the residual
    float low, high;
} p;

READS(0, sums)
layout(binding = 1) readonly buffer B { vec4 bias[]; }; // the bias, followed by the slopes of prelu
READS(2, added)
WRITES(3, y)

#include "lib/added.glsl"
#include "lib/block_store.glsl"

void main()
{
    uint id = invocation();
    if (id >= p.count)
        return;
    uint blocks = p.blocks, channels = p.channels, pixel = id / blocks, block = id % blocks;
    vec4 result = bias[block];
    for (uint part = 0; part < p.parts; part++)
        result += sums4(part * p.count + id);
    if (ADDED != ADDED_NOTHING)
        result += added_to(pixel, block * 4, p.added);
    vec4 low = PRELU ? bias[blocks + block] : vec4(p.low);
    store_vector(pixel * channels, block, channels, activate4(ACTIVATION, result, low, p.high));
}
