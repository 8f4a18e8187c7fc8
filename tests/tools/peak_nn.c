// SPDX-License-Identifier: Apache-2.0
// The peak as the cpu device's own product loop reaches it: all its sums are in registers, and its
// operands take a third of a first cache of 32 KiB.
#include "backends/base/clock.h"
#include "backends/cpu/kernels/isa.h"
#include "proto/core/span.h"
#include "tests/tools/peak.h"

#define DEPTH     64
#define WIDTH_MAX 32
#define ROUNDS    1000
#define TRIES     20

double tool_peak(void)
{
    static float a[INF_GEMM_ROWS_MAX * DEPTH], bias[WIDTH_MAX];
    _Alignas(64) static float w[DEPTH * WIDTH_MAX], y[INF_GEMM_ROWS_MAX * WIDTH_MAX];
    const struct inf_nn_gemm *nn = inf_isa_best()->nn->gemm;
    const float *segments[1] = {a};
    struct inf_gemm_panel panel = {.segments = 1,
                                   .depth = DEPTH,
                                   .w = w,
                                   .bias = bias,
                                   .y_step = WIDTH_MAX,
                                   .columns = 2 * nn->width};
    struct inf_gemm gemm = {.a = segments, .a_step = DEPTH, .y = y};
    double best = 0;
    for (int try = 0; try < TRIES; try++) {
        uint64_t start_ns = inf_clock_ns();
        for (int round = 0; round < ROUNDS; round++)
            nn->gemm[1][nn->rows_max - 1](&panel, &gemm);
        double ns = (double)(inf_clock_ns() - start_ns);
        double gflops = 2.0 * (double)(nn->rows_max * 2 * nn->width) * DEPTH * ROUNDS / ns;
        best = INF_MAX(best, gflops);
    }
    return best;
}
