// SPDX-License-Identifier: Apache-2.0
// Products of two matrices, neither of which is constant. An invocation computes a tile of four by
// four.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "constants.h"
#include "lib/storage.glsl"
#include "lib/invocation.glsl"
#include "lib/functions.glsl"
#include "lib/product.glsl"

layout(constant_id = 1) const uint ACTIVATION = FN_NONE;
layout(constant_id = 2) const bool BIAS = false;

READS(0, a)
READS(1, b)
READS(2, bias)
WRITES(3, y)

void main()
{
    uint id = invocation();
    if (id >= p.count)
        return;
    uint across = (p.n + 3) / 4, down = (p.m + 3) / 4;
    uint column = id % across * 4, row = id / across % down * 4;
    uint batch = id / across / down, a_at, b_at;
    find_matrices(batch, a_at, b_at);
    // These variables are vectors, because the compiler gives local arrays of four numbers the type
    // of the arrays in the push constants. That type has a stride, which SPIR-V forbids for local
    // variables.
    const uvec4 next = uvec4(0, 1, 2, 3);
    uvec4 rows = a_at + min(row + next, uvec4(p.m - 1)) * p.a_row;
    uvec4 columns = b_at + min(column + next, uvec4(p.n - 1)) * p.b_column;
    vec4 sum[4] = vec4[4](vec4(0.0), vec4(0.0), vec4(0.0), vec4(0.0));
    for (uint i = 0; i < p.k; i++) {
        uint to = i * p.b_row;
        vec4 right = vec4(b(columns[0] + to), b(columns[1] + to), b(columns[2] + to),
            b(columns[3] + to));
        for (uint r = 0; r < 4; r++)
            sum[r] = fma(vec4(a(rows[r] + i * p.a_column)), right, sum[r]);
    }
    for (uint r = 0; r < 4 && row + r < p.m; r++) {
        for (uint c = 0; c < 4; c++) {
            if (column + c >= p.n)
                break;
            float value = sum[r][c];
            if (BIAS)
                value += bias(column + c);
            put_y((batch * p.m + row + r) * p.n + column + c, activate(ACTIVATION, value, p.low,
                p.high));
        }
    }
}
