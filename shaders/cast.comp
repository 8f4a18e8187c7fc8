// SPDX-License-Identifier: Apache-2.0
// Converts x to another type. An invocation converts four elements. Elements of one byte are
// written as one 32-bit word.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "constants.h"
#include "lib/storage.glsl"
#include "lib/invocation.glsl"

layout(constant_id = 1) const uint FROM = TYPE_F32;
layout(constant_id = 2) const uint TO = TYPE_I32;

READS(0, x)
WRITES(1, y)
layout(push_constant) uniform P { uint vectors; } p;

bool is_nan(float value)
{
    return (floatBitsToUint(value) & 0x7fffffffu) > 0x7f800000u;
}

// Truncates towards zero and clamps to the type's range. NaN becomes 0.
int truncated(float value, float low, float high, int least, int most)
{
    if (is_nan(value))
        return 0;
    return value <= low ? least : (value >= high ? most : int(value));
}

uint converted(uint word)
{
    float real = uintBitsToFloat(word);
    switch (TO) {
    case TYPE_F32:
        return floatBitsToUint(FROM == TYPE_I32 ? float(int(word)) : float(word));
    case TYPE_I32:
        return FROM == TYPE_F32 ? uint(truncated(real, -2147483648.0, 2147483648.0,
            -2147483647 - 1, 2147483647))
                                : word;
    case TYPE_U8:
        return FROM == TYPE_F32 ? uint(truncated(real, 0.0, 255.0, 0, 255)) : word & 0xffu;
    default:
        return (FROM == TYPE_F32 ? real != 0.0 : word != 0) ? 1u : 0u;
    }
}

void main()
{
    uint i = invocation();
    if (i >= p.vectors)
        return;
    uint bytes = 0;
    for (uint k = 0; k < 4; k++) {
        uint word = FROM >= TYPE_U8 ? x_word(i) >> (8 * k) & 0xffu : x_word(i * 4 + k);
        if (FROM == TYPE_BOOL)
            word = word != 0 ? 1 : 0;
        uint result = converted(word);
        if (TO >= TYPE_U8)
            bytes |= result << (8 * k);
        else
            put_y_word(i * 4 + k, result);
    }
    if (TO >= TYPE_U8)
        put_y_word(i, bytes);
}
