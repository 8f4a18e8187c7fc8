// SPDX-License-Identifier: Apache-2.0
// Transforms the weights of 3x3 convolutions for Winograd's algorithm (backends/base/winograd.h).
// Sums are computed in double and rounded once to float: weights are transformed only once, but
// their rounding errors affect every run.
#include "backends/cpu/core/winograd_weights.h"

#define TAPS    3
#define COLUMNS 32 // columns that one call of transform_columns() transforms at most

// Transforms `count` columns of one input channel. `from` points to the weight of the first tap and
// column. `to` points to the element of product 0 and the first column. `product_step` is the
// number of floats from one product to the next.
static void transform_columns(const struct inf_cpu_matrix *matrix,
                              double g[INF_WINOGRAD_SIDE_MAX][TAPS], const float *from, float *to,
                              size_t count, size_t product_step)
{
    size_t side = inf_winograd_side(matrix->winograd);
    size_t tap_step = matrix->rows / (side * side) * matrix->columns;
    double half[INF_WINOGRAD_SIDE_MAX][TAPS][COLUMNS];
    for (size_t i = 0; i < side; i++)
        for (size_t across = 0; across < TAPS; across++) {
            const float *w = from + across * tap_step;
            for (size_t c = 0; c < count; c++)
                half[i][across][c] = g[i][0] * (double)w[c] +
                                     g[i][1] * (double)w[TAPS * tap_step + c] +
                                     g[i][2] * (double)w[2 * TAPS * tap_step + c];
        }
    for (size_t i = 0; i < side; i++)
        for (size_t k = 0; k < side; k++, to += product_step)
            for (size_t c = 0; c < count; c++)
                to[c] = (float)(half[i][0][c] * g[k][0] + half[i][1][c] * g[k][1] +
                                half[i][2][c] * g[k][2]);
}

void inf_cpu_winograd_pack_panel(const struct inf_cpu_matrix *matrix,
                                 const struct inf_cpu_panel *panel, float *to)
{
    double g[INF_WINOGRAD_SIDE_MAX][TAPS];
    size_t side = inf_winograd_side(matrix->winograd);
    size_t channels = matrix->rows / (side * side);
    inf_winograd_weight_matrix(matrix->winograd, g);
    for (size_t row = 0; row < matrix->rows && panel->columns < panel->width; row++)
        for (size_t c = panel->columns; c < panel->width; c++)
            to[row * panel->width + c] = 0;
    for (size_t channel = 0; channel < channels; channel++) {
        const float *from =
            (const float *)matrix->blob->data + channel * matrix->columns + panel->first;
        for (size_t c = 0; c < panel->columns; c += COLUMNS)
            transform_columns(matrix, g, from + c, to + channel * panel->width + c,
                              INF_MIN((size_t)COLUMNS, panel->columns - c),
                              channels * panel->width);
    }
}
