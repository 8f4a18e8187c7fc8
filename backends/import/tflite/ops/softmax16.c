// SPDX-License-Identifier: Apache-2.0
// SOFTMAX of 16-bit integers as TFLite computes it, to the bit: in fixed point, with two functions
// that are interpolated in tables of 513 numbers.
//
// Both functions have 65536 possible arguments, so that they become tables of that many numbers
// here. The first maps the difference d of an element to the largest one, 0 to 65535, to
// exp(-d * scale * beta) in units of 2^-15. The sum of a row is shifted left until bit 30 is its
// highest one. Then it is 2^30 * (1 + x) with 0 <= x < 1; the second table maps x to 1 / (1 + x).
#include "backends/import/tflite/ops/softmax16.h"

#include <math.h>
#include <stdlib.h>

#include "backends/graph/build/operators.h"

#define TABLE_SIZE   65536
#define SAMPLE_COUNT 513
#define ONE          32768.0 // 1 in units of 2^-15

// --- the tables of TFLite ---

static double compute_exp(double x)
{
    return exp(x);
}

static double compute_reciprocal(double x)
{
    return 1 / (1 + x);
}

static int32_t saturate_number(double x)
{
    return (int32_t)fmin(fmax(x, -ONE), ONE - 1);
}

// Samples a function at SAMPLE_COUNT places from `least` to `most`. Each sample is moved by half of
// the error that the interpolation has in the middle of its interval.
static void sample_function(int32_t samples[SAMPLE_COUNT], double (*function)(double), double least,
                            double most)
{
    double step = (most - least) / (SAMPLE_COUNT - 1);
    for (int i = 0; i < SAMPLE_COUNT - 1; i++) {
        double sample = round(function(least + i * step) * ONE);
        double next = function(least + (i + 1) * step) * ONE;
        double middle = round(function(least + i * step + step / 2) * ONE);
        samples[i] = saturate_number(sample - round((round((next + sample) / 2) - middle) / 2));
    }
    samples[SAMPLE_COUNT - 1] = saturate_number(round(function(most) * ONE));
}

// Returns the interpolated function of an argument from -32768 to 32767.
static int32_t interpolate_samples(const int32_t samples[SAMPLE_COUNT], int32_t argument)
{
    int32_t index = 256 + (argument >> 7), offset = argument & 0x7f;
    return samples[index] + (((samples[index + 1] - samples[index]) * offset + 64) >> 7);
}

// A factor as TFLite stores it: multiplier * 2^(shift - 31).
struct factor {
    int64_t multiplier;
    int shift;
};

static struct factor make_factor(double number)
{
    struct factor factor;
    factor.multiplier = llround(frexp(number, &factor.shift) * 0x1p31);
    if (factor.multiplier == (int64_t)1 << 31) {
        factor.multiplier /= 2;
        factor.shift++;
    }
    if (factor.shift < -31)
        factor = (struct factor){0, 0};
    return factor;
}

// Multiplies x, which is not positive, and rounds twice as TFLite's runtimes do: after the
// multiplication, halves up, and after the shift to the right, halves away from 0.
static int64_t multiply_factor(int64_t x, struct factor factor)
{
    int left = factor.shift > 0 ? factor.shift : 0, right = factor.shift < 0 ? -factor.shift : 0;
    x = left < 20 ? x * ((int64_t)1 << left) : INT32_MIN;
    x = x < INT32_MIN ? INT32_MIN : x;
    int64_t product = x * factor.multiplier;
    int64_t nudge = product >= 0 ? (int64_t)1 << 30 : 1 - ((int64_t)1 << 30);
    int64_t high = (product + nudge) / ((int64_t)1 << 31);
    int64_t mask = ((int64_t)1 << right) - 1, rest = high & mask;
    return (high >> right) + (rest > (mask >> 1) + (high < 0));
}

// Adds a table with an entry for each 16-bit number.
static uint32_t add_table(struct inf_builder *b, int32_t **entries)
{
    return inf_build_const(b, INF_DTYPE_I32, &INF_SHAPE(TABLE_SIZE), entries);
}

