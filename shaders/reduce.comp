// SPDX-License-Identifier: Apache-2.0
// Reductions over any axes. An invocation computes one element of the result, or four neighbouring
// elements.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "constants.h"
#include "lib/storage.glsl"
#include "lib/invocation.glsl"
#include "lib/reduce.glsl"

void main()
{
    uint id = invocation();
    if (id < p.count)
        put_result(id, reduce(id, 0, 1));
}
