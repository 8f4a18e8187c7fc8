// SPDX-License-Identifier: Apache-2.0
// The loops of convolutions at every ISA level of this processor, compared with plain sums in
// double. Every operand ends at a guard page, so that an access beyond it crashes.
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include "backends/cpu/kernels/isa.h"
#include "tests/support/device/fence.h"

#define BEFORE 40 // elements before the results that must remain NaN

// Indices of the operands of a call in the array `fences`. Each operand has its own memory that
// ends at an unreadable page.
enum {
    A,
    W,
    BIAS,
    SLOPES,
    RESIDUAL,
    Y,
    ROWS,
    OPERANDS = ROWS + INF_DEPTHWISE_ROWS
};

static struct fence fences[OPERANDS];

static void drop_operands(void)
{
    for (int i = 0; i < OPERANDS; i++)
        fence_fini(&fences[i]);
}

TestSuite(simd_nn, .fini = drop_operands);

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

// Allocates memory for `count` results. All elements are NaN at first.
static float *allocate_results(size_t count)
{
    return fence_bytes(&fences[Y], count * sizeof(float), BEFORE * sizeof(float), 0xff);
}

static void check_before(const float *y)
{
    for (size_t i = 1; i <= BEFORE; i++)
        cr_assert(isnan(y[-(ptrdiff_t)i]), "element -%zu is written", i);
}

static double apply_ending(double sum, const float *slope, double min, double max)
{
    if (slope != NULL && sum < 0)
        sum *= (double)*slope;
    return fmin(fmax(sum, min), max);
}

// --- matrix products ---

struct product {
    size_t pixels, vectors, columns, segments, depth, residual_columns;
    int slopes;
};

static void check_product(const struct inf_nn_gemm *nn, const struct product *p)
{
    size_t width = p->vectors * nn->width;
    size_t a_step = p->depth + 3;
    size_t y_step = p->columns + 5;
    size_t residual_step = p->residual_columns + 1;
    float *a = draw_numbers(A, (p->segments * p->pixels - 1) * a_step + p->depth);
    float *w = draw_numbers(W, p->segments * p->depth * width);
    float *bias = draw_numbers(BIAS, width);
    float *slopes = draw_numbers(SLOPES, width);
    float *residual = draw_numbers(RESIDUAL, (p->pixels - 1) * residual_step + p->residual_columns);
    float *y = allocate_results((p->pixels - 1) * y_step + p->columns);
    const float *segments[4];
    for (size_t s = 0; s < p->segments; s++)
        segments[s] = s == 1 ? NULL : a + s * p->pixels * a_step;
    struct inf_gemm_panel panel = {.segments = p->segments,
                                   .depth = p->depth,
                                   .w = w,
                                   .bias = bias,
                                   .slopes = p->slopes ? slopes : NULL,
                                   .residual_step = residual_step,
                                   .residual_columns = p->residual_columns,
                                   .min = -1.5f,
                                   .max = 1.25f,
                                   .y_step = y_step,
                                   .columns = p->columns};
    struct inf_gemm gemm = {.a = segments,
                            .a_step = a_step,
                            .prefetch = w,
                            .residual = p->residual_columns > 0 ? residual : NULL,
                            .y = y};
    nn->gemm[p->vectors - 1][p->pixels - 1](&panel, &gemm);
    for (size_t i = 0; i < p->pixels; i++) {
        for (size_t c = 0; c < (i + 1 < p->pixels ? y_step : p->columns); c++) {
            float got = y[i * y_step + c];
            if (c >= p->columns) {
                cr_assert(isnan(got), "pixel %zu, column %zu behind the last", i, c);
                continue;
            }
            double sum = (double)bias[c];
            for (size_t s = 0; s < p->segments; s++) {
                for (size_t k = 0; k < p->depth && segments[s] != NULL; k++)
                    sum += (double)segments[s][i * a_step + k] *
                           (double)w[(s * p->depth + k) * width + c];
            }
            if (c < p->residual_columns)
                sum += (double)residual[i * residual_step + c];
            cr_assert_float_eq(got, apply_ending(sum, p->slopes ? &slopes[c] : NULL, -1.5, 1.25),
                               1e-4, "%zu pixels of %zu columns: pixel %zu, column %zu", p->pixels,
                               p->columns, i, c);
        }
    }
    check_before(y);
}

