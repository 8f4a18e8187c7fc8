// SPDX-License-Identifier: Apache-2.0
// y = activation(f(a, b)), both stretched by NumPy's rule.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "constants.h"
#include "lib/storage.glsl"
#include "lib/invocation.glsl"
#include "lib/functions.glsl"
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
        return uvec4(a_word(offset_a(i * 4)), a_word(offset_a(i * 4 + 1)), a_word(offset_a(i * 4 + 2)), a_word(offset_a(i * 4 + 3)));
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
        return uvec4(b_word(offset_b(i * 4)), b_word(offset_b(i * 4 + 1)), b_word(offset_b(i * 4 + 2)), b_word(offset_b(i * 4 + 3)));
    }
}

float power(float base, float exponent)
{
    float size = exp_of(exponent * log_of(abs(base)));
    bool whole = floor(exponent) == exponent;
    bool odd = whole && abs(exponent) < 16777216.0 && (int(exponent) & 1) != 0;
    if (exponent == 0.0 || base == 1.0)
        return 1.0;
    if (is_nan(base) || is_nan(exponent) || (base < 0.0 && !whole && base != -INFINITY))
        return NAN;
    return base < 0.0 && odd ? -size : size;
}

// a - trunc(a / b) * b: exact where the quotient is small, as fma rounds once.
float remainder_of(float a, float b)
{
    float rest = fma(-trunc(a / b), b, a);
    // The quotient may have been rounded up to a whole number.
    if (rest != 0.0 && (rest < 0.0) != (a < 0.0))
        rest += a < 0.0 ? -abs(b) : abs(b);
    return abs(rest) >= abs(b) ? 0.0 : rest;
}

float combine(float a, float b)
{
    switch (KIND) {
    case BINARY_ADD:
        return a + b;
    case BINARY_SUB:
        return a - b;
    case BINARY_MUL:
        return a * b;
    case BINARY_DIV:
        return a / b;
    case BINARY_DIV_NO_NAN:
        return b == 0.0 ? 0.0 : a / b;
    case BINARY_FLOOR_DIV:
        return floor(a / b);
    case BINARY_FLOOR_MOD: {
        float rest = remainder_of(a, b);
        return rest != 0.0 && (rest < 0.0) != (b < 0.0) ? rest + b : rest;
    }
    case BINARY_MOD:
        return remainder_of(a, b);
    case BINARY_POW:
        return power(a, b);
    case BINARY_MIN:
        return is_nan(a) || is_nan(b) ? NAN : (b < a ? b : a);
    case BINARY_MAX:
        return is_nan(a) || is_nan(b) ? NAN : (b > a ? b : a);
    case BINARY_SQUARED_DIFFERENCE:
        return (a - b) * (a - b);
    default: // BINARY_PRELU
        return a < 0.0 ? a * b : a;
    }
}

int combine_integers(int a, int b)
{
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
            float value = combine(uintBitsToFloat(left[k]), uintBitsToFloat(right[k]));
            result[k] = floatBitsToUint(activate(ACTIVATION, value, shape.low, shape.high));
        } else {
            result[k] = uint(combine_integers(int(left[k]), int(right[k])));
        }
    }
    put_y4_word(i, result);
}
