// SPDX-License-Identifier: Apache-2.0
// Products with weights of 2, 4 or 8 bits in blocks. Compiled once for each ISA level;
// INF_NN_BLOCKS is the name of the table that it defines.
//
// The problem: a weight is (number - zero point) * scale. To extract a number from a word, shift it
// to the lowest bits, mask it, convert it to a float and subtract the zero point takes four
// instructions, beside one multiply-add.
//
// The idea: the mantissa of a float has 23 bits, so the bits of a number may stay where they are in
// the lower half of the word. Let the number's lowest bit be bit p. With the exponent of 2^(23-p)
// or-ed in, the bits are the float 2^(23-p) + number: bit p of such a mantissa has the value 1. The
// difference to 2^(23-p) + zero point is number - zero point. Both floats are integers below 2^24,
// so the difference is exact. For 4 bits, of which the second number is extracted:
//
//     word                       .... .... .... .... | 4th  3rd  2nd  1st
//     & 0xf0                     0000 0000 0000 0000 | 0000 0000 2nd  0000
//     | bits of 2^19 (p is 4)    the float 2^19 + 2nd number
//     - (2^19 + zero point)      2nd number - zero point
//
// AVX-512 does both bit operations at once, so that a weight takes three instructions with the
// multiply-add. One shift by 16 per word moves the upper half down. Sums of a block are multiplied
// by its scale once.
#include "backends/cpu/kernels/blocks.h"
#include "backends/cpu/kernels/vec.h"

#define HALF_BITS   16
#define FIELDS_MAX  8 // numbers of 2 bits in half a word
#define ZERO_GROUP  4 // zero points in a word
#define MANTISSA    23
#define NUMBERS_MAX 16 // numbers of 2 bits in a word

// What is subtracted from the floats of the numbers in half a word: 2^(23-p) + zero point, for each
// position of a number and for each vector.
struct offsets {
    inf_vec of[FIELDS_MAX][INF_BLOCKS_VECTORS];
    inf_vec rest[INF_BLOCKS_VECTORS]; // subtracted after it, if zero points are not integers
};

// Returns the float whose mantissa has the value 1 at the lowest bit of number `field` of a half.
INF_VEC_INLINE float base_of(size_t field, const size_t bits)
{
    return (float)(1u << (MANTISSA - field * bits));
}

// Reads the zero points of block `block`.
INF_VEC_INLINE void read_offsets(const struct inf_blocks_panel *panel, size_t block,
                                 struct offsets *offsets, const size_t bits, const size_t vectors)
{
    const size_t width = vectors * INF_VEC_WIDTH;
    INF_VEC_UNROLL
    for (size_t v = 0; v < vectors; v++) {
        inf_vec zero = vec_all(panel->middle);
        offsets->rest[v] = vec_all(0);
        if (panel->zero_words != NULL) {
            inf_vec word =
                vec_load(panel->zero_words + block / ZERO_GROUP * width + v * INF_VEC_WIDTH);
            word = block % ZERO_GROUP < 2 ? word : vec_upper_half(word);
            zero = block % 2 == 0 ? vec_field(word, 0xff, base_of(0, 8)) - vec_all(base_of(0, 8))
                                  : vec_field(word, 0xff00, base_of(1, 8)) - vec_all(base_of(1, 8));
        } else if (panel->zeros != NULL) {
            offsets->rest[v] = vec_load(panel->zeros + block * width + v * INF_VEC_WIDTH);
            zero = vec_all(0);
        }
        INF_VEC_UNROLL
        for (size_t field = 0; field < HALF_BITS / bits; field++)
            offsets->of[field][v] = vec_all(base_of(field, bits)) + zero;
    }
}

// Sets numbers[0] and up to the differences of the numbers in the lower half of `word` and their
// zero points. If `fractions`, zero points need not be integers.
INF_VEC_INLINE void read_half(inf_vec word, const struct offsets *offsets, inf_vec *numbers,
                              const size_t bits, const size_t v, const int fractions)
{
    INF_VEC_UNROLL
    for (size_t field = 0; field < HALF_BITS / bits; field++) {
        const uint32_t mask = ((1u << bits) - 1) << (field * bits);
        numbers[field] = vec_field(word, mask, base_of(field, bits)) - offsets->of[field][v];
        if (fractions)
            numbers[field] -= offsets->rest[v];
    }
}