static uint32_t add_exponentials(struct inf_builder *b, double scale)
{
    int32_t samples[SAMPLE_COUNT], *entries;
    const struct factor factor = make_factor(scale / (10.0 / 65535));
    uint32_t table = add_table(b, &entries);
    sample_function(samples, compute_exp, -10, 0);
    for (int32_t d = 0; entries != NULL && d < TABLE_SIZE; d++) {
        int64_t argument = multiply_factor(-d, factor) + 32767;
        entries[d] = interpolate_samples(samples, argument < -32768 ? -32768 : (int32_t)argument);
    }
    return table;
}

// Adds the table of 1 / (1 + x) for x from 0 to 1 in units of 2^-16.
static uint32_t add_reciprocals(struct inf_builder *b)
{
    int32_t samples[SAMPLE_COUNT], *entries;
    uint32_t table = add_table(b, &entries);
    sample_function(samples, compute_reciprocal, 0, 1);
    for (int32_t x = 0; entries != NULL && x < TABLE_SIZE; x++)
        entries[x] = interpolate_samples(samples, x - 32768);
    return table;
}

// --- the operator ---

static uint32_t add_number(struct inf_builder *b, enum inf_binary_kind kind, uint32_t x,
                           double number)
{
    return inf_build_binary_number(b, kind, x, number);
}

// Adds how many bits the positive numbers x have.
static uint32_t add_bit_count(struct inf_builder *b, uint32_t x)
{
    int32_t *powers;
    uint32_t sorted = inf_build_const(b, INF_DTYPE_I32, &INF_SHAPE(31), &powers);
    for (int i = 0; powers != NULL && i < 31; i++)
        powers[i] = (int32_t)1 << i;
    uint32_t flat = inf_build_reshape(b, x, (int64_t[]){-1}, 1);
    struct inf_build_node node =
        inf_build_describe(INF_OP_SEARCH_SORTED, sorted, flat, INF_VALUE_NONE);
    node.attrs.search_sorted.right = true;
    return inf_build_reshape_to(b, inf_build_value(b, &node), inf_build_shape(b, x));
}

uint32_t inf_tflite_softmax16(struct inf_builder *b, uint32_t x, double scale)
{
    x = inf_build_cast(b, x, INF_DTYPE_I32);
    const struct inf_ints last = {.count = 1, .values = {inf_build_rank(b, x) - 1}};
    uint32_t most = inf_build_reduce(b, INF_REDUCE_MAX, x, &last, true);
    uint32_t powers = inf_build_gather(b, add_exponentials(b, scale), inf_build_sub(b, most, x), 0);
    uint32_t sum = inf_build_reduce(b, INF_REDUCE_SUM, powers, &last, true);
    uint32_t bits = add_bit_count(b, sum);
    uint32_t left = inf_build_sub(b, inf_build_scalar(b, INF_DTYPE_I32, 31), bits);
    uint32_t shifted = inf_build_binary(b, INF_BINARY_SHIFT_LEFT, sum, left);
    // (shifted + 2^13) >> 14, without overflow.
    uint32_t half = add_number(b, INF_BINARY_SHIFT_RIGHT, shifted, 13);
    half = add_number(b, INF_BINARY_BITWISE_AND, half, 1);
    shifted = inf_build_add(b, add_number(b, INF_BINARY_SHIFT_RIGHT, shifted, 14), half);
    uint32_t fraction = add_number(b, INF_BINARY_SUB, shifted, 65536);
    fraction =
        add_number(b, INF_BINARY_MIN, add_number(b, INF_BINARY_MAX, fraction, 0), TABLE_SIZE - 1);
    uint32_t inverse = inf_build_gather(b, add_reciprocals(b), fraction, 0);
    uint32_t right = add_number(b, INF_BINARY_SUB, bits, 1);
    uint32_t rounding =
        inf_build_binary(b, INF_BINARY_SHIFT_LEFT, inf_build_scalar(b, INF_DTYPE_I32, 1),
                         add_number(b, INF_BINARY_SUB, right, 1));
    uint32_t y = inf_build_add(b, inf_build_mul(b, powers, inverse), rounding);
    y = inf_build_binary(b, INF_BINARY_SHIFT_RIGHT, y, right);
    y = add_number(b, INF_BINARY_MIN, add_number(b, INF_BINARY_MAX, y, 0), ONE - 1);
    return inf_build_cast(b, y, INF_DTYPE_I16);
}
