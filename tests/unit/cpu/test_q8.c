// SPDX-License-Identifier: Apache-2.0
// The loops on 8-bit numbers, at every ISA level of this processor, compared with plain sums.
// Results must be equal bit by bit, and bytes around the results must not be written.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/kernels/isa.h"

#define GUARD  0x5a
#define AROUND 80 // bytes before and after the results that must not change

static uint32_t state = 1;

static uint32_t draw_bits(void)
{
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

// Returns random bytes, often extreme values, followed by `slack` bytes that kernels may read.
static uint8_t *draw_bytes(size_t count, size_t slack)
{
    static const uint8_t extremes[] = {0, 127, 128, 255};
    uint8_t *x = malloc(count + slack);
    for (size_t i = 0; i < count + slack; i++)
        x[i] = draw_bits() % 3 == 0 ? extremes[draw_bits() % 4] : (uint8_t)draw_bits();
    return x;
}

static uint8_t *map_guarded(size_t count)
{
    uint8_t *y = malloc(count + (size_t)2 * AROUND);
    memset(y, GUARD, count + (size_t)2 * AROUND);
    return y;
}

static int32_t requantize_sum(int32_t sum, float scale, const struct inf_q8_requant *end)
{
    float value = (float)sum * scale;
    value = value > end->low ? value : end->low;
    value = value < end->high ? value : end->high;
    return ((int32_t)nearbyintf(value) + end->zero) ^ end->flip;
}

struct product {
    size_t pixels, vectors, columns, segments, quads;
    bool zeros, sums;
    size_t carries; // groups of four rows with carries
};

// Returns a copy of the operands at `a` in the form that the kernels of this ISA level read:
// unchanged, or widened. `a` holds the operands of all pixels of all segments, `a_step` bytes
// apart. Sets *out_step to the distance in bytes of the operands in the copy, which the caller
// frees.
static uint8_t *convert_operands(const struct inf_q8_gemms *q8, const struct product *p,
                                 const uint8_t *a, size_t a_step, size_t *out_step)
{
    *out_step = q8->widen != NULL ? 8 * p->quads : a_step;
    // Kernels with tile registers read operands behind the last pixel.
    uint8_t *operands = calloc(p->segments * p->pixels + INF_TILE_CALL_ROWS, *out_step);
    for (size_t i = 0; i < p->segments * p->pixels; i++)
        if (q8->widen != NULL)
            q8->widen(operands + i * *out_step, a + i * a_step, p->quads, 0);
        else
            memcpy(operands + i * a_step, a + i * a_step, a_step);
    return operands;
}

// Draws carries of a panel: for some groups of four bytes, -1, 0 or 1 for each weight. Sets
// signs[segment][quad][column][byte] to them. The caller frees the weights, carries[0].w.
static void draw_carries(const struct product *p, size_t width, struct inf_q8_carry *carries,
                         int8_t *signs)
{
    size_t size = 4 * width;
    int8_t *blocks = calloc(p->carries + 1, INF_Q8_CARRY_BLOCKS * size);
    memset(signs, 0, p->segments * p->quads * size);
    carries[0].w = blocks;
    for (size_t i = 0; i < p->carries; i++, blocks += INF_Q8_CARRY_BLOCKS * size) {
        carries[i] = (struct inf_q8_carry){i % p->segments, draw_bits() % p->quads, blocks};
        for (size_t k = 0; k < size; k++) {
            int8_t sign = (int8_t)(draw_bits() % 3) - 1;
            blocks[k] = (int8_t)(INF_Q8_CARRY_TWICE * sign);
            blocks[size + k] = (int8_t)(INF_Q8_CARRY_ONCE * sign);
            signs[(carries[i].segment * p->quads + carries[i].quad) * size + k] += sign;
        }
    }
}

static void check_product(const struct inf_q8_gemms *q8, const struct product *p)
{
    size_t width = p->vectors * q8->width;
    size_t a_step = 4 * p->quads + 3;
    size_t y_step = p->columns + 5;
    size_t y_size = p->sums ? sizeof(int32_t) : 1;
    uint8_t *a = draw_bytes(p->segments * p->pixels * a_step, 0);
    uint8_t *w = draw_bytes(p->segments * p->quads * width * 4, 0);
    int32_t bias[INF_Q8_VECTORS_MAX * 16];
    int32_t zeros[INF_Q8_VECTORS_MAX * 16];
    int32_t sums[INF_Q8_ROWS_MAX];
    float scales[INF_Q8_VECTORS_MAX * 16];
    const uint8_t *segments[4];
    struct inf_q8_carry carries[8];
    int8_t *signs = malloc(p->segments * p->quads * width * 4);
    uint8_t *y = map_guarded(p->pixels * y_step * y_size);
    draw_carries(p, width, carries, signs);
    for (size_t i = 0; i < width; i++) {
        bias[i] = (int32_t)(draw_bits() % 200000) - 100000;
        zeros[i] = (int32_t)(draw_bits() % 256) - 128;
        scales[i] = i % 5 == 0 ? 0.5f : (float)(draw_bits() % 1000) * 1e-5f;
        if (i % 7 == 3)
            scales[i] = 1e6f; // results beyond every integer
    }
    bias[0] = INT32_MAX; // makes the accumulated sums wrap around
    for (size_t i = 0; i < p->pixels; i++)
        sums[i] = (int32_t)(draw_bits() % 100000);
    size_t step;
    uint8_t *operands = convert_operands(q8, p, a, a_step, &step);
    for (size_t s = 0; s < p->segments; s++)
        segments[s] = operands + s * p->pixels * step;
    struct inf_q8_panel panel = {
        .segments = p->segments,
        .quads = p->quads,
        .w = (const int8_t *)w,
        .bias = bias,
        .zeros = p->zeros ? zeros : NULL,
        .carries = carries,
        .carry_count = p->carries,
        .requant = {p->sums ? NULL : scales, -100, 130, 117, p->columns % 2 ? 0x80 : 0},
        .y_step = y_step,
        .columns = p->columns,
        .tile_depth = inf_tile_depth(p->quads)};
    struct inf_q8_gemm gemm = {segments, p->pixels, step, sums, y + AROUND};
    if (q8->begin != NULL)
        q8->begin(panel.tile_depth);
    q8->gemm[p->vectors - 1][p->pixels - 1](&panel, &gemm);
    if (q8->end != NULL)
        q8->end();
    for (size_t i = 0; i < p->pixels; i++) {
        for (size_t c = 0; c < p->columns; c++) {
            uint32_t sum = (uint32_t)bias[c];
            for (size_t s = 0; s < p->segments; s++)
                for (size_t k = 0; k < 4 * p->quads; k++) {
                    size_t at = ((s * p->quads + k / 4) * width + c) * 4 + k % 4;
                    int32_t weight = (int8_t)w[at] + 256 * signs[at];
                    sum += (uint32_t)(a[(s * p->pixels + i) * a_step + k] * weight);
                }
            if (p->zeros)
                sum -= (uint32_t)zeros[c] * (uint32_t)sums[i];
            const uint8_t *at = y + AROUND + (i * y_step + c) * y_size;
            int32_t got = *at;
            int32_t wanted = requantize_sum((int32_t)sum, scales[c], &panel.requant) & 255;
            if (p->sums) {
                memcpy(&got, at, sizeof(got));
                wanted = (int32_t)sum;
            }
            cr_assert_eq(got, wanted, "%s: %zu pixels of %zu columns: pixel %zu, column %zu",
                         q8->name, p->pixels, p->columns, i, c);
            memset(y + AROUND + (i * y_step + c) * y_size, GUARD, y_size);
        }
    }
    for (size_t i = 0; i < p->pixels * y_step * y_size + (size_t)2 * AROUND; i++)
        cr_assert_eq(y[i], GUARD, "%s: byte %zu", q8->name, i);
    free((void *)(uintptr_t)carries[0].w);
    free(signs);
    free(operands);
    free(a);
    free(w);
    free(y);
}

Test(q8, bytes_are_flipped_when_they_are_widened_copied_and_summed)
{
    for (unsigned level = 0; inf_isa_level(level) != NULL; level++) {
        const struct inf_q8_gemms *q8 = inf_isa_level(level)->q8->gemm;
        for (size_t quads = 1; quads <= 70; quads++) {
            uint8_t *x = draw_bytes(4 * quads, 0);
            uint8_t *wide = map_guarded(8 * quads);
            uint32_t flipped[4] = {0};
            for (size_t i = 0; i < 4 * quads; i++)
                flipped[i % 4] += x[i] ^ 0x80u;
            cr_assert_eq(q8->sum(x, 4 * quads, 0x80),
                         (int32_t)(flipped[0] + flipped[1] + flipped[2] + flipped[3]));
            cr_assert_eq(q8->sum(x, 3, 0), x[0] + x[1] + x[2]);
            uint8_t *copy = map_guarded(4 * quads - 1);
            q8->copy(copy + AROUND, x, 4 * quads - 1, 0x80);
            for (size_t i = 0; i < 4 * quads - 1; i++)
                cr_assert_eq(copy[AROUND + i], x[i] ^ 0x80u);
            for (size_t i = 0; i < AROUND; i++)
                cr_assert(copy[i] == GUARD && copy[AROUND + 4 * quads - 1 + i] == GUARD);
            free(copy);
            if (q8->widen != NULL) {
                // Widened, the even bytes of all groups of four come before the odd bytes.
                const uint16_t *numbers = (const uint16_t *)(wide + AROUND);
                q8->widen(wide + AROUND, x, quads, 0x80);
                for (size_t i = 0; i < 4 * quads; i++)
                    cr_assert_eq(numbers[i % 2 * 2 * quads + i / 4 * 2 + i % 4 / 2], x[i] ^ 0x80u);
                for (size_t i = 0; i < AROUND; i++)
                    cr_assert(wide[i] == GUARD && wide[AROUND + 8 * quads + i] == GUARD);
            }
            free(x);
            free(wide);
        }
    }
}

static void check_products(const struct inf_q8_gemms *q8)
{
    for (size_t pixels = 1; pixels <= q8->rows_max; pixels++) {
        for (size_t vectors = 1; vectors <= INF_Q8_VECTORS_MAX; vectors++) {
            size_t width = vectors * q8->width;
            for (size_t columns = width - q8->width + 1; columns <= width; columns++) {
                struct product product = {.pixels = pixels,
                                          .vectors = vectors,
                                          .columns = columns,
                                          .segments = 1 + columns % 3,
                                          .quads = 1 + (pixels * 7 + columns) % 30};
                if (q8->begin != NULL && inf_tile_depth(product.quads) == 0)
                    continue;
                check_product(q8, &product);
                product.carries = 1 + columns % 8;
                check_product(q8, &product);
                product.zeros = true;
                check_product(q8, &product);
                product.sums = true;
                check_product(q8, &product);
            }
        }
    }
}

Test(q8, products_are_the_same_bits_at_every_level)
{
    for (unsigned level = 0; inf_isa_level(level) != NULL; level++) {
        const struct inf_q8 *q8 = inf_isa_level(level)->q8;
        printf("%s: %s\n", inf_isa_level(level)->name, q8->gemm->name);
        check_products(q8->gemm);
        if (q8->gemm_tile == NULL)
            continue;
        printf("%s: %s\n", inf_isa_level(level)->name, q8->gemm_tile->name);
        check_products(q8->gemm_tile);
    }
}

// --- depthwise convolutions ---

struct windows {
    size_t rows, kernel, tap_step, x_step, pixels, channels;
    uint8_t x_flip, y_flip;
    bool carries;  // weights have nine bits
    bool readable; // blocks of bytes are read at each column
    bool apart;    // there are bytes between the pixels of y
};

// Stores `count` 32-bit numbers in the order in which the depthwise kernel reads a block of
// channels: byte i of every number goes to row i, and the four rows are interleaved.
static void *interleave_numbers(const struct inf_q8_depthwise *q8, const void *numbers,
                                size_t count)
{
    uint8_t planes[4][128] = {0};
    uint8_t *y = malloc(4 * q8->width);
    struct inf_q8_columns columns = {.count = 1, .channels = q8->width};
    for (size_t i = 0; i < 4 * count; i++)
        planes[i % 4][i / 4] = ((const uint8_t *)numbers)[i];
    for (size_t row = 0; row < 4; row++)
        columns.rows[row] = planes[row];
    q8->interleave(&columns, y);
    return y;
}

// Copies columns of `size` channels to the order in which the depthwise kernel reads them.
// Consecutive rows of x are `step` bytes apart.
static uint8_t *interleave_all(const struct inf_q8_depthwise *q8, const struct windows *p,
                               const uint8_t *x, size_t count, uint8_t flip)
{
    size_t fours = (p->rows + 3) / 4;
    uint8_t *y = malloc(count * fours * 4 * q8->width);
    for (size_t four = 0; four < fours; four++) {
        struct inf_q8_columns columns = {
            .steps = {p->channels, p->channels, p->channels, p->channels},
            .count = count,
            .channels = p->channels,
            .readable = p->readable,
            .flip = flip,
            .y_step = fours * 4 * q8->width};
        for (size_t row = 4 * four; row < p->rows && row < 4 * four + 4; row++)
            columns.rows[row % 4] = x + row * count * p->channels;
        q8->interleave(&columns, y + four * 4 * q8->width);
    }
    return y;
}

// Draws a carry of each weight: -1, 0 or 1. Lists the carries of all groups of four rows of taps.
// The caller frees carries[i].w.
static int8_t *draw_window_carries(const struct inf_q8_depthwise *q8, const struct windows *p,
                                   struct inf_q8_carry *carries)
{
    size_t count = p->rows * p->kernel * p->channels;
    size_t fours = (p->rows + 3) / 4;
    size_t size = 4 * q8->width;
    int8_t *signs = malloc(count + q8->width);
    uint8_t *factors = malloc(count + q8->width);
    uint8_t *blocks[INF_Q8_CARRY_BLOCKS];
    for (size_t i = 0; i < count; i++)
        signs[i] = (int8_t)(p->carries ? (int8_t)(draw_bits() % 3) - 1 : 0);
    for (size_t b = 0; b < INF_Q8_CARRY_BLOCKS; b++) {
        int32_t factor = b == 0 ? INF_Q8_CARRY_TWICE : INF_Q8_CARRY_ONCE;
        for (size_t i = 0; i < count; i++)
            factors[i] = (uint8_t)(signs[i] * factor);
        blocks[b] = interleave_all(q8, p, factors, p->kernel, 0);
    }
    for (size_t i = 0; i < p->kernel * fours; i++) {
        int8_t *w = malloc(INF_Q8_CARRY_BLOCKS * size);
        for (size_t b = 0; b < INF_Q8_CARRY_BLOCKS; b++)
            memcpy(w + b * size, blocks[b] + i * size, size);
        carries[i] = (struct inf_q8_carry){i / fours, i % fours, w};
    }
    for (size_t b = 0; b < INF_Q8_CARRY_BLOCKS; b++)
        free(blocks[b]);
    free(factors);
    return signs;
}

// Expects that the results at `y` are those of plain sums, and that no other byte was written.
static void compare_windows(const struct windows *p, const uint8_t *x, const uint8_t *w,
                            const int8_t *signs, const int32_t *bias, const float *scales,
                            const struct inf_q8_window *window, uint8_t *y)
{
    size_t columns = (p->pixels - 1) * p->x_step + (p->kernel - 1) * p->tap_step + 1;
    for (size_t i = 0; i < p->pixels; i++) {
        for (size_t c = 0; c < p->channels; c++) {
            int32_t sum = bias[c];
            for (size_t row = 0; row < p->rows; row++)
                for (size_t k = 0; k < p->kernel; k++) {
                    size_t column = i * p->x_step + k * p->tap_step;
                    size_t at = (row * p->kernel + k) * p->channels + c;
                    int32_t value = x[(row * columns + column) * p->channels + c] ^ p->x_flip;
                    sum += value * ((int8_t)w[at] + 256 * signs[at]);
                }
            uint8_t wanted = (uint8_t)requantize_sum(sum, scales[c], &window->requant);
            cr_assert_eq(y[AROUND + i * window->y_step + c], wanted,
                         "%zu x %zu taps, %zu channels: pixel %zu, channel %zu", p->rows, p->kernel,
                         p->channels, i, c);
            y[AROUND + i * window->y_step + c] = GUARD;
        }
    }
    for (size_t i = 0; i < p->pixels * window->y_step + (size_t)2 * AROUND; i++)
        cr_assert_eq(y[i], GUARD, "byte %zu", i);
}

static void check_windows(const struct inf_q8_depthwise *q8, const struct windows *p)
{
    size_t columns = (p->pixels - 1) * p->x_step + (p->kernel - 1) * p->tap_step + 1;
    size_t y_step = p->channels + (p->apart ? 3 : 0);
    uint8_t *x = draw_bytes(p->rows * columns * p->channels, p->readable ? q8->width : 0);
    uint8_t *w = draw_bytes(p->rows * p->kernel * p->channels, q8->width);
    int32_t bias[128] = {0};
    float scales[128] = {0};
    struct inf_q8_carry carries[7 * 2];
    for (size_t c = 0; c < p->channels; c++) {
        bias[c] = (int32_t)(draw_bits() % 20000) - 10000;
        scales[c] = (float)(draw_bits() % 1000) * 1e-5f;
    }
    uint8_t *xs = interleave_all(q8, p, x, columns, p->x_flip);
    uint8_t *ws = interleave_all(q8, p, w, p->kernel, 0);
    int8_t *signs = draw_window_carries(q8, p, carries);
    int32_t *all_bias = interleave_numbers(q8, bias, p->channels);
    float *all_scales = interleave_numbers(q8, scales, p->channels);
    uint8_t *y = map_guarded(p->pixels * y_step);
    struct inf_q8_window window = {.kernel = p->kernel,
                                   .fours = (p->rows + 3) / 4,
                                   .tap_step = p->tap_step,
                                   .x_step = p->x_step,
                                   .y_step = y_step,
                                   .channels = p->channels,
                                   .w = (const int8_t *)ws,
                                   .bias = all_bias,
                                   .carries = carries,
                                   .carry_count = p->carries ? p->kernel * ((p->rows + 3) / 4) : 0,
                                   .requant = {all_scales, -100, 130, 117, p->y_flip}};
    q8->run(&window, xs, p->pixels, y + AROUND);
    compare_windows(p, x, w, signs, bias, scales, &window, y);
    for (size_t i = 0; i < p->kernel * window.fours; i++)
        free((void *)(uintptr_t)carries[i].w);
    free(signs);
    free(x);
    free(w);
    free(xs);
    free(ws);
    free(all_bias);
    free(all_scales);
    free(y);
}

static void check_all_windows(const struct inf_q8_depthwise *q8)
{
    for (size_t number = 0; number < 300; number++) {
        struct windows windows = {.rows = 1 + draw_bits() % 7,
                                  .kernel = 1 + draw_bits() % 7,
                                  .tap_step = 1 + draw_bits() % 2,
                                  .x_step = 1 + draw_bits() % 3,
                                  .pixels = 1 + draw_bits() % 9,
                                  .channels = q8->width,
                                  .x_flip = draw_bits() % 2 ? 0x80 : 0,
                                  .y_flip = draw_bits() % 2 ? 0x80 : 0,
                                  .carries = draw_bits() % 3 == 0,
                                  .readable = draw_bits() % 2 == 0,
                                  .apart = draw_bits() % 2 == 0};
        if (number % 3 == 0)
            windows.rows = windows.kernel = number % 2 ? 3 : 5;
        if (number % 4 == 0)
            windows.channels = 1 + draw_bits() % q8->width;
        check_windows(q8, &windows);
    }
}

Test(q8, depthwise_windows_are_the_same_bits_at_every_level)
{
    for (unsigned level = 0; inf_isa_level(level) != NULL; level++) {
        printf("%s\n", inf_isa_level(level)->name);
        check_all_windows(inf_isa_level(level)->q8->depthwise);
        check_all_windows(inf_isa_level(level)->q8->depthwise_half);
    }
}

// --- element-wise operators ---

static uint8_t quantize_value(float value, const struct inf_q8_scaling *of)
{
    const struct inf_q8_requant requant = {.low = of->low, .high = of->high, .zero = of->zero};
    return (uint8_t)requantize_sum(1, value, &requant);
}

static float dequantize_byte(uint8_t byte, const struct inf_q8_scaling *of)
{
    return (float)((byte ^ of->flip) - of->zero) * of->scale;
}

// Checks the operators that compute with integers. The sum multiplies each operand by its factor,
// adds in 64 bits, and shifts right with halves rounded up. The product of the integers is
// multiplied by the scale of y.
static void check_integer_kinds(const struct inf_q8_eltwise *q8, size_t count, const uint8_t *a,
                                const uint8_t *b, const struct inf_q8_scaling *scalings, uint8_t *y)
{
    const struct inf_q8_scaling *end = &scalings[2];
    q8->binary[INF_Q8_SUM](count, a, b, scalings, y);
    for (size_t i = 0; i < count; i++) {
        int64_t sum = (int64_t)((a[i] ^ scalings[0].flip) - scalings[0].zero) * scalings[0].factor +
                      (int64_t)((b[i] ^ scalings[1].flip) - scalings[1].zero) * scalings[1].factor;
        int64_t wanted = (sum + (INT64_C(1) << (end->factor - 1))) >> end->factor;
        wanted = wanted < (int64_t)end->low ? (int64_t)end->low : wanted;
        wanted = wanted > (int64_t)end->high ? (int64_t)end->high : wanted;
        cr_assert_eq(y[i], (uint8_t)(wanted + end->zero), "sum, %zu", i);
    }
    q8->binary[INF_Q8_PRODUCT](count, a, b, scalings, y);
    for (size_t i = 0; i < count; i++) {
        int32_t product = ((a[i] ^ scalings[0].flip) - scalings[0].zero) *
                          ((b[i] ^ scalings[1].flip) - scalings[1].zero);
        cr_assert_eq(y[i], quantize_value((float)product * end->scale, end), "product, %zu", i);
    }
}

static void check_eltwise(const struct inf_q8_eltwise *q8, size_t count)
{
    const struct inf_q8_scaling scalings[] = {
        {.scale = 0.017f, .zero = 131, .flip = 0x80, .factor = 700001},
        {.scale = 0.3f, .zero = 3, .factor = -1234567},
        {.scale = 0.11f, .zero = 120, .low = -120, .high = 135, .factor = 21}};
    uint8_t *a = draw_bytes(count, 0);
    uint8_t *b = draw_bytes(count, 0);
    uint8_t *y = map_guarded(count);
    float *x = malloc(count * sizeof(float));
    float *floats = malloc(count * sizeof(float));
    for (size_t i = 0; i < count; i++)
        x[i] = i % 11 == 0 ? (i % 2 ? INFINITY : -INFINITY) : ((float)draw_bits() - 8e6f) * 4e-6f;
    q8->quantize(count, x, &scalings[2], y + AROUND);
    for (size_t i = 0; i < count; i++)
        cr_assert_eq(y[AROUND + i], quantize_value(x[i] / scalings[2].scale, &scalings[2]),
                     "%zu: %g", i, (double)x[i]);
    q8->dequantize(count, a, &scalings[0], floats);
    for (size_t i = 0; i < count; i++)
        cr_assert_eq(floats[i], dequantize_byte(a[i], &scalings[0]), "%zu", i);
    for (size_t kind = 0; kind <= INF_Q8_MUL; kind++) {
        q8->binary[kind](count, a, b, scalings, y + AROUND);
        for (size_t i = 0; i < count; i++) {
            // Each product is rounded before the products are added.
            volatile float of_a = dequantize_byte(a[i], &scalings[0]);
            volatile float of_b = dequantize_byte(b[i], &scalings[1]);
            float value = kind == INF_Q8_ADD ? of_a + of_b : of_a - of_b;
            value = kind == INF_Q8_MUL ? of_a * of_b : value;
            cr_assert_eq(y[AROUND + i], quantize_value(value / scalings[2].scale, &scalings[2]),
                         "kind %zu, %zu", kind, i);
        }
    }
    check_integer_kinds(q8, count, a, b, scalings, y + AROUND);
    for (size_t i = 0; i < AROUND; i++)
        cr_assert(y[i] == GUARD && y[AROUND + count + i] == GUARD, "byte %zu", i);
    free(a);
    free(b);
    free(y);
    free(x);
    free(floats);
}

Test(q8, elements_are_the_same_bits_at_every_level)
{
    for (unsigned level = 0; inf_isa_level(level) != NULL; level++)
        for (size_t count = 1; count < 150; count++)
            check_eltwise(inf_isa_level(level)->q8->eltwise, count);
}

Test(q8, bytes_are_looked_up_at_every_level)
{
    const struct inf_isa *isa;
    uint8_t *table = draw_bytes(256, 0);
    for (unsigned level = 0; (isa = inf_isa_level(level)) != NULL; level++)
        for (size_t count = 0; count <= 200; count++) {
            uint8_t *x = draw_bytes(count, 0);
            uint8_t *y = map_guarded(count);
            isa->q8->lookup->bytes(table, count, x, y + AROUND);
            for (size_t i = 0; i < count; i++)
                cr_assert_eq(y[AROUND + i], table[x[i]], "%s: %zu of %zu", isa->name, i, count);
            for (size_t i = 0; i < AROUND; i++)
                cr_assert(y[i] == GUARD && y[AROUND + count + i] == GUARD, "%s", isa->name);
            free(y);
            free(x);
        }
    free(table);
}
