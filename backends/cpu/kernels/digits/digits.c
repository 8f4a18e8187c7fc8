// SPDX-License-Identifier: Apache-2.0
// Products of floats with 8-bit weights in blocks. Compiled once for each ISA level that has an
// instruction for dot products of bytes; INF_DIGITS_TABLE is the name of the table that it defines.
//
// The problem: a product with one row of x reads each weight once, from the L2 cache or from
// memory. To convert 16 weights to floats and to multiply them takes four instructions, which takes
// longer than reading the weights.
//
// The idea: an instruction for dot products of bytes multiplies 64 weights as they are in memory.
// x has to be integers. Those of 8 bits, as TFLite uses them, lose two decimal digits. But three
// such instructions multiply the weights by integers of 24 bits, which are as exact as floats in
// relation to the largest element of the row:
//
//     x = unit * (d2 * 65536 + d1 * 256 + d0)         d0, d1, d2: -128 to 127
//     sum of x * w = unit * (sum(d2 * w) * 65536 + sum(d1 * w) * 256 + sum(d0 * w))
//
// Each of the three sums is exact. The weights are unsigned bytes minus a zero point, so that each
// sum begins at the zero point times the sum of the digits, negated.
#include "backends/cpu/kernels/blocks.h"
#include "backends/cpu/kernels/qvec.h"

// The largest integer: its highest digit is 127, and the digits below it cannot carry into it.
#define LARGEST (127 << 16)
// The bits of the least and the largest float that may be the largest element of a row: 2^-90 and
// 2^90. A row beyond them has a unit, or sums, that may be no normal numbers.
#define LEAST_BITS     ((uint32_t)(127 - 90) << 23)
#define MOST_BITS      ((uint32_t)(127 + 90) << 23)
#define MAGNITUDE_BITS 0x7fffffffu
#define WORD_BYTES     4
#define ZERO_GROUP     4 // zero points in a word
#define DIGIT_BITS     8
#define HALF_DIGIT     (1 << (DIGIT_BITS - 1))
#define CHUNK          64 // elements that are converted at once
// Sums of each digit and vector, so that an addition need not wait for the one before.
#define CHAINS 2

// Returns the bits of the largest magnitude. A NaN has more than any number.
static uint32_t find_largest(const float *x, size_t count)
{
    uint32_t largest = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        bits &= MAGNITUDE_BITS;
        largest = bits > largest ? bits : largest;
    }
    return largest;
}

// Rounds CHUNK floats times `factor` to integers.
static void round_chunk(const float *x, float factor, int32_t *y)
{
    const inf_qvec_float most = qvec_float_all((float)LARGEST), least = qvec_float_all(-LARGEST);
    INF_QVEC_UNROLL
    for (size_t i = 0; i < CHUNK; i += INF_QVEC_WIDTH) {
        inf_qvec_float v = qvec_float_load(x + i) * qvec_float_all(factor);
        qvec_store(y + i, qvec_round(v, least, most), INF_QVEC_WIDTH);
    }
}

// Writes the digits of `count` elements.
static void write_digits(const float *x, size_t count, float factor, int8_t *restrict low,
                         int8_t *restrict middle, int8_t *restrict high)
{
    for (size_t first = 0; first < count; first += CHUNK) {
        int32_t all[CHUNK];
        float last[CHUNK] = {0};
        size_t some = count - first < CHUNK ? count - first : CHUNK;
        if (some < CHUNK)
            memcpy(last, x + first, some * sizeof *last);
        round_chunk(some < CHUNK ? last : x + first, factor, all);
        for (size_t i = 0; i < some; i++) {
            // Rounds to the nearest multiple of 256, and of 65536.
            int32_t upper = (all[i] + HALF_DIGIT) >> DIGIT_BITS;
            low[first + i] = (int8_t)all[i];
            middle[first + i] = (int8_t)upper;
            high[first + i] = (int8_t)((upper + HALF_DIGIT) >> DIGIT_BITS);
        }
    }
}

// Returns the sum of `count` digits.
static int32_t sum_digits(const int8_t *digits, size_t count)
{
    const size_t bytes = INF_QVEC_WIDTH * WORD_BYTES;
    const inf_qvec_x ones = qvec_x(qvec_all(0x01010101));
    inf_qvec sums = qvec_all(0);
    int32_t lanes[INF_QVEC_WIDTH];
    int32_t sum = 0;
    size_t i = 0;
    for (; i + bytes <= count; i += bytes)
        sums = qvec_dot(sums, ones, qvec_w(digits + i));
    qvec_store(lanes, sums, INF_QVEC_WIDTH);
    for (size_t c = 0; c < INF_QVEC_WIDTH; c++)
        sum += lanes[c];
    for (; i < count; i++)
        sum += digits[i];
    return sum;
}

