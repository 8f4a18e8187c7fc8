// SPDX-License-Identifier: Apache-2.0
// The loops of Winograd's algorithm at every ISA level of this processor. A tile is transformed,
// multiplied in double, transformed back, and compared with direct sums of the 3x3 windows. Every
// operand ends at a guard page, so that an access beyond its end crashes. The matrices G, which
// transform weights, are compared with the matrices that Lavin and Gray published.
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>

#include "backends/base/winograd.h"
#include "backends/cpu/kernels/isa.h"
#include "tests/support/device/fence.h"

#define PRODUCTS_MAX (INF_WINOGRAD_SIDE_MAX * INF_WINOGRAD_SIDE_MAX)
#define CHANNELS_MAX 33
#define TILE_MAX     6

// The forms of the algorithm: F(2) with the point 1, F(4) with 5/8 and 3/2, F(6) with 1/2, 1 and 2.
// `factors` holds the coefficients of the products of x^2 - p^2 over the points p, multiplied out
// by hand.
static const struct {
    struct inf_winograd_form form;
    struct inf_winograd_factors factors;
} forms[INF_WINOGRAD_FORMS] = {
    {{1, {1}}, {{-1}, {{0}}, {{1, 1}}}},
    {{2, {0.625, 1.5}},
     {{0.87890625f, -2.640625f},
      {{-2.25f}, {-0.390625f}},
      {{1, 0.625f, 0.390625f, 0.244140625f}, {1, 1.5f, 2.25f, 3.375f}}}},
    {{3, {0.5, 1, 2}},
     {{-1, 5.25f, -5.25f},
      {{4, -5}, {1, -4.25f}, {0.25f, -1.25f}},
      {{1, 0.5f, 0.25f, 0.125f, 0.0625f, 0.03125f}, {1, 1, 1, 1, 1, 1}, {1, 2, 4, 8, 16, 32}}}},
};

// Four times the largest errors seen at any ISA level: 4.4e-7, 3.3e-6 and 2.4e-5.
static const double tolerances[INF_WINOGRAD_FORMS] = {2e-6, 1.4e-5, 1e-4};

// Indices of the operands of a call in the array `fences`.
enum {
    X,
    V,
    SUMS,
    BIAS,
    SLOPES,
    RESIDUAL,
    Y,
    OPERANDS
};

static struct fence fences[OPERANDS];

static void drop_operands(void)
{
    for (int i = 0; i < OPERANDS; i++)
        fence_fini(&fences[i]);
}

TestSuite(winograd, .fini = drop_operands);

static uint32_t state = 1;

static float draw_number(void)
{
    state = state * 1664525u + 1013904223u;
    return (float)(state >> 8) / 8388608.0f - 1.0f;
}

static float *draw_numbers(int operand, size_t count)
{
    float *x = fence_bytes(&fences[operand], count * sizeof(*x), 0, 0);
    for (size_t i = 0; i < count; i++)
        x[i] = draw_number();
    return x;
}

static size_t pad_up(size_t count)
{
    return (count + INF_WINOGRAD_PAD - 1) / INF_WINOGRAD_PAD * INF_WINOGRAD_PAD;
}

// --- matrices ---

static void expect_matrix(const struct inf_winograd_form *form, const double (*wanted)[3])
{
    double g[INF_WINOGRAD_SIDE_MAX][3];
    inf_winograd_weight_matrix(form, g);
    for (size_t i = 0; i < inf_winograd_side(form); i++)
        for (size_t k = 0; k < 3; k++)
            cr_assert_float_eq(g[i][k], wanted[i][k], 1e-15, "G[%zu][%zu] is %g", i, k, g[i][k]);
}

