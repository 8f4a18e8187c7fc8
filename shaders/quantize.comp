// SPDX-License-Identifier: Apache-2.0
// Converts floats to bytes: round(x / scale) + zero point. An invocation converts four elements.
//
// GLSL allows a division an error of 2.5 ULP, so drivers could round differently from `ref`.
// Therefore the host computes, for each of the 256 results, the least float that is converted to
// it. The quotient is only a guess, from which the invocation steps to the right result. NaN is
// converted to 0, whatever the zero point is.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "constants.h"
#include "lib/storage.glsl"
#include "lib/invocation.glsl"
#include "lib/bytes.glsl"

READS(0, x)
// The least floats, ascending; the first one is -infinity.
layout(binding = 1) readonly buffer Least { float least[]; };
WRITES(2, y)
layout(push_constant) uniform P {
    uint vectors;
    float inverse; // of the scale
    float zero;    // zero point less the lowest result
    uint lowest;   // lowest result
} p;

uint quantized(float value)
{
    if ((floatBitsToUint(value) & 0x7fffffffu) > 0x7f800000u)
        return 0;
    int index = int(clamp(roundEven(value * p.inverse) + p.zero, 0.0, 255.0));
    while (index > 0 && value < least[index])
        index--;
    while (index < 255 && value >= least[index + 1])
        index++;
    return p.lowest + uint(index);
}

void main()
{
    uint i = invocation();
    if (i >= p.vectors)
        return;
    vec4 from = x4(i);
    put_y_word(i, word_of(uvec4(quantized(from.x), quantized(from.y), quantized(from.z),
        quantized(from.w))));
}
