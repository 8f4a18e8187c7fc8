// SPDX-License-Identifier: Apache-2.0
// Binary operators: y = activation(f(a, b)), with a and b broadcast by NumPy's rule. An invocation
// computes four neighbouring elements.
#version 450
#extension GL_GOOGLE_include_directive : require
#define CHECKS
#include "constants.h"
#include "lib/storage.glsl"
#include "lib/invocation.glsl"
#include "lib/functions.glsl"
#include "lib/combine.glsl"
#include "lib/broadcast.glsl"

layout(constant_id = 1) const uint KIND = BINARY_ADD;
layout(constant_id = 2) const uint TYPE = TYPE_F32;
layout(constant_id = 3) const uint MODE_A = MODE_FLAT;
layout(constant_id = 4) const uint MODE_B = MODE_FLAT;
layout(constant_id = 5) const uint ACTIVATION = FN_NONE;

READS(0, a)
READS(1, b)
WRITES(2, y)

uvec4 load_a(uint i)
{
    switch (MODE_A) {
    case MODE_FLAT:
        return a4_word(i);
    case MODE_SCALAR:
        return uvec4(a_word(0));
    case MODE_ROW:
        return a4_word(i % shape.row_a);
    case MODE_INNER_VECTOR:
        return a4_word(offset_a(i * 4) / 4);
    case MODE_INNER_SCALAR:
        return uvec4(a_word(offset_a(i * 4)));
    default:
        return uvec4(a_word(offset_a(i * 4)), a_word(offset_a(i * 4 + 1)),
            a_word(offset_a(i * 4 + 2)), a_word(offset_a(i * 4 + 3)));
    }
}

uvec4 load_b(uint i)
{
    switch (MODE_B) {
    case MODE_FLAT:
        return b4_word(i);
    case MODE_SCALAR:
        return uvec4(b_word(0));
    case MODE_ROW:
        return b4_word(i % shape.row_b);
    case MODE_INNER_VECTOR:
        return b4_word(offset_b(i * 4) / 4);
    case MODE_INNER_SCALAR:
        return uvec4(b_word(offset_b(i * 4)));
    default:
        return uvec4(b_word(offset_b(i * 4)), b_word(offset_b(i * 4 + 1)),
            b_word(offset_b(i * 4 + 2)), b_word(offset_b(i * 4 + 3)));
    }
}

// Returns the quotient rounded towards 0. The quotient of the smallest integer and -1 wraps around.
int quotient_of(int a, int b)
{
    return b == -1 ? -a : a / b;
}

// Returns the quotient rounded down.
int floor_quotient(int a, int b)
{
    int quotient = quotient_of(a, b);
    return quotient * b != a && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

// Returns b, or 1 if b is 0, so that no division by 0 is executed. A division by 0 is reported in
// the dispatch's status, unless `element` lies after the last element of the tensor.
int divisor_of(int b, uint element)
{
    if (b != 0)
        return b;
    if (element < shape.elements)
        status[STATUS_BY_ZERO] = 1;
    return 1;
}

int combine_integers(int a, int b, uint element)
{
    if (KIND == BINARY_DIV || KIND == BINARY_FLOOR_DIV || KIND == BINARY_FLOOR_MOD
        || KIND == BINARY_MOD)
        b = divisor_of(b, element);
    switch (KIND) {
    case BINARY_ADD:
        return a + b;
    case BINARY_SUB:
        return a - b;
    case BINARY_MUL:
        return a * b;
    case BINARY_MIN:
        return min(a, b);
    case BINARY_MAX:
        return max(a, b);
    case BINARY_DIV:
        return quotient_of(a, b);
    case BINARY_FLOOR_DIV:
        return floor_quotient(a, b);
    case BINARY_FLOOR_MOD:
        return a - floor_quotient(a, b) * b;
    case BINARY_MOD:
        return a - quotient_of(a, b) * b;
    default: // BINARY_SQUARED_DIFFERENCE
        return (a - b) * (a - b);
    }
}

void main()
{
    uint i = invocation();
    if (i >= shape.vectors)
        return;
    uvec4 left = load_a(i), right = load_b(i), result;
    for (uint k = 0; k < 4; k++) {
        if (TYPE == TYPE_F32) {
            float value = combine(KIND, uintBitsToFloat(left[k]), uintBitsToFloat(right[k]));
            result[k] = floatBitsToUint(activate(ACTIVATION, value, shape.low, shape.high));
        } else {
            result[k] = uint(combine_integers(int(left[k]), int(right[k]), 4 * i + k));
        }
    }
    put_y4_word(i, result);
}
