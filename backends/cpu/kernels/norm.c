// SPDX-License-Identifier: Apache-2.0
// Loops of normalisation. Compiled once for each ISA level; INF_NORM_TABLE is the name of the table
// that it defines.
#include "backends/cpu/kernels/norm.h"

#define LANES 16

static struct inf_norm_moments sum_line(size_t count, const float *x, float about)
{
    double first[LANES] = {0};
    double second[LANES] = {0};
    struct inf_norm_moments sum = {0, 0};
    size_t whole = count - count % LANES;
    for (size_t i = 0; i < whole; i += LANES) {
        for (size_t lane = 0; lane < LANES; lane++) {
            double distance = (double)x[i + lane] - (double)about;
            first[lane] += distance;
            second[lane] += distance * distance;
        }
    }
    for (size_t lane = 0; lane < LANES; lane++) {
        sum.first += first[lane];
        sum.second += second[lane];
    }
    for (size_t i = whole; i < count; i++) {
        double distance = (double)x[i] - (double)about;
        sum.first += distance;
        sum.second += distance * distance;
    }
    return sum;
}

static void sum_rows(size_t count, const float *x, size_t row_count, size_t stride,
                     const float *about, struct inf_norm_moments *moments)
{
    double first[INF_NORM_COLUMNS];
    double second[INF_NORM_COLUMNS];
    for (size_t i = 0; i < count; i++) {
        first[i] = 0;
        second[i] = 0;
    }
    for (size_t row = 0; row < row_count; row++, x += stride) {
        for (size_t i = 0; i < count; i++) {
            double distance = (double)x[i] - (double)about[i];
            first[i] += distance;
            second[i] += distance * distance;
        }
    }
    for (size_t i = 0; i < count; i++)
        moments[i] = (struct inf_norm_moments){first[i], second[i]};
}

static void apply_line(size_t count, const float *x, float about, float less, float factor,
                       float *y)
{
    for (size_t i = 0; i < count; i++)
        y[i] = ((x[i] - about) - less) * factor;
}

static void apply_row(size_t count, const float *x, const float *about, const float *less,
                      const float *factor, float *y)
{
    for (size_t i = 0; i < count; i++)
        y[i] = ((x[i] - about[i]) - less[i]) * factor[i];
}

const struct inf_norm INF_NORM_TABLE = {
    .line = sum_line,
    .rows = sum_rows,
    .apply_line = apply_line,
    .apply_row = apply_row,
};
