// SPDX-License-Identifier: Apache-2.0
// The loops on weights of 2, 4 and 8 bits in blocks at every ISA level of this processor, compared
// with sums in double. Operands end at a guard page, so that an access beyond their end crashes.
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "backends/cpu/kernels/isa.h"
#include "tests/support/device/fence.h"

#define COLUMNS_MAX 32
#define WEIGHTS_MAX 320
#define BLOCKS_MAX  10

// Indices of the operands of a call in the array `fences`.
enum {
    WORDS,
    SCALES,
    ZEROS,
    X,
    Y,
    DIGITS,
    SUMS,
    OPERANDS
};

// How the zero points of a case are given.
enum zeros {
    MIDDLE,
    BYTES,
    FLOATS,
    ZERO_KINDS
};

static struct fence fences[OPERANDS];

static void drop_operands(void)
{
    for (int i = 0; i < OPERANDS; i++)
        fence_fini(&fences[i]);
}

TestSuite(blocks, .fini = drop_operands);

static uint32_t state = 1;

static uint32_t draw_bits(void)
{
    state = state * 1664525u + 1013904223u;
    return state >> 16;
}

// A case: one panel, and its weights as plain numbers.
struct test_case {
    struct inf_blocks_panel panel;
    size_t bits, width, weights; // weights of a column from the start of the panel
    double w[WEIGHTS_MAX][COLUMNS_MAX];
};

// Draws the zero points of the panel. Sets zero[block][column] to them.
static void draw_zeros(struct test_case *test, enum zeros kind, size_t blocks,
                       double zero[BLOCKS_MAX][COLUMNS_MAX])
{
    size_t width = test->width, rows = kind == BYTES ? (blocks + 3) / 4 : blocks;
    float *floats = fence_bytes(&fences[ZEROS], rows * width * sizeof(float), 0, 0);
    for (size_t b = 0; b < blocks; b++)
        for (size_t c = 0; c < width; c++) {
            uint32_t number = draw_bits() % (1u << test->bits);
            zero[b][c] = kind == MIDDLE ? 1u << (test->bits - 1) : number;
            if (kind == FLOATS)
                zero[b][c] += 0.375;
            if (kind == BYTES)
                ((uint8_t *)(floats + b / 4 * width + c))[b % 4] = (uint8_t)number;
            else
                floats[b * width + c] = (float)zero[b][c];
        }
    test->panel.zero_words = kind == BYTES ? floats : NULL;
    test->panel.zeros = kind == FLOATS ? floats : NULL;
    test->panel.middle = (float)(1 << (test->bits - 1));
}

// Draws `blocks` blocks of `block` weights in panels of `width` columns. The loops begin at block
// `first`, and process all words but `missing`.
static void draw_case(struct test_case *test, enum zeros kind, size_t block, size_t blocks,
                      size_t first, size_t missing)
{
    double zero[BLOCKS_MAX][COLUMNS_MAX];
    size_t each = 32 / test->bits, width = test->width, words = block * blocks / each;
    float *scales = fence_bytes(&fences[SCALES], blocks * width * sizeof(float), 0, 0);
    uint32_t *packed = fence_bytes(&fences[WORDS], words * width * sizeof(uint32_t), 0, 0);
    draw_zeros(test, kind, blocks, zero);
    for (size_t i = 0; i < blocks * width; i++)
        scales[i] = (float)(1 + draw_bits() % 255) / 128;
    for (size_t k = 0; k < block * blocks; k++)
        for (size_t c = 0; c < width; c++) {
            uint32_t number = draw_bits() % (1u << test->bits);
            packed[k / each * width + c] |= number << (k % each * test->bits);
            if (k >= first * block)
                test->w[k - first * block][c] =
                    (number - zero[k / block][c]) * (double)scales[k / block * width + c];
        }
    test->panel.words = (const float *)packed;
    test->panel.scales = scales;
    test->panel.block_words = block / each;
    test->panel.first = first;
    test->panel.count = words - first * block / each - missing;
    test->weights = test->panel.count * each;
}