static bool convert_row(const float *x, size_t count, size_t block, struct inf_digits *digits)
{
    uint32_t largest_bits = find_largest(x, count);
    float largest;
    if (largest_bits < LEAST_BITS || largest_bits > MOST_BITS)
        return false;
    memcpy(&largest, &largest_bits, sizeof largest);
    int8_t *low = digits->digits;
    digits->unit = largest / (float)LARGEST;
    write_digits(x, count, (float)LARGEST / largest, low, low + digits->step,
                 low + 2 * digits->step);
    for (size_t d = 0; d < INF_DIGITS; d++) {
        int8_t *all = low + d * digits->step;
        memset(all + count, 0, digits->step - count);
        for (size_t first = 0, b = 0; first < count; first += block, b++)
            digits->sums[b * INF_DIGITS + d] =
                sum_digits(all + first, count - first < block ? count - first : block);
    }
    return true;
}

// Returns the zero points of a vector of columns of a block.
INF_QVEC_INLINE inf_qvec read_zeros(const struct inf_blocks_panel *panel, size_t block, size_t v,
                                    const size_t width)
{
    if (panel->zero_words == NULL)
        return qvec_all((int32_t)panel->middle);
    int32_t zeros[INF_QVEC_WIDTH];
    const uint8_t *words =
        (const uint8_t *)(panel->zero_words + block / ZERO_GROUP * width + v * INF_QVEC_WIDTH);
    for (size_t c = 0; c < INF_QVEC_WIDTH; c++)
        zeros[c] = words[c * ZERO_GROUP + block % ZERO_GROUP];
    return qvec_load(zeros);
}

// Adds the products of `words` words with all digits of `x`, whose digits begin at `x`.
INF_QVEC_INLINE void add_words(inf_qvec sum[CHAINS][INF_BLOCKS_VECTORS][INF_DIGITS], const float *w,
                               size_t words, const int8_t *x, size_t step, const size_t vectors,
                               const size_t chains)
{
    for (size_t word = 0; word < words; word += chains) {
        INF_QVEC_UNROLL
        for (size_t chain = 0; chain < chains; chain++) {
            INF_QVEC_UNROLL
            for (size_t v = 0; v < vectors; v++) {
                inf_qvec_x weights = qvec_x(qvec_load((const int32_t *)(const void *)w));
                w += INF_QVEC_WIDTH;
                INF_QVEC_UNROLL
                for (size_t d = 0; d < INF_DIGITS; d++) {
                    int32_t quad;
                    memcpy(&quad, x + d * step, sizeof quad);
                    sum[chain][v][d] = qvec_dot(sum[chain][v][d], weights, qvec_all(quad));
                }
            }
            x += WORD_BYTES;
        }
    }
}

INF_QVEC_INLINE void multiply(const struct inf_blocks_panel *panel, const struct inf_digits *x,
                              float *y, const size_t vectors)
{
    const size_t width = vectors * INF_QVEC_WIDTH;
    inf_qvec_float total[INF_BLOCKS_VECTORS];
    INF_QVEC_UNROLL
    for (size_t v = 0; v < vectors; v++)
        total[v] = qvec_float_all(0);
    size_t block = 0;
    for (size_t word = 0; word < panel->count; word += panel->block_words, block++) {
        size_t left = panel->count - word;
        size_t words = left < panel->block_words ? left : panel->block_words;
        size_t even = words / CHAINS * CHAINS;
        const float *w = panel->words + word * width;
        const int8_t *digits = x->digits + word * WORD_BYTES;
        inf_qvec sum[CHAINS][INF_BLOCKS_VECTORS][INF_DIGITS];
        INF_QVEC_UNROLL
        for (size_t v = 0; v < vectors; v++) {
            inf_qvec zeros = read_zeros(panel, block, v, width);
            INF_QVEC_UNROLL
            for (size_t d = 0; d < INF_DIGITS; d++) {
                sum[0][v][d] = qvec_less(qvec_all(0), zeros, x->sums[block * INF_DIGITS + d]);
                sum[1][v][d] = qvec_all(0);
            }
        }
        add_words(sum, w, even, digits, x->step, vectors, CHAINS);
        add_words(sum, w + even * width, words - even, digits + even * WORD_BYTES, x->step, vectors,
                  1);
        INF_QVEC_UNROLL
        for (size_t v = 0; v < vectors; v++) {
            inf_qvec_float all = qvec_float_all(0);
            INF_QVEC_UNROLL
            for (size_t d = INF_DIGITS; d-- > 0;)
                all = all * (1 << DIGIT_BITS) + qvec_to_float(qvec_add(sum[0][v][d], sum[1][v][d]));
            total[v] += all * qvec_float_load(panel->scales + block * width + v * INF_QVEC_WIDTH);
        }
    }
    INF_QVEC_UNROLL
    for (size_t v = 0; v < vectors; v++) {
        total[v] *= qvec_float_all(x->unit);
        memcpy(y + v * INF_QVEC_WIDTH, &total[v], sizeof total[v]);
    }
}

static void multiply_1(const struct inf_blocks_panel *panel, const struct inf_digits *x, float *y)
{
    multiply(panel, x, y, 1);
}

static void multiply_2(const struct inf_blocks_panel *panel, const struct inf_digits *x, float *y)
{
    multiply(panel, x, y, 2);
}

const struct inf_digit_loops INF_DIGITS_TABLE = {
    .width = INF_QVEC_WIDTH,
    .convert = convert_row,
    .multiply = {multiply_1, multiply_2},
};
