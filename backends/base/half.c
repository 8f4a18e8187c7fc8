// SPDX-License-Identifier: Apache-2.0
// Conversions of 16-bit floats on the bits of the number, for hosts without F16C and for tests.
// Kernels that convert many numbers use vector instructions instead.
#include "backends/base/half.h"

#include <string.h>

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

float inf_half_to_float(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t exponent = (half >> 10) & 0x1fu;
    uint32_t mantissa = half & 0x3ffu;
    if (exponent == 0x1f)
        return float_of(sign | 0x7f800000u | mantissa << 13);
    if (exponent != 0)
        return float_of(sign | (exponent + 112) << 23 | mantissa << 13);
    // Zero and denormals: mantissa * 2^-24 is exact in a float.
    float value = (float)mantissa * 0x1p-24f;
    return sign ? -value : value;
}

uint16_t inf_half_from_float(float value)
{
    uint32_t bits = bits_of(value);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
    uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return sign | 0x7e00u; // every NaN becomes a quiet NaN
    if (magnitude >= 0x477ff000u)
        return sign | 0x7c00u; // infinity, because the value rounds to 2^16 or more
    if (magnitude < 0x38800000u) {
        // The result is denormal. Adding 0.5 makes the floating-point unit round at the last bit of
        // the result, ties to even.
        uint32_t rounded = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f);
        return sign | (uint16_t)rounded;
    }
    uint32_t odd = magnitude >> 13 & 1u;
    return sign | (uint16_t)((magnitude - 0x38000000u + 0xfffu + odd) >> 13);
}

float inf_bf16_to_float(uint16_t bits)
{
    return float_of((uint32_t)bits << 16);
}

uint16_t inf_bf16_from_float(float value)
{
    uint32_t bits = bits_of(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
