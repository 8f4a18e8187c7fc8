// SPDX-License-Identifier: Apache-2.0
// Measures the rounding error of Winograd's algorithm. The error depends on the weights of a
// network, because the transforms of weights and sums add numbers of opposite signs. The error is
// large if one filter has weights of very different magnitude, or weights near the largest float.
#include "backends/cpu/winograd/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/random.h"
#include "proto/core/span.h"

#define TILES       2 // number of tiles that are measured for each panel
#define PANELS      3 // most panels measured: the first, the last, and one in the middle
#define COLUMNS_MAX (2 * INF_WINOGRAD_PAD)
#define BLOCK       16 // columns whose sums the compiler keeps in registers

// The operands and results of one measured tile.
struct sample {
    float *x;  // [side][side][inputs]
    float *v;  // [products][v_step]
    double *w; // [9][inputs][COLUMNS_MAX], the weights of the panel; unused columns are 0
    float sums[INF_WINOGRAD_SIDE_MAX * INF_WINOGRAD_SIDE_MAX * COLUMNS_MAX];
    float y[(2 * INF_WINOGRAD_PAIRS_MAX) * (2 * INF_WINOGRAD_PAIRS_MAX) * COLUMNS_MAX];
    double largest, error; // largest magnitude of a result, and largest error
};

static void draw_inputs(const struct inf_winograd_conv *conv, struct sample *sample, uint32_t *seed)
{
    for (size_t i = 0; i < conv->copy_count; i++)
        sample->x[i] = inf_random_float(seed);
    const struct inf_winograd_in in = {.x = sample->x,
                                       .row_step = conv->side * conv->inputs,
                                       .pixel_step = conv->inputs,
                                       .channels = conv->inputs,
                                       .v = sample->v,
                                       .matrix_step = conv->v_step};
    conv->loops->in[conv->form](&conv->factors, &in);
}

// Computes the columns of one panel by Winograd's algorithm, without an epilogue.
static void compute_panel(const struct inf_winograd_conv *conv, struct sample *sample,
                          const struct inf_winograd_panel *panel, size_t columns)
{
    for (size_t product = 0; product < conv->products; product++) {
        const float *v = sample->v + product * conv->v_step;
        const struct inf_gemm_panel part = {.segments = 1,
                                            .depth = conv->inputs,
                                            .w = panel->w + product * conv->inputs * panel->width,
                                            .bias = conv->zeros,
                                            .min = -INFINITY,
                                            .max = INFINITY,
                                            .columns = panel->width};
        const struct inf_gemm gemm = {
            .a = &v, .prefetch = part.w, .y = sample->sums + product * COLUMNS_MAX};
        panel->gemm[0](&part, &gemm);
    }
    const struct inf_winograd_out out = {.sums = sample->sums,
                                         .matrix_step = COLUMNS_MAX,
                                         .columns = columns,
                                         .bias = conv->zeros,
                                         .min = -INFINITY,
                                         .max = INFINITY,
                                         .y = sample->y,
                                         .row_step = conv->tile * columns,
                                         .pixel_step = columns,
                                         .rows = conv->tile,
                                         .pixels = conv->tile};
    conv->loops->out[conv->form](&conv->factors, &out);
}

static void convert_weights(const struct inf_winograd_conv *conv, struct sample *sample,
                            const float *weights, size_t first, size_t columns)
{
    double *w = sample->w;
    const float *from = weights + first;
    for (size_t i = 0; i < 9 * conv->inputs; i++, w += COLUMNS_MAX, from += conv->outputs)
        for (size_t c = 0; c < COLUMNS_MAX; c++)
            w[c] = c < columns ? (double)from[c] : 0.0;
}

// Adds the products of one tap of the window to the sums of BLOCK columns. `x` points to the input
// channels at the tap, `w` to the weights [inputs][COLUMNS_MAX] of the tap.
static void add_tap(size_t inputs, const float *x, const double *w, double sums[BLOCK])
{
    double block[BLOCK];
    memcpy(block, sums, sizeof block);
    for (size_t i = 0; i < inputs; i++, w += COLUMNS_MAX) {
        double value = (double)x[i];
        for (size_t c = 0; c < BLOCK; c++)
            block[c] += value * w[c];
    }
    memcpy(sums, block, sizeof block);
}

static void compare_panel(const struct inf_winograd_conv *conv, struct sample *sample,
                          size_t columns)
{
    const float *y = sample->y;
    for (size_t at = 0; at < conv->tile * conv->tile; at++, y += columns) {
        double sums[COLUMNS_MAX] = {0};
        for (size_t tap = 0; tap < 9; tap++) {
            size_t row = at / conv->tile + tap / 3;
            size_t pixel = at % conv->tile + tap % 3;
            const float *x = sample->x + (row * conv->side + pixel) * conv->inputs;
            const double *w = sample->w + tap * conv->inputs * COLUMNS_MAX;
            for (size_t c = 0; c < columns; c += BLOCK)
                add_tap(conv->inputs, x, w + c, sums + c);
        }
        for (size_t c = 0; c < columns; c++) {
            double error = fabs((double)y[c] - sums[c]);
            // A NaN is stored too, although no comparison with NaN is true.
            sample->error = error > sample->error || isnan(error) ? error : sample->error;
            sample->largest = fmax(sample->largest, fabs(sums[c]));
        }
    }
}

static void measure_panel(const struct inf_winograd_conv *conv, struct sample *sample,
                          const float *weights, size_t p)
{
    const struct inf_winograd_panel *panel = &conv->panels[p];
    size_t columns = INF_MIN(panel->width, conv->outputs - panel->first);
    uint32_t seed = 1;
    convert_weights(conv, sample, weights, panel->first, columns);
    for (size_t tile = 0; tile < TILES && !isnan(sample->error); tile++) {
        draw_inputs(conv, sample, &seed);
        compute_panel(conv, sample, panel, columns);
        compare_panel(conv, sample, columns);
    }
}

enum inf_code inf_winograd_error_check(const struct inf_winograd_conv *conv, const float *weights,
                                       const struct inf_node *node, struct inf_error *err)
{
    size_t x_count = (conv->copy_count + INF_WINOGRAD_PAD - 1) / INF_WINOGRAD_PAD;
    struct sample *sample = calloc(1, sizeof(*sample));
    float *numbers =
        calloc(x_count * INF_WINOGRAD_PAD + conv->products * conv->v_step, sizeof(*numbers));
    double *converted = calloc(9 * conv->inputs * COLUMNS_MAX, sizeof *converted);
    if (sample == NULL || numbers == NULL || converted == NULL) {
        free(sample);
        free(numbers);
        free(converted);
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "node '%s': no memory to measure an error", node->name);
    }
    sample->x = numbers;
    sample->w = converted;
    sample->v = numbers + x_count * INF_WINOGRAD_PAD;
    size_t measured = INF_MIN(conv->panel_count, (size_t)PANELS);
    measure_panel(conv, sample, weights, 0);
    for (size_t i = 1; i < measured; i++)
        measure_panel(conv, sample, weights, (conv->panel_count - 1) * i / (measured - 1));
    double error = sample->error;
    double largest = sample->largest;
    free(sample);
    free(numbers);
    free(converted);
    if (error <= INF_WINOGRAD_ERROR_MAX * largest)
        return INF_OK;
    return inf_fail(err, INF_UNSUPPORTED,
                    "node '%s': the error of Winograd's algorithm is %g of the largest result",
                    node->name, error / largest);
}
