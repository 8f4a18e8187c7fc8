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
