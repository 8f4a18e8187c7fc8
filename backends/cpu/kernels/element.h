// SPDX-License-Identifier: Apache-2.0
// Inner loops over elements of all types except the 16-bit floats: casts, comparisons, selections,
// and integer arithmetic. element.c is compiled once for each ISA level; each compilation defines
// one table. Table entries are indexed by enum inf_dtype; an entry is NULL if there is no loop for
// the type.
//
// A bool is true if its byte is not 0, and is written as 0 or 1. Integers wrap around.
#ifndef INF_BACKENDS_CPU_KERNELS_ELEMENT_H
#define INF_BACKENDS_CPU_KERNELS_ELEMENT_H

#include <stddef.h>
#include <stdint.h>

#include "proto/core/dtype.h"

// Comparisons. "Greater" is computed as "less" with its operands swapped.
enum inf_element_compare {
    INF_ELEMENT_EQUAL,
    INF_ELEMENT_NOT_EQUAL,
    INF_ELEMENT_LESS,
    INF_ELEMENT_LESS_EQUAL,
    INF_ELEMENT_COMPARE_COUNT,
};

// Functions of two integers. For bools only "and", "or" and "xor" exist.
enum inf_element_binary {
    INF_ELEMENT_ADD,
    INF_ELEMENT_SUB,
    INF_ELEMENT_MUL,
    INF_ELEMENT_MIN,
    INF_ELEMENT_MAX,
    INF_ELEMENT_AND, // bitwise
    INF_ELEMENT_OR,
    INF_ELEMENT_XOR,
    INF_ELEMENT_BINARY_COUNT,
};

// y[i] = f(x[i]) for i below `count`.
typedef void inf_element_map_fn(size_t count, const void *x, void *y);

// y[i] = f(a[i], b[i]) for i below `count`.
typedef void inf_element_binary_fn(size_t count, const void *a, const void *b, void *y);

#define INF_ELEMENT_SIZES 4 // sizes 1, 2, 4 and 8 bytes: 2 to the power of the index

struct inf_element {
    // Casts, indexed by [from][to]. A conversion from float to integer truncates and clamps to the
    // type's range; NaN becomes 0. 64-bit integers are converted to double first and then to float.
    inf_element_map_fn *cast[INF_DTYPE_COUNT][INF_DTYPE_COUNT];
    // Comparisons a[i] op b[i]; y is an array of bools. Every comparison with NaN is false, except
    // "not equal".
    inf_element_binary_fn *compare[INF_ELEMENT_COMPARE_COUNT][INF_DTYPE_COUNT];
    inf_element_binary_fn *binary[INF_ELEMENT_BINARY_COUNT][INF_DTYPE_COUNT];
    // Sets y[i] = condition[i] ? a[i] : b[i] for i below `count`.
    void (*select[INF_ELEMENT_SIZES])(size_t count, const void *condition, const void *a,
                                      const void *b, void *y);
    // Sets y[i] = *x for i below `count`.
    inf_element_map_fn *fill[INF_ELEMENT_SIZES];
};

// One table for each ISA level. A build defines only those of its architecture; isa.h gives them.
extern const struct inf_element inf_element_baseline, inf_element_avx2, inf_element_avx512,
    inf_element_neon;

#endif
