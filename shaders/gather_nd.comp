// SPDX-License-Identifier: Apache-2.0
// Gathers slices of x [batch, dims..., inner] at rows of indices [batch, rows, depth]. A row has
// one index for each dimension. y is [batch, rows, inner].
#version 450
#extension GL_GOOGLE_include_directive : require
#define CHECKS
#include "constants.h"
#include "lib/storage.glsl"
#include "lib/invocation.glsl"

layout(constant_id = 1) const bool WIDE = false; // true: indices are 64-bit
layout(constant_id = 2) const bool FROM_END = false;

READS(0, x)
layout(binding = 1) readonly buffer I { uint indices[]; };
WRITES(2, y)
layout(push_constant) uniform P {
    uint count, rows, depth, inner;
    uint dims[GATHER_AXES];
} p;

#include "lib/index.glsl"

void main()
{
    uint id = invocation();
    if (id >= p.count)
        return;
    uint row = id / p.inner;
    // Position in x: first the index of the batch item, then extended by one index for each
    // dimension.
    uint slice = row / p.rows;
    for (uint i = 0; i < p.depth; i++) {
        uint at = row * p.depth + i, bound = p.dims[i];
        slice = slice * bound + (FROM_END ? index_from_end(at, bound) : index_at(at, bound));
    }
    put_y_word(id, x_word(slice * p.inner + id % p.inner));
}