static void check_products(const struct inf_nn_gemm *nn)
{
    for (size_t pixels = 1; pixels <= nn->rows_max; pixels++) {
        for (size_t vectors = 1; vectors <= INF_GEMM_PANELS; vectors++) {
            size_t width = vectors * nn->width;
            for (size_t columns = width - nn->width + 1; columns <= width; columns++) {
                struct product product = {pixels,
                                          vectors,
                                          columns,
                                          1 + columns % 3,
                                          1 + (pixels * 7 + columns) % 30,
                                          0,
                                          (int)(columns & 1)};
                check_product(nn, &product);
                product.residual_columns = 1 + pixels * 5 % columns;
                check_product(nn, &product);
            }
        }
    }
}

Test(simd_nn, products_are_sums_of_products)
{
    for (unsigned level = 0; inf_isa_level(level) != NULL; level++) {
        const struct inf_isa *isa = inf_isa_level(level);
        check_products(isa->nn->gemm);
        check_products(isa->nn->gemm_half);
        printf("%s: products of 1 to %zu pixels and vectors of %zu and %zu\n", isa->name,
               isa->nn->gemm->rows_max, isa->nn->gemm->width, isa->nn->gemm_half->width);
    }
}

// All calls of a panel together prefetch the next panel if it is small; each call of a large one
// prefetches a cache line for each row.
Test(simd_nn, calls_share_the_prefetches_of_a_small_panel)
{
    for (size_t calls = 1; calls <= 8; calls++) {
        size_t step = inf_gemm_prefetch_step(64, 64 * 512, calls);
        cr_assert_geq(step * calls, 64u, "%zu calls by %zu bytes", calls, step);
        cr_assert_lt((step - 1) * calls, 64u, "%zu calls by %zu bytes", calls, step);
    }
    cr_assert_eq(inf_gemm_prefetch_step(64, 64 * 2048, 4), 16u);
    cr_assert_eq(inf_gemm_prefetch_step(64, 64 * 2049, 4), 64u);
    cr_assert_eq(inf_gemm_prefetch_step(64, 64 * 512, 100), 8u);
}

Test(simd_nn, products_keep_nan)
{
    for (unsigned level = 0; inf_isa_level(level) != NULL; level++) {
        const struct inf_nn_gemm *nn = inf_isa_level(level)->nn->gemm;
        float w[64];
        float zeros[64] = {0};
        float y[64];
        for (size_t k = 0; k < 64; k++)
            w[k] = 1;
        const float a[1] = {NAN};
        const float *segment[1] = {a};
        struct inf_gemm_panel panel = {.segments = 1,
                                       .depth = 1,
                                       .w = w,
                                       .bias = zeros,
                                       .max = 6,
                                       .y_step = 64,
                                       .columns = nn->width};
        struct inf_gemm gemm = {.a = segment, .a_step = 1, .prefetch = w, .y = y};
        nn->gemm[0][0](&panel, &gemm);
        for (size_t c = 0; c < nn->width; c++)
            cr_assert(isnan(y[c]));
    }
}

// --- depthwise convolutions ---

struct window {
    int taps, stride, pad;
    size_t width, output_width, channels;
    size_t rows;     // rows of the result, 1 or 2
    size_t dilation; // distance in pixels between the taps of a window
    int slopes;
};

