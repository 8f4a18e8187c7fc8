// Code that all reductions share. An element of the result is computed by one invocation or by a
// subgroup.
#include "numbers.glsl"
#include "sums.glsl"

layout(constant_id = 1) const uint KIND = REDUCE_SUM;
layout(constant_id = 2) const bool VECTOR = false;

READS(0, x)
WRITES(1, y)
layout(push_constant) uniform P {
    uint count, terms;
    uint kept_axes, reduced_axes;
    // Sizes of the axes that are kept, and their strides in x, innermost first.
    uint kept_dims[REDUCE_AXES], kept_strides[REDUCE_AXES];
    uint reduced_dims[REDUCE_AXES], reduced_strides[REDUCE_AXES];
    float divisor; // the sum is divided by this number
} p;

bvec4 are_nan(vec4 value)
{
    return greaterThan(floatBitsToUint(value) & uvec4(0x7fffffffu), uvec4(0x7f800000u));
}

// Reduces some terms of element `id` of the result: term `first` and every `step`th term after it.
vec4 reduce(uint id, uint first, uint step)
{
    // The index along the outermost axis is what remains after the other axes, so it needs no
    // division. Divisions are the largest cost of a term.
    uint base = 0, rest = id, i = 0;
    for (; i + 1 < p.kept_axes; i++) {
        base += rest % p.kept_dims[i] * p.kept_strides[i];
        rest /= p.kept_dims[i];
    }
    base += rest * p.kept_strides[i];
    vec4 result = vec4(KIND == REDUCE_MAX ? -INFINITY : KIND == REDUCE_MIN ? INFINITY
        : KIND == REDUCE_PROD ? 1.0 : 0.0), lost = vec4(0.0);
    for (uint term = first; term < p.terms; term += step) {
        uint at = base;
        rest = term;
        for (i = 0; i + 1 < p.reduced_axes; i++) {
            at += rest % p.reduced_dims[i] * p.reduced_strides[i];
            rest /= p.reduced_dims[i];
        }
        at += rest * p.reduced_strides[i];
        vec4 value = VECTOR ? x4(at) : vec4(x(at));
        if (KIND == REDUCE_MAX)
            result = mix(result, value, mix(greaterThan(value, result), bvec4(true),
                are_nan(value)));
        else if (KIND == REDUCE_MIN)
            result = mix(result, value, mix(lessThan(value, result), bvec4(true), are_nan(value)));
        else if (KIND == REDUCE_PROD)
            result *= value;
        else
            add_term(value, result, lost);
    }
    return result;
}

void put_result(uint id, vec4 result)
{
    if (KIND == REDUCE_SUM)
        result /= vec4(p.divisor);
    if (VECTOR)
        put_y4(id, result);
    else
        put_y(id, result.x);
}
