// SPDX-License-Identifier: Apache-2.0
// Shapes of tensors. Only this module multiplies dimensions.
#ifndef INF_PROTO_CORE_SHAPE_H
#define INF_PROTO_CORE_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/core/attributes.h"
#include "proto/core/dtype.h"
#include "proto/core/limits.h"

// A dimension that is known only when a request arrives.
#define INF_DIM_UNKNOWN ((int64_t)-1)
// The rank of a shape that is completely unknown.
#define INF_RANK_UNKNOWN (-1)

// Dimensions, the outermost first (row-major order). A shape of rank 0 is a scalar, which has one
// element.
struct inf_shape {
    int32_t rank;                 // number of dimensions, or INF_RANK_UNKNOWN
    int64_t dims[INF_LIMIT_RANK]; // 0..INF_LIMIT_DIM-1, or INF_DIM_UNKNOWN; 0 beyond the rank
};

// A shape literal: INF_SHAPE(1, 128, 128, 3). For rank 0 write (struct inf_shape){0} instead.
#define INF_SHAPE(...)                                                                             \
    ((struct inf_shape){.rank = (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),     \
                        .dims = {__VA_ARGS__}})

// Returns whether the rank and every dimension are in range. Unknown dimensions, and an unknown
// rank, are in range.
bool inf_shape_valid(const struct inf_shape *shape);

// Returns whether the rank and all dimensions are known.
bool inf_shape_known(const struct inf_shape *shape);

// Returns whether rank and dimensions are equal. An unknown dimension is equal only to an unknown
// dimension.
bool inf_shape_equal(const struct inf_shape *a, const struct inf_shape *b);

// Returns whether the known shape `shape` fits `pattern`. Unknown dimensions or an unknown rank of
// `pattern` fit anything.
bool inf_shape_matches(const struct inf_shape *shape, const struct inf_shape *pattern);

// Sets *count to the number of elements. Returns false if the shape is not valid and known, or if
// the product does not fit size_t.
bool inf_shape_count(const struct inf_shape *shape, size_t *count) INF_NODISCARD;

// Sets *size_bytes to the number of elements times the size of `dtype`. Returns false if
// inf_shape_count() fails, `dtype` is NONE, or the size exceeds INF_LIMIT_TENSOR_BYTES.
bool inf_shape_bytes(const struct inf_shape *shape, enum inf_dtype dtype,
                     size_t *size_bytes) INF_NODISCARD;

// Returns the number of elements. The caller has checked that the shape is known and that the
// product fits size_t.
size_t inf_shape_elements(const struct inf_shape *shape);

// Sets strides[i] to the number of elements between neighbours along dimension i, in row-major
// order. The caller has checked the shape as for inf_shape_elements().
void inf_shape_strides(const struct inf_shape *shape, int64_t strides[INF_LIMIT_RANK]);

// Sets *result to the shape that `a` and `b` broadcast to by NumPy's rule: the last dimensions are
// aligned, and 1 is repeated. An unknown dimension combined with 1 or with an unknown dimension
// gives an unknown dimension; combined with n > 1 it gives n. Returns false if the shapes do not
// broadcast.
bool inf_shape_broadcast(const struct inf_shape *a, const struct inf_shape *b,
                         struct inf_shape *result) INF_NODISCARD;

#define INF_SHAPE_TEXT_SIZE 128

// Writes the shape to `text`, for example "[1,128,?,3]", "[]" for a scalar or "[*]" for an unknown
// rank. Returns `text`.
const char *inf_shape_print(const struct inf_shape *shape, char text[INF_SHAPE_TEXT_SIZE]);

#endif