static double compute_exact(const struct window *win, const float *const *rows, const float *w,
                            size_t pixel, size_t row, size_t channel)
{
    double sum = 0;
    for (int ky = 0; ky < win->taps; ky++) {
        const float *x = rows[row * (size_t)win->stride + (size_t)ky];
        for (int kx = 0; kx < win->taps && x != NULL; kx++) {
            ptrdiff_t at = (ptrdiff_t)pixel * win->stride + kx - win->pad;
            if (at >= 0 && at < (ptrdiff_t)win->width)
                sum += (double)x[(size_t)at * win->channels * win->dilation + channel] *
                       (double)w[(size_t)(ky * win->taps + kx) * win->channels + channel];
        }
    }
    return sum;
}

static void check_window(const struct inf_nn_depthwise *nn, const struct window *win, int missing)
{
    size_t taps = (size_t)(win->taps * win->taps);
    size_t step = win->channels * win->dilation;
    size_t row_size = (win->output_width - 1) * step + win->channels;
    float *w = draw_numbers(W, taps * win->channels);
    float *bias = draw_numbers(BIAS, win->channels);
    float *slopes = draw_numbers(SLOPES, win->channels);
    float *y = allocate_results(win->rows * row_size);
    struct inf_depthwise d = {.pad = win->pad,
                              .width = win->width,
                              .output_width = win->output_width,
                              .channels = win->channels,
                              .step = step,
                              .end = win->channels,
                              .w = w,
                              .bias = bias,
                              .slopes = win->slopes ? slopes : NULL,
                              .min = -1,
                              .max = 6,
                              .prefetches = win->output_width % 3 == 0};
    for (int i = 0; i < INF_DEPTHWISE_ROWS; i++) {
        const float *row = draw_numbers(ROWS + i, (win->width - 1) * step + win->channels);
        d.rows[i] = i == missing ? NULL : row;
    }
    d.y[0] = y;
    d.y[1] = win->rows > 1 ? y + row_size : NULL;
    nn->form[inf_depthwise_form(win->taps, win->stride)](&d);
    for (size_t i = 0; i < win->rows * row_size; i++) {
        size_t row = i / row_size;
        size_t channel = i % row_size % step;
        if (channel >= win->channels) {
            cr_assert(isnan(y[i]), "element %zu between two pixels", i);
            continue;
        }
        double sum = (double)bias[channel] +
                     compute_exact(win, d.rows, w, i % row_size / step, row, channel);
        cr_assert_float_eq(y[i], apply_ending(sum, win->slopes ? &slopes[channel] : NULL, -1, 6),
                           1e-4, "%dx%d by %d, %zu pixels, %zu channels, element %zu", win->taps,
                           win->taps, win->stride, win->output_width, win->channels, i);
    }
    check_before(y);
}

static void check_windows(const struct inf_nn_depthwise *nn)
{
    for (int form = 0; form < INF_DEPTHWISE_FORMS; form++) {
        for (size_t output = 1; output < 20; output++) {
            struct window win = {.taps = form < 2 ? 3 : 5,
                                 .stride = form % 2 + 1,
                                 .output_width = output,
                                 .channels = nn->width + output * 5 % 23,
                                 .rows = form == 0 && output % 2 ? 2 : 1,
                                 .dilation = 1 + output / 4 % 2,
                                 .slopes = (int)output & 1};
            win.pad = (int)output % win.taps;
            // The rows of x end before, exactly at, or after the end of the last window.
            size_t wanted = (output - 1) * (size_t)win.stride + (size_t)(win.taps - win.pad);
            for (size_t width = wanted > 2 ? wanted - 2 : 1; width <= wanted + 1; width++) {
                win.width = width;
                check_window(nn, &win, -1);
                check_window(nn, &win, (int)output % win.taps);
            }
        }
    }
}

Test(simd_nn, depthwise_windows_are_sums_over_what_is_inside)
{
    for (unsigned level = 0; inf_isa_level(level) != NULL; level++) {
        const struct inf_isa *isa = inf_isa_level(level);
        check_windows(isa->nn->depthwise);
        check_windows(isa->nn->depthwise_half);
        printf("%s: windows of vectors of %zu and %zu\n", isa->name, isa->nn->depthwise->width,
               isa->nn->depthwise_half->width);
    }
}