static void check_loops(const struct inf_blocks_loops *loops, const struct test_case *test,
                        const char *level)
{
    float *x = fence_bytes(&fences[X], test->weights * sizeof(float), 0, 0);
    for (size_t k = 0; k < test->weights; k++)
        x[k] = (float)draw_bits() / 32768 - 1;
    float *y = fence_bytes(&fences[Y], test->width * sizeof(float), 0, 0xff);
    loops->multiply(&test->panel, x, y);
    for (size_t c = 0; c < test->width; c++) {
        double sum = 0, size = 0;
        for (size_t k = 0; k < test->weights; k++) {
            sum += (double)x[k] * test->w[k][c];
            size += fabs((double)x[k] * test->w[k][c]);
        }
        cr_assert_float_eq((double)y[c], sum, 1e-6 * (1 + size), "%s: %zu bits, column %zu", level,
                           test->bits, c);
    }
    float *w = fence_bytes(&fences[Y], test->weights * test->width * sizeof(float), 0, 0xff);
    loops->expand(&test->panel, w);
    for (size_t i = 0; i < test->weights * test->width; i++) {
        double wanted = test->w[i / test->width][i % test->width];
        cr_assert_float_eq((double)w[i], wanted, 2e-7 * fabs(wanted), "%s: %zu bits, weight %zu",
                           level, test->bits, i);
    }
}

// Checks all loops of one table of an ISA level.
static void check_table(const struct inf_nn_blocks *table, const char *level)
{
    static const struct {
        size_t block, blocks, first, missing;
    } shapes[] = {{16, 1, 0, 0}, {16, 9, 0, 0}, {32, 10, 3, 1}, {16, 5, 4, 0}, {128, 2, 1, 3}};
    static struct test_case test;
    for (size_t bits = 2; bits <= 8; bits *= 2)
        for (size_t vectors = 1; vectors <= INF_BLOCKS_VECTORS; vectors++)
            for (enum zeros kind = MIDDLE; kind < ZERO_KINDS; kind++)
                for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
                    test = (struct test_case){.bits = bits, .width = vectors * table->width};
                    draw_case(&test, kind, shapes[i].block, shapes[i].blocks, shapes[i].first,
                              bits == 2 ? 0 : shapes[i].missing);
                    check_loops(&table->loops[inf_blocks_form(bits)][vectors - 1], &test, level);
                }
}

Test(blocks, multiplies_and_expands_weights_of_2_4_and_8_bits)
{
    const struct inf_isa *isa;
    for (unsigned level = 0; (isa = inf_isa_level(level)) != NULL; level++) {
        check_table(isa->nn->blocks, isa->name);
        check_table(isa->nn->blocks_half, isa->name);
        cr_assert_eq(isa->nn->blocks->width, isa->nn->gemm->width);
        cr_assert_eq(isa->nn->blocks_half->width, isa->nn->gemm_half->width);
    }
}

// A number equal to its zero point is the weight 0, and differences are exact, so that a large x
// neither overflows nor loses digits beside weights that cancel it.
Test(blocks, differences_of_numbers_and_zero_points_are_exact)
{
    const struct inf_isa *isa;
    for (unsigned level = 0; (isa = inf_isa_level(level)) != NULL; level++) {
        const struct inf_nn_blocks *table = isa->nn->blocks;
        float scales[COLUMNS_MAX], y[COLUMNS_MAX], x[16] = {0};
        uint32_t words[2 * COLUMNS_MAX];
        for (int i = 0; i < COLUMNS_MAX; i++) {
            scales[i] = 1;
            words[i] = words[COLUMNS_MAX + i] = 0x88888888; // zeros
        }
        for (size_t c = 0; c < table->width; c++)
            words[c] = 0x88888f97; // -1, 1, 7, 0, 0, 0, 0, 0
        x[0] = x[1] = 3e38f;
        x[2] = 1;
        for (int i = 3; i < 16; i++)
            x[i] = 3e38f;
        struct inf_blocks_panel panel = {.words = (const float *)words,
                                         .scales = scales,
                                         .middle = 8,
                                         .block_words = 2,
                                         .count = 1};
        table->loops[inf_blocks_form(4)][0].multiply(&panel, x, y);
        for (size_t c = 0; c < table->width; c++)
            cr_assert_lt(fabsf(y[c]), INFINITY, "%s: %g", isa->name, (double)y[c]);
        x[0] = x[1] = 0;
        table->loops[inf_blocks_form(4)][0].multiply(&panel, x, y);
        for (size_t c = 0; c < table->width; c++)
            cr_assert_eq(y[c], 7, "%s: %g", isa->name, (double)y[c]);
    }
}