Test(winograd, weight_matrices_are_the_published_ones)
{
    static const double four[6][3] = {{1 / 4.0, 0, 0},
                                      {-1 / 6.0, -1 / 6.0, -1 / 6.0},
                                      {-1 / 6.0, 1 / 6.0, -1 / 6.0},
                                      {1 / 24.0, 1 / 12.0, 1 / 6.0},
                                      {1 / 24.0, -1 / 12.0, 1 / 6.0},
                                      {0, 0, 1}};
    // The first row has the opposite sign of the published one, because the transform of the inputs
    // uses x^2 - 1 instead of 1 - x^2.
    static const double two[4][3] = {{-1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};
    static const double six[8][3] = {{-1, 0, 0},
                                     {-2 / 9.0, -2 / 9.0, -2 / 9.0},
                                     {-2 / 9.0, 2 / 9.0, -2 / 9.0},
                                     {1 / 90.0, 1 / 45.0, 2 / 45.0},
                                     {1 / 90.0, -1 / 45.0, 2 / 45.0},
                                     {32 / 45.0, 16 / 45.0, 8 / 45.0},
                                     {32 / 45.0, -16 / 45.0, 8 / 45.0},
                                     {0, 0, 1}};
    expect_matrix(&(struct inf_winograd_form){1, {1}}, two);
    expect_matrix(&(struct inf_winograd_form){2, {1, 2}}, four);
    expect_matrix(&(struct inf_winograd_form){3, {1, 2, 0.5}}, six);
}

Test(winograd, multiplies_out_the_pairs)
{
    for (size_t f = 0; f < INF_WINOGRAD_FORMS; f++) {
        unsigned pairs = forms[f].form.pairs;
        double numbers[INF_WINOGRAD_PAIRS_MAX];
        inf_winograd_multiply_pairs(&forms[f].form, pairs, numbers);
        for (unsigned k = 0; k < pairs; k++)
            cr_assert_eq(numbers[k], (double)forms[f].factors.whole[k]);
        for (unsigned i = 0; i < pairs; i++) {
            inf_winograd_multiply_pairs(&forms[f].form, i, numbers);
            for (unsigned k = 0; k + 1 < pairs; k++)
                cr_assert_eq(numbers[k], (double)forms[f].factors.rest[i][k]);
        }
    }
}

// --- one tile ---

struct tile {
    size_t form, channels, rows, pixels, residual_columns;
    int slopes;
};

// Multiplies the transformed inputs v of each channel with the transformed weights of the same
// channel, whose 3x3 weights are g[channel]. The convolution is depthwise: column c of `sums` is
// the result for channel c.
static void multiply_depthwise(const struct tile *tile, const float *v, size_t v_step,
                               const float (*g)[9], float *sums, size_t sum_step)
{
    double matrix[INF_WINOGRAD_SIDE_MAX][3];
    size_t side = inf_winograd_side(&forms[tile->form].form);
    inf_winograd_weight_matrix(&forms[tile->form].form, matrix);
    for (size_t at = 0; at < side * side; at++)
        for (size_t c = 0; c < tile->channels; c++) {
            double u = 0;
            for (size_t tap = 0; tap < 9; tap++)
                u += matrix[at / side][tap / 3] * matrix[at % side][tap % 3] * (double)g[c][tap];
            sums[at * sum_step + c] = (float)(u * (double)v[at * v_step + c]);
        }
}

static double sum_window(const float *x, size_t row_step, size_t pixel_step, const float *g)
{
    double sum = 0;
    for (size_t tap = 0; tap < 9; tap++)
        sum += (double)g[tap] * (double)x[tap / 3 * row_step + tap % 3 * pixel_step];
    return sum;
}

static void check_tile(const struct inf_winograd *loops, const struct tile *tile)
{
    static float g[CHANNELS_MAX][9];
    size_t side = inf_winograd_side(&forms[tile->form].form);
    size_t padded = pad_up(tile->channels);
    size_t pixel_step = tile->channels + 2;
    size_t row_step = side * pixel_step + 3;
    float *x = draw_numbers(X, (side - 1) * (row_step + pixel_step) + tile->channels);
    float *v = draw_numbers(V, side * side * padded);
    float *sums = draw_numbers(SUMS, side * side * padded);
    float *bias = draw_numbers(BIAS, padded);
    float *slopes = draw_numbers(SLOPES, padded);
    size_t y_pixel = tile->channels + 1;
    size_t y_row = TILE_MAX * y_pixel;
    size_t added_pixel = tile->residual_columns + 1;
    size_t added_row = TILE_MAX * added_pixel;
    float *residual =
        draw_numbers(RESIDUAL, (tile->rows - 1) * added_row + (tile->pixels - 1) * added_pixel +
                                   tile->residual_columns);
    size_t y_count = (tile->rows - 1) * y_row + (tile->pixels - 1) * y_pixel + tile->channels;
    float *y = fence_bytes(&fences[Y], y_count * sizeof(*y), 0, 0xff);
    for (size_t c = 0; c < tile->channels; c++)
        for (size_t tap = 0; tap < 9; tap++)
            g[c][tap] = draw_number();
    loops->in[tile->form](&forms[tile->form].factors,
                          &(struct inf_winograd_in){.x = x,
                                                    .row_step = row_step,
                                                    .pixel_step = pixel_step,
                                                    .channels = tile->channels,
                                                    .v = v,
                                                    .matrix_step = padded});
    multiply_depthwise(tile, v, padded, g, sums, padded);
    loops->out[tile->form](
        &forms[tile->form].factors,
        &(struct inf_winograd_out){.sums = sums,
                                   .matrix_step = padded,
                                   .columns = tile->channels,
                                   .bias = bias,
                                   .slopes = tile->slopes ? slopes : NULL,
                                   .residual = tile->residual_columns > 0 ? residual : NULL,
                                   .residual_row_step = added_row,
                                   .residual_step = added_pixel,
                                   .residual_columns = tile->residual_columns,
                                   .min = -1.5f,
                                   .max = 1.25f,
                                   .y = y,
                                   .row_step = y_row,
                                   .pixel_step = y_pixel,
                                   .rows = tile->rows,
                                   .pixels = tile->pixels});
    for (size_t i = 0; i < y_count; i++) {
        size_t row = i / y_row;
        size_t pixel = i % y_row / y_pixel;
        size_t c = i % y_row % y_pixel;
        if (pixel >= tile->pixels || c >= tile->channels) {
            cr_assert(isnan(y[i]), "row %zu, pixel %zu, channel %zu is written", row, pixel, c);
            continue;
        }
        double sum =
            sum_window(x + row * row_step + pixel * pixel_step + c, row_step, pixel_step, g[c]) +
            (double)bias[c];
        if (c < tile->residual_columns)
            sum += (double)residual[row * added_row + pixel * added_pixel + c];
        if (tile->slopes && sum < 0)
            sum *= (double)slopes[c];
        cr_assert_float_eq(y[i], fmin(fmax(sum, -1.5), 1.25), tolerances[tile->form],
                           "F(%zu) of %zu channels: row %zu, pixel %zu, channel %zu is %g, not %g",
                           2 * tile->form + 2, tile->channels, row, pixel, c, (double)y[i], sum);
    }
}

static void check_level(const struct inf_winograd *loops)
{
    static const size_t channels[] = {1, 2, 3, 4, 5, 7, 8, 11, 15, 16, 17, 31, 32, CHANNELS_MAX};
    for (size_t form = 0; form < INF_WINOGRAD_FORMS; form++) {
        size_t n = 2 * form + 2;
        for (size_t k = 0; k < sizeof(channels) / sizeof(*channels); k++)
            for (size_t cut = 0; cut < n; cut++) {
                struct tile tile = {form, channels[k], n - cut, n, 0, (int)(cut & 1)};
                check_tile(loops, &tile);
                tile = (struct tile){
                    form, channels[k], n, n - cut, 1 + cut * 5 % channels[k], (int)(cut & 1)};
                check_tile(loops, &tile);
            }
    }
}

Test(winograd, agrees_with_direct_sums_at_every_level)
{
    const struct inf_isa *isa;
    for (unsigned level = 0; (isa = inf_isa_level(level)) != NULL; level++)
        check_level(isa->nn->winograd);
}

Test(winograd, nan_stays_nan)
{
    const struct inf_isa *isa;
    for (unsigned level = 0; (isa = inf_isa_level(level)) != NULL; level++) {
        float *sums = draw_numbers(SUMS, 16 * INF_WINOGRAD_PAD);
        float *bias = draw_numbers(BIAS, INF_WINOGRAD_PAD);
        float y[4] = {0};
        sums[0] = NAN;
        isa->nn->winograd->out[0](&forms[0].factors,
                                  &(struct inf_winograd_out){.sums = sums,
                                                             .matrix_step = INF_WINOGRAD_PAD,
                                                             .columns = 1,
                                                             .bias = bias,
                                                             .min = 0,
                                                             .max = 6,
                                                             .y = y,
                                                             .row_step = 2,
                                                             .pixel_step = 1,
                                                             .rows = 2,
                                                             .pixels = 2});
        cr_assert(isnan(y[0]), "%s", isa->name);
        cr_assert(!isnan(y[3]), "%s", isa->name);
    }
}
