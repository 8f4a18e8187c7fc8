// SPDX-License-Identifier: Apache-2.0
// Reductions over any axes: an invocation makes one element, or four neighbours, of the result.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "constants.h"
#include "lib/storage.glsl"
#include "lib/invocation.glsl"
#include "lib/numbers.glsl"

layout(constant_id = 1) const uint KIND = REDUCE_SUM;
layout(constant_id = 2) const bool VECTOR = false;

READS(0, x)
WRITES(1, y)
layout(push_constant) uniform P {
    uint count, terms;
    uint kept_axes, reduced_axes;
    uint kept_dims[REDUCE_AXES], kept_strides[REDUCE_AXES]; // innermost first
    uint reduced_dims[REDUCE_AXES], reduced_strides[REDUCE_AXES];
    float divisor; // of the sum
} p;

vec4 first_value()
{
    switch (KIND) {
    case REDUCE_MAX:
        return vec4(-INFINITY);
    case REDUCE_MIN:
        return vec4(INFINITY);
    case REDUCE_PROD:
        return vec4(1.0);
    default:
        return vec4(0.0);
    }
}

bvec4 are_nan(vec4 value)
{
    return greaterThan(floatBitsToUint(value) & uvec4(0x7fffffffu), uvec4(0x7f800000u));
}

void main()
{
    uint id = invocation();
    if (id >= p.count)
        return;
    uint base = 0, rest = id;
    for (uint i = 0; i < p.kept_axes; i++) {
        base += rest % p.kept_dims[i] * p.kept_strides[i];
        rest /= p.kept_dims[i];
    }
    vec4 result = first_value();
    for (uint term = 0; term < p.terms; term++) {
        uint at = base;
        rest = term;
        for (uint i = 0; i < p.reduced_axes; i++) {
            at += rest % p.reduced_dims[i] * p.reduced_strides[i];
            rest /= p.reduced_dims[i];
        }
        vec4 value = VECTOR ? x4(at) : vec4(x(at));
        if (KIND == REDUCE_MAX)
            result = mix(result, value, mix(greaterThan(value, result), bvec4(true), are_nan(value)));
        else if (KIND == REDUCE_MIN)
            result = mix(result, value, mix(lessThan(value, result), bvec4(true), are_nan(value)));
        else if (KIND == REDUCE_PROD)
            result *= value;
        else
            result += value;
    }
    if (KIND == REDUCE_SUM)
        result /= vec4(p.divisor);
    if (VECTOR)
        put_y4(id, result);
    else
        put_y(id, result.x);
}