// --- rows of x in digits ---

// Converts x for blocks of `block` elements. All memory of the digits ends at guard pages.
static bool convert_row(const struct inf_digit_loops *loops, const float *x, size_t count,
                        size_t block, struct inf_digits *digits)
{
    size_t blocks = (count + block - 1) / block;
    digits->step = (count + 3) / 4 * 4;
    digits->digits = fence_bytes(&fences[DIGITS], INF_DIGITS * digits->step, 0, 0x55);
    digits->sums = fence_bytes(&fences[SUMS], blocks * INF_DIGITS * sizeof(int32_t), 0, 0x55);
    return loops->convert(x, count, block, digits);
}

static void check_digits(const struct inf_digit_loops *loops, size_t vectors,
                         const struct test_case *test, size_t block, size_t missing,
                         const char *level)
{
    struct inf_digits digits;
    size_t count = test->weights - missing;
    float *x = fence_bytes(&fences[X], count * sizeof(float), 0, 0);
    for (size_t k = 0; k < count; k++)
        x[k] = (float)draw_bits() / 32768 - 1;
    cr_assert(convert_row(loops, x, count, block, &digits));
    float *y = fence_bytes(&fences[Y], test->width * sizeof(float), 0, 0xff);
    loops->multiply[vectors - 1](&test->panel, &digits, y);
    for (size_t c = 0; c < test->width; c++) {
        double sum = 0, size = 0;
        for (size_t k = 0; k < count; k++) {
            sum += (double)x[k] * test->w[k][c];
            size += fabs((double)x[k] * test->w[k][c]);
        }
        cr_assert_float_eq((double)y[c], sum, 1e-6 * (1 + size), "%s: %zu elements, column %zu",
                           level, count, c);
    }
}

static void check_digit_table(const struct inf_digit_loops *loops, const char *level)
{
    // the last column: elements that x has fewer than the words have weights
    static const size_t shapes[][4] = {
        {16, 1, 0, 0}, {16, 9, 1, 2}, {32, 10, 1, 3}, {128, 2, 0, 1}, {80, 4, 5, 0}};
    static struct test_case test;
    for (size_t vectors = 1; vectors <= INF_BLOCKS_VECTORS; vectors++)
        for (enum zeros kind = MIDDLE; kind <= BYTES; kind++)
            for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
                test = (struct test_case){.bits = 8, .width = vectors * loops->width};
                draw_case(&test, kind, shapes[i][0], shapes[i][1], 0, shapes[i][2]);
                check_digits(loops, vectors, &test, shapes[i][0], shapes[i][3], level);
            }
}

// Calls `check` for all tables of loops on digits of this processor.
static void for_each_digit_table(void (*check)(const struct inf_digit_loops *, const char *))
{
    const struct inf_isa *isa;
    for (unsigned level = 0; (isa = inf_isa_level(level)) != NULL; level++) {
        if (isa->q8->digits == NULL)
            continue;
        cr_assert_eq(isa->q8->digits->width, isa->nn->blocks->width, "%s", isa->name);
        cr_assert_eq(isa->q8->digits_half->width, isa->nn->blocks_half->width, "%s", isa->name);
        check(isa->q8->digits, isa->name);
        check(isa->q8->digits_half, isa->name);
    }
}

Test(blocks, multiplies_rows_in_digits)
{
    for_each_digit_table(check_digit_table);
}

