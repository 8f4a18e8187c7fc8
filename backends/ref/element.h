// SPDX-License-Identifier: Apache-2.0
// Operands and their elements: reads and writes any element type as double or as an integer wide
// enough for all of them, and walks through shapes.
#ifndef INF_BACKENDS_REF_ELEMENT_H
#define INF_BACKENDS_REF_ELEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "proto/core/dtype.h"
#include "proto/core/shape.h"

// One operand of a node during a run: row-major elements.
struct inf_ref_tensor {
    void *data; // NULL if the operand is absent
    enum inf_dtype dtype;
    const struct inf_shape *shape; // owned by the graph
    size_t count;                  // number of elements
    size_t element_bytes;
    // index of the value whose memory the caller binds for each run; INF_VALUE_NONE if the operand
    // is constant or absent
    uint32_t bound_value;
};

// Returns element `index` as a double; 64-bit integers are rounded.
double inf_ref_load(const struct inf_ref_tensor *tensor, size_t index);

// Returns element `index` of an integer or bool tensor exactly; floats are truncated.
__int128 inf_ref_load_int(const struct inf_ref_tensor *tensor, size_t index);

// Sets element `index`. Floats are rounded to nearest; integers are truncated and clamped to their
// range, NaN becomes 0; a bool is true if the value is not 0.
void inf_ref_store(const struct inf_ref_tensor *tensor, size_t index, double value);

// Sets element `index`; integers wrap around as in two's complement.
void inf_ref_store_int(const struct inf_ref_tensor *tensor, size_t index, __int128 value);

// Returns `value` truncated and clamped to the type's range; 0 for NaN.
__int128 inf_ref_truncate(double value, enum inf_dtype dtype);

// Returns the smallest number of an integer type.
__int128 inf_ref_int_min(enum inf_dtype dtype);
// Returns the largest number of an integer type.
__int128 inf_ref_int_max(enum inf_dtype dtype);

// Returns element `index` as a double, like inf_ref_load(), but is inlined and fast for FP32.
static inline double inf_ref_get(const struct inf_ref_tensor *tensor, size_t index)
{
    if (tensor->dtype == INF_DTYPE_F32)
        return ((const float *)tensor->data)[index];
    return inf_ref_load(tensor, index);
}

// Stores `value` in element `index`, like inf_ref_store(), but is inlined and fast for FP32.
static inline void inf_ref_put(const struct inf_ref_tensor *tensor, size_t index, double value)
{
    if (tensor->dtype == INF_DTYPE_F32)
        ((float *)tensor->data)[index] = (float)value;
    else
        inf_ref_store(tensor, index, value);
}

// Copies `count` consecutive elements between tensors of the same type.
static inline void inf_ref_copy(const struct inf_ref_tensor *to, size_t to_index,
                                const struct inf_ref_tensor *from, size_t from_index, size_t count)
{
    size_t size = to->element_bytes;
    if (count != 0)
        memmove((char *)to->data + to_index * size, (const char *)from->data + from_index * size,
                count * size);
}

// Maximum number of operands whose offsets one struct inf_ref_walk tracks.
#define INF_REF_WALK_OPERANDS 3

// Visits the elements of a shape in row-major order, and keeps for each operand the offset of the
// current element. After the last element, the walk returns to the first one.
struct inf_ref_walk {
    int32_t rank;
    int64_t dims[INF_LIMIT_RANK];
    int64_t index[INF_LIMIT_RANK];
    // step of each operand along each axis, in elements; may be 0 or negative
    int64_t strides[INF_REF_WALK_OPERANDS][INF_LIMIT_RANK];
    int64_t offsets[INF_REF_WALK_OPERANDS];
};

// Starts a walk at the first element of `shape`, without operands (all strides are 0).
void inf_ref_walk_init(struct inf_ref_walk *walk, const struct inf_shape *shape);

// Adds an operand of shape `shape`, broadcast to the walk's shape by NumPy's rule.
void inf_ref_walk_broadcast(struct inf_ref_walk *walk, uint32_t operand,
                            const struct inf_shape *shape);

// Starts a walk that visits the matrices in the last two axes of `y`, one matrix in each step.
// Operands 0 and 1 have the offsets of the corresponding matrices of `a` and `b`, whose leading
// axes are broadcast. Returns the number of matrices.
size_t inf_ref_walk_matrices(struct inf_ref_walk *walk, const struct inf_shape *y,
                             const struct inf_shape *a, const struct inf_shape *b);

// Moves the walk to the next element of its shape, and updates the offsets of the operands.
static inline void inf_ref_walk_next(struct inf_ref_walk *walk)
{
    for (int32_t axis = walk->rank - 1; axis >= 0; axis--) {
        bool stays = ++walk->index[axis] < walk->dims[axis];
        int64_t steps = stays ? 1 : 1 - walk->dims[axis];
        for (uint32_t i = 0; i < INF_REF_WALK_OPERANDS; i++)
            walk->offsets[i] += walk->strides[i][axis] * steps;
        if (stays)
            return;
        walk->index[axis] = 0;
    }
}

#endif
