// SPDX-License-Identifier: Apache-2.0
// Loops on weights of 2, 4 or 8 bits in blocks, each with a scale and a zero point for each column.
// nn_blocks.c is compiled once for each ISA level.
//
// Weights are read in panels of one or two vectors of columns (pack.h). A row of a panel is some
// 32-bit words. A word holds neighbouring weights of one column, the first in its lowest bits: 16,
// 8 or 4 of them. No weight exists in memory as a float, except in the result of expand().
#ifndef INF_BACKENDS_CPU_KERNELS_BLOCKS_H
#define INF_BACKENDS_CPU_KERNELS_BLOCKS_H

#include <stdbool.h>
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

// --- weights of 8 bits, multiplied as bytes (digits/digits.c) ---
//
// A row of x is a multiple of a unit, rounded to integers of 24 bits, and each integer is three
// digits of 8 bits: digits[2] * 65536 + digits[1] * 256 + digits[0], all of them signed.

#define INF_DIGITS 3
// Most weights of a block: sums of 255 * 128 times as many are below 2^31.
#define INF_DIGITS_BLOCK_MAX 65536

// A row of x in digits.
struct inf_digits {
    // [INF_DIGITS][step]: the digits of all elements, the lowest digit first, and zeros behind them
    int8_t *digits;
    size_t step;   // elements of x, rounded up to a multiple of 4
    int32_t *sums; // [blocks][INF_DIGITS]: the sum of the digits of the block's elements
    float unit;    // an element is its integer times this
};

struct inf_digit_loops {
    size_t width; // columns in a vector
    // Converts `count` floats with blocks of `block` elements, a multiple of 4. Returns false,
    // having written nothing useful, if an element is infinite or NaN, or if all are so large or so
    // small that a unit is no normal number.
    bool (*convert)(const float *x, size_t count, size_t block, struct inf_digits *digits);
    // y[c] = the sum of x[k] * weight of the columns c of the panel, padding included, over the
    // `count` words. Indexed by the number of vectors - 1. The weights must have 8 bits, the zero
    // points must be integers (panel->zeros is NULL), and panel->first must be 0.
    void (*multiply[INF_BLOCKS_VECTORS])(const struct inf_blocks_panel *panel,
                                         const struct inf_digits *x, float *y);
};

// One table for each ISA level with an instruction for dot products of bytes. A build defines only
// those of its architecture; isa.h gives them.
extern const struct inf_digit_loops inf_digits_q8_avx_vnni, inf_digits_q8_vnni,
    inf_digits_q8_vnni_half;

#endif