static void check_integers(const struct inf_digit_loops *loops, const char *level)
{
    enum {
        COUNT = 131
    };
    // 127 << 16 is the largest element, so that the unit is 1 and each element is its own integer.
    float *x = fence_bytes(&fences[X], COUNT * sizeof(float), 0, 0);
    const float edges[] = {8323072, -8323072, 127,    128,    -128,    -129, 32767, 32768, 32895,
                           32896,   -32768,   -32896, -32897, 8323071, 0,    -1,    0.5f,  1.5f};
    struct inf_digits digits;
    for (size_t i = 0; i < COUNT; i++)
        x[i] = i < sizeof(edges) / sizeof(edges[0]) ? edges[i] : (float)draw_bits() * 100;
    cr_assert(convert_row(loops, x, COUNT, 32, &digits));
    cr_assert_eq(digits.unit, 1);
    int32_t sums[5][INF_DIGITS] = {{0}};
    for (size_t i = 0; i < digits.step; i++) {
        int32_t all = 0;
        for (size_t d = INF_DIGITS; d-- > 0;) {
            int8_t digit = digits.digits[d * digits.step + i];
            all = all * 256 + digit;
            sums[i / 32][d] += digit;
        }
        cr_assert_eq(all, i < COUNT ? (int32_t)nearbyintf(x[i]) : 0, "%s: element %zu", level, i);
    }
    for (size_t b = 0; b < 5; b++)
        for (size_t d = 0; d < INF_DIGITS; d++)
            cr_assert_eq(digits.sums[b * INF_DIGITS + d], sums[b][d], "%s: block %zu", level, b);
}

Test(blocks, digits_are_the_nearest_integers)
{
    for_each_digit_table(check_integers);
}

static void check_refusals(const struct inf_digit_loops *loops, const char *level)
{
    static const float refused[] = {INFINITY, -INFINITY, NAN, 3e38f, 0, 1e-40f};
    float x[16];
    struct inf_digits digits;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        for (size_t k = 0; k < 16; k++)
            x[k] = refused[i] == 0 || refused[i] == 1e-40f ? 0 : 1;
        x[i + 3] = refused[i];
        cr_assert_not(convert_row(loops, x, 16, 16, &digits), "%s: %g", level, (double)refused[i]);
    }
    for (size_t k = 0; k < 16; k++)
        x[k] = -1e-20f;
    cr_assert(convert_row(loops, x, 16, 16, &digits), "%s", level);
}

Test(blocks, rows_without_a_unit_have_no_digits)
{
    for_each_digit_table(check_refusals);
}

// The largest sums that a block can have: all weights and digits have the largest magnitude.
static void check_largest_sums(const struct inf_digit_loops *loops, const char *level)
{
    size_t words = INF_DIGITS_BLOCK_MAX / 4, width = loops->width;
    uint32_t *packed =
        fence_bytes(&fences[WORDS], words * width * sizeof(uint32_t), 0, 0xff); // 255 each
    float *x = fence_bytes(&fences[X], INF_DIGITS_BLOCK_MAX * sizeof(float), 0, 0);
    float scales[COLUMNS_MAX], zeros[COLUMNS_MAX] = {0}, y[COLUMNS_MAX];
    struct inf_digits digits;
    for (size_t i = 0; i < COLUMNS_MAX; i++)
        scales[i] = 1;
    for (size_t i = 0; i < INF_DIGITS_BLOCK_MAX; i++)
        x[i] = i == 0 ? 8323072 : -32896; // digits 0, -128 and -128
    struct inf_blocks_panel panel = {.words = (const float *)packed,
                                     .scales = scales,
                                     .zero_words = zeros,
                                     .block_words = words,
                                     .count = words};
    cr_assert(convert_row(loops, x, INF_DIGITS_BLOCK_MAX, INF_DIGITS_BLOCK_MAX, &digits));
    loops->multiply[0](&panel, &digits, y);
    double wanted = 255 * (8323072.0 - 32896.0 * (INF_DIGITS_BLOCK_MAX - 1));
    for (size_t c = 0; c < width; c++)
        cr_assert_float_eq((double)y[c], wanted, -1e-6 * wanted, "%s: %g", level, (double)y[c]);
}

Test(blocks, sums_of_the_largest_block_do_not_overflow)
{
    for_each_digit_table(check_largest_sums);
}
