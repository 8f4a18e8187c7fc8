// SPDX-License-Identifier: Apache-2.0
// The two products of an attention, of rows with packed keys or values: in fp32, or in bf16 with
// sums in fp32. Private to attention.c.
#ifndef INF_BACKENDS_CPU_ATTENTION_PRODUCTS_H
#define INF_BACKENDS_CPU_ATTENTION_PRODUCTS_H

#include "backends/cpu/core/kernel.h"
#include "backends/cpu/core/pack.h"

// Keys of a block, whose scores are computed together. Blocks begin at a multiple of it. It is a
// multiple of the width of every panel, and of the depth that products in bf16 are padded to.
#define INF_ATTENTION_BLOCK ((size_t)256)

// The kernels that multiply. Constant once it is filled.
struct inf_attention_products {
    const struct inf_nn *nn;
    const struct inf_nn_gemm *whole, *half; // for panels of nn->gemm, and of nn->gemm_half
};

// Operands of some rows, as the kernels read them.
struct inf_attention_rows {
    size_t count;
    const void *a; // floats, or bf16 if the kernels round
    size_t a_step; // elements between neighbouring rows of `a`
    float *y;
    size_t y_step;
    const float *zeros; // as many as a panel has columns
};

// Chooses the kernels. In bf16 if `bf16` and the processor has kernels that multiply two operands
// in bf16 faster than in fp32.
void inf_attention_products_init(struct inf_attention_products *products,
                                 const struct inf_cpu_step *step, bool bf16);

// Returns true if products are computed in bf16.
bool inf_attention_products_round(const struct inf_attention_products *products);

// Returns the number of rows that tiles of work should begin at a multiple of.
size_t inf_attention_products_unit(const struct inf_attention_products *products);

// Returns the floats of a packed matrix of this size.
size_t inf_attention_packed_size(const struct inf_attention_products *products, size_t depth,
                                 size_t columns);

// Packs a matrix, [depth][columns] or if `by_column` [columns][depth], to `to`.
void inf_attention_pack(const struct inf_attention_products *products, const float *from,
                        size_t depth, size_t columns, bool by_column, float *to);

// Returns the floats of memory for the rounded operands of `count` rows; 0 if operands are not
// rounded.
size_t inf_attention_operands_size(const struct inf_attention_products *products, size_t count,
                                   size_t depth);

// If the kernels round, rounds `count` rows of `depth` floats that are `step` floats apart to
// `memory`. Does nothing otherwise.
void inf_attention_round(const struct inf_attention_products *products, size_t count,
                         const float *from, size_t step, size_t depth, float *memory);

// Sets the operands of `rows`: the floats, or what inf_attention_round() made of them in `memory`.
void inf_attention_set_operands(const struct inf_attention_products *products,
                                struct inf_attention_rows *rows, const float *from, size_t step,
                                size_t depth, const float *memory);

// Prepares the calling thread for inf_attention_multiply(), until inf_attention_products_end().
void inf_attention_products_begin(const struct inf_attention_products *products);
void inf_attention_products_end(const struct inf_attention_products *products);

// A part of a packed matrix of `matrix_depth` rows and `matrix_columns` columns: `depth` rows from
// row `row` on, which is 0 or a multiple of INF_ATTENTION_BLOCK, of `columns` columns from column
// `column` on, where a panel begins.
struct inf_attention_part {
    const float *packed;
    size_t matrix_depth, matrix_columns;
    size_t row, depth, column, columns;
};

// Multiplies the rows with the part: y = a * part, or y += a * part if `adds`.
void inf_attention_multiply(const struct inf_attention_products *products,
                            const struct inf_attention_rows *rows,
                            const struct inf_attention_part *part, bool adds);

#endif
