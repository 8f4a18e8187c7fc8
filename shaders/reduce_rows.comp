// SPDX-License-Identifier: Apache-2.0
// Reductions over any axes. A subgroup computes one element of the result, or four neighbouring
// elements.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "constants.h"
#include "lib/storage.glsl"
#include "lib/rows.glsl"
#include "lib/reduce.glsl"

// Combines the results of all invocations of the subgroup. A minimum or maximum is NaN if the
// result of one invocation is NaN.
float combine(float mine)
{
    if (KIND == REDUCE_SUM)
        return subgroupAdd(mine);
    if (KIND == REDUCE_PROD)
        return subgroupMul(mine);
    bool nan = are_nan(vec4(mine)).x;
    bool any_nan = subgroupOr(nan);
    float number = nan ? 0.0 : mine;
    number = KIND == REDUCE_MAX ? subgroupMax(number) : subgroupMin(number);
    return any_nan ? NAN : number;
}

void main()
{
    uint id = row();
    if (id >= p.count)
        return;
    uint lane = subgroupExclusiveAdd(1u), lanes = subgroupAdd(1u);
    vec4 result = reduce(id, lane, lanes);
    result.x = combine(result.x);
    if (VECTOR)
        result.yzw = vec3(combine(result.y), combine(result.z), combine(result.w));
    if (lane == 0)
        put_result(id, result);
}
