// SPDX-License-Identifier: Apache-2.0
// Measures the peak rate of dot products of bytes. The shortest of several tries counts, because
// other programs can only make a try longer.
#include "backends/cpu/program/dot_peak.h"

#include "backends/base/clock.h"
#include "proto/core/span.h"

// The depth of the product, in groups of four bytes. With this depth, the weights of a panel take a
// fourth of an L1 cache of 32 KiB.
#define QUADS  64
#define ROUNDS 500
#define TRIES  8

double inf_cpu_dot_peak_measure(const struct inf_q8_gemms *gemms)
{
    // All operands are 0. x has two bytes for each element, because some ISA levels read bytes that
    // were widened to 16 bits.
    static _Alignas(64) const int8_t w[4 * QUADS * INF_Q8_PANEL_COLUMNS_MAX];
    static const uint8_t x[2 * 4 * QUADS * INF_Q8_ROWS_MAX];
    static const int32_t bias[INF_Q8_PANEL_COLUMNS_MAX];
    int32_t y[INF_Q8_ROWS_MAX * INF_Q8_PANEL_COLUMNS_MAX];
    const uint8_t *segments[1] = {x};
    const struct inf_q8_panel panel = {.segments = 1,
                                       .quads = QUADS,
                                       .w = w,
                                       .bias = bias,
                                       .y_step = INF_Q8_PANEL_COLUMNS_MAX,
                                       .columns = 2 * gemms->width,
                                       .tile_depth = inf_tile_depth(QUADS)};
    const struct inf_q8_gemm gemm = {
        .a = segments, .pixels = gemms->rows_max, .a_step = (size_t)2 * 4 * QUADS, .y = y};
    uint64_t least_ns = UINT64_MAX;
    if (gemms->begin != NULL)
        gemms->begin(panel.tile_depth);
    for (int try = 0; try < TRIES; try++) {
        uint64_t start_ns = inf_clock_ns();
        for (int round = 0; round < ROUNDS; round++)
            gemms->gemm[1][gemms->rows_max - 1](&panel, &gemm);
        least_ns = INF_MIN(least_ns, inf_clock_ns() - start_ns);
    }
    if (gemms->end != NULL)
        gemms->end();
    double macs = (double)ROUNDS * 4 * QUADS * (double)(gemms->rows_max * 2 * gemms->width);
    return macs * 1e9 / (double)INF_MAX(least_ns, 1);
}
