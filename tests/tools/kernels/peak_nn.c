// SPDX-License-Identifier: Apache-2.0
// Measures the peaks that the cpu device's own product loops reach. All sums are in registers, and
// operands take a third of an L1 cache of 32 KiB.
#include "tests/tools/kernels/peak.h"

#include <math.h>

#include "backends/base/clock.h"
#include "backends/cpu/kernels/isa.h"
#include "backends/cpu/program/dot_peak.h"
#include "proto/core/span.h"

#define DEPTH     64
#define WIDTH_MAX 32
#define ROUNDS    1000
#define TRIES     20

// Buffers for the operands of all measured loops. They contain zeros, which are valid in every
// element type.
struct operands {
    _Alignas(64) float w[DEPTH * WIDTH_MAX], y[INF_GEMM_CALL_ROWS * WIDTH_MAX];
    float a[INF_GEMM_CALL_ROWS * DEPTH], bias[WIDTH_MAX];
};

// Measures several times how many multiply-adds per second `run` computes, and returns the highest
// rate. `work` is the number of multiply-adds in one call.
static double measure_rate(void (*run)(const void *loop, struct operands *operands),
                           const void *loop, double work)
{
    static struct operands operands;
    double best = 0;
    for (int try = 0; try < TRIES; try++) {
        uint64_t start_ns = inf_clock_ns();
        for (int round = 0; round < ROUNDS; round++)
            run(loop, &operands);
        double ns = (double)(inf_clock_ns() - start_ns);
        best = INF_MAX(best, 2 * work * ROUNDS / ns);
    }
    return best;
}

static void run_floats(const void *loop, struct operands *operands)
{
    const struct inf_nn_gemm *nn = loop;
    const float *segments[1] = {operands->a};
    const uint16_t *rounded[1] = {(const uint16_t *)operands->a};
    struct inf_gemm_panel panel = {.segments = 1,
                                   .depth = DEPTH,
                                   .w = operands->w,
                                   .bias = operands->bias,
                                   .y_step = WIDTH_MAX,
                                   .columns = 2 * nn->width,
                                   .tile_depth = inf_tile_depth(DEPTH / 2)};
    struct inf_gemm gemm = {.a = segments,
                            .rounded = rounded,
                            .pixels = nn->rows_max,
                            .a_step = DEPTH,
                            .y = operands->y};
    nn->gemm[1][nn->rows_max - 1](&panel, &gemm);
}

static double float_rate(const struct inf_nn_gemm *nn)
{
    if (nn == NULL)
        return 0;
    if (nn->begin != NULL)
        nn->begin(inf_tile_depth(DEPTH / 2));
    double rate =
        measure_rate(run_floats, nn, (double)(nn->rows_max * 2 * nn->width) * (double)DEPTH);
    if (nn->end != NULL)
        nn->end();
    return rate;
}

// Returns the rate of 8-bit loops, in 10^9 operations per second; 0 if there are none.
static double byte_rate(const struct inf_q8_gemms *gemms)
{
    return gemms != NULL ? 2e-9 * inf_cpu_dot_peak_measure(gemms) : 0;
}

struct tool_peaks tool_peaks(void)
{
    const struct inf_isa *isa = inf_isa_best();
    const struct inf_nn *nn = isa->nn;
    double dot = byte_rate(isa->q8->gemm);
    return (struct tool_peaks){.fp32 = float_rate(nn->gemm),
                               .bf16 = fmax(float_rate(nn->gemm_dot), float_rate(nn->gemm_tile)),
                               .q8 = fmax(dot, byte_rate(isa->q8->gemm_tile)),
                               .q8_dot = dot};
}
