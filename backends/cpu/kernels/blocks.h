// SPDX-License-Identifier: Apache-2.0
// Loops on weights of 2, 4 or 8 bits in blocks, each with a scale and a zero point for each column.
// nn_blocks.c is compiled once for each ISA level.
//
// Weights are read in panels of one or two vectors of columns (pack.h). A row of a panel is some
// 32-bit words. A word holds neighbouring weights of one column, the first in its lowest bits: 16,
// 8 or 4 of them. No weight exists in memory as a float, except in the result of expand().
#ifndef INF_BACKENDS_CPU_KERNELS_BLOCKS_H
#define INF_BACKENDS_CPU_KERNELS_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#define INF_BLOCKS_BITS    3 // 2, 4 and 8 bits; see inf_blocks_form()
#define INF_BLOCKS_VECTORS 2 // a panel has one or two vectors

// Part of a panel: consecutive blocks, of which the first is block `first` of the panel.
struct inf_blocks_panel {
    const float *words;  // the panel's words, as bits: [words of all blocks][columns with padding]
    const float *scales; // [blocks][columns with padding]
    // Zero points of four blocks in the bytes of a word: [blocks / 4, rounded up][columns with
    // padding]. NULL: `zeros` or `middle` holds the zero points.
    const float *zero_words;
    const float *zeros; // [blocks][columns with padding]; NULL: the zero point is `middle`
    float middle;
    size_t block_words; // words of one column in a block
    size_t first;       // index of the first block
    size_t count;       // number of words of one column, from the start of block `first`
};

// Functions for one number of bits and one number of vectors.
struct inf_blocks_loops {
    // y[c] = the sum of x[k] * weight of the columns c of the panel, padding included, over the
    // `count` words. x has an element for each weight of these words.
    void (*multiply)(const struct inf_blocks_panel *panel, const float *x, float *y);
    // Writes the weights of the `count` words to w, [weights][columns with padding].
    void (*expand)(const struct inf_blocks_panel *panel, float *w);
};

struct inf_nn_blocks {
    size_t width; // elements in a vector
    // Indexed by inf_blocks_form(bits) and the number of vectors - 1.
    struct inf_blocks_loops loops[INF_BLOCKS_BITS][INF_BLOCKS_VECTORS];
};

// Returns the index of the loops for weights of `bits` bits: 2, 4 or 8.
static inline size_t inf_blocks_form(size_t bits)
{
    return bits / 4;
}

// One table for each ISA level. A build defines only those of its architecture; isa.h gives them.
extern const struct inf_nn_blocks inf_nn_blocks_baseline, inf_nn_blocks_avx2, inf_nn_blocks_avx512,
    inf_nn_blocks_avx512_half, inf_nn_blocks_neon;

#endif