INF_VEC_INLINE void multiply_words(const struct inf_blocks_panel *panel, const float *x, float *y,
                                   const size_t bits, const size_t vectors, const int fractions)
{
    const size_t width = vectors * INF_VEC_WIDTH;
    const size_t half = HALF_BITS / bits;
    const float *words = panel->words + panel->first * panel->block_words * width;
    inf_vec total[INF_BLOCKS_VECTORS];
    INF_VEC_UNROLL
    for (size_t v = 0; v < vectors; v++)
        total[v] = vec_all(0);
    size_t block = panel->first;
    for (size_t word = 0; word < panel->count; block++) {
        size_t end = word + panel->block_words;
        end = end < panel->count ? end : panel->count;
        struct offsets offsets;
        read_offsets(panel, block, &offsets, bits, vectors);
        // Two sums of each vector, so that the additions need not wait for each other.
        inf_vec sum[INF_BLOCKS_VECTORS][2];
        INF_VEC_UNROLL
        for (size_t v = 0; v < vectors; v++)
            sum[v][0] = sum[v][1] = vec_all(0);
        for (; word < end; word++, words += width, x += 2 * half) {
            INF_VEC_UNROLL
            for (size_t v = 0; v < vectors; v++) {
                inf_vec numbers[NUMBERS_MAX];
                inf_vec all = vec_load(words + v * INF_VEC_WIDTH);
                read_half(all, &offsets, numbers, bits, v, fractions);
                read_half(vec_upper_half(all), &offsets, numbers + half, bits, v, fractions);
                INF_VEC_UNROLL
                for (size_t i = 0; i < 2 * half; i++)
                    sum[v][i % 2] = vec_fma(vec_all(x[i]), numbers[i], sum[v][i % 2]);
            }
        }
        INF_VEC_UNROLL
        for (size_t v = 0; v < vectors; v++)
            total[v] =
                vec_fma(sum[v][0] + sum[v][1],
                        vec_load(panel->scales + block * width + v * INF_VEC_WIDTH), total[v]);
    }
    INF_VEC_UNROLL
    for (size_t v = 0; v < vectors; v++)
        vec_store(y + v * INF_VEC_WIDTH, total[v]);
}

INF_VEC_INLINE void expand_words(const struct inf_blocks_panel *panel, float *w, const size_t bits,
                                 const size_t vectors, const int fractions)
{
    const size_t width = vectors * INF_VEC_WIDTH;
    const size_t half = HALF_BITS / bits;
    const float *words = panel->words + panel->first * panel->block_words * width;
    size_t block = panel->first;
    for (size_t word = 0; word < panel->count; block++) {
        size_t end = word + panel->block_words;
        end = end < panel->count ? end : panel->count;
        struct offsets offsets;
        read_offsets(panel, block, &offsets, bits, vectors);
        for (; word < end; word++, words += width, w += 2 * half * width) {
            INF_VEC_UNROLL
            for (size_t v = 0; v < vectors; v++) {
                inf_vec numbers[NUMBERS_MAX];
                inf_vec all = vec_load(words + v * INF_VEC_WIDTH);
                inf_vec scale = vec_load(panel->scales + block * width + v * INF_VEC_WIDTH);
                read_half(all, &offsets, numbers, bits, v, fractions);
                read_half(vec_upper_half(all), &offsets, numbers + half, bits, v, fractions);
                INF_VEC_UNROLL
                for (size_t i = 0; i < 2 * half; i++)
                    vec_store(w + i * width + v * INF_VEC_WIDTH, numbers[i] * scale);
            }
        }
    }
}

#define LOOPS(bits, vectors)                                                                       \
    static void multiply_##bits##_##vectors(const struct inf_blocks_panel *panel, const float *x,  \
                                            float *y)                                              \
    {                                                                                              \
        if (panel->zeros == NULL)                                                                  \
            multiply_words(panel, x, y, bits, vectors, 0);                                         \
        else                                                                                       \
            multiply_words(panel, x, y, bits, vectors, 1);                                         \
    }                                                                                              \
    static void expand_##bits##_##vectors(const struct inf_blocks_panel *panel, float *w)          \
    {                                                                                              \
        if (panel->zeros == NULL)                                                                  \
            expand_words(panel, w, bits, vectors, 0);                                              \
        else                                                                                       \
            expand_words(panel, w, bits, vectors, 1);                                              \
    }

LOOPS(2, 1)
LOOPS(2, 2)
LOOPS(4, 1)
LOOPS(4, 2)
LOOPS(8, 1)
LOOPS(8, 2)

const struct inf_nn_blocks INF_NN_BLOCKS = {
    .width = INF_VEC_WIDTH,
    .loops =
        {
            {{multiply_2_1, expand_2_1}, {multiply_2_2, expand_2_2}},
            {{multiply_4_1, expand_4_1}, {multiply_4_2, expand_4_2}},
            {{multiply_8_1, expand_8_1}, {multiply_8_2, expand_8_2}},
        },
};
