// SPDX-License-Identifier: Apache-2.0
// Measures once whether bf16 dot products are faster than widening bf16 weights to fp32. If so,
// rounds the operands of convolutions to bf16 before they are multiplied.
#include "backends/cpu/native/round_bf16.h"

#include <string.h>

#include "backends/base/clock.h"

#define TRIAL_DEPTH 128 // elements in each operand row of the benchmark
#define TRIAL_RUNS  16
#define LINE_COUNT  32 // bf16 elements in a cache line

// --- benchmark: are bf16 dot products faster? ---

// Operands of the benchmark. All are zeros, which take as long as any other values.
struct trial {
    _Alignas(64) float w[TRIAL_DEPTH * 2 * 16];
    float a[INF_GEMM_ROWS_MAX * TRIAL_DEPTH], bias[2 * 16];
    float y[INF_GEMM_ROWS_MAX * 2 * 16];
};

// Returns the shortest time, in nanoseconds, of TRIAL_RUNS products with one panel of weights.
static uint64_t try_gemm(const struct inf_nn_gemm *nn, struct trial *trial)
{
    const float *a[1] = {trial->a};
    const uint16_t *rounded[1] = {(const uint16_t *)trial->a};
    size_t width = INF_GEMM_PANELS * nn->width;
    struct inf_gemm_panel panel = {.segments = 1,
                                   .depth = TRIAL_DEPTH,
                                   .w = trial->w,
                                   .bias = trial->bias,
                                   .max = 1,
                                   .y_step = width,
                                   .columns = width};
    struct inf_gemm gemm = {
        .a = a, .rounded = rounded, .a_step = TRIAL_DEPTH, .prefetch = trial->w, .y = trial->y};
    uint64_t least_ns = UINT64_MAX;
    for (int run = 0; run < TRIAL_RUNS; run++) {
        uint64_t start_ns = inf_clock_ns();
        nn->gemm[INF_GEMM_PANELS - 1][nn->rows_max - 1](&panel, &gemm);
        least_ns = INF_MIN(least_ns, inf_clock_ns() - start_ns);
    }
    return least_ns;
}

bool inf_round_bf16_is_faster(const struct inf_nn *nn)
{
    if (nn->gemm_dot == NULL)
        return false;
    struct trial trial;
    memset(&trial, 0, sizeof(trial));
    uint64_t widening_ns = try_gemm(nn->gemm_bf16, &trial);
    return try_gemm(nn->gemm_dot, &trial) < widening_ns;
}

// --- rounding the operands of a run of pixels ---

size_t inf_round_bf16_padded_step(size_t a_step)
{
    size_t lines = (a_step + LINE_COUNT - 1) / LINE_COUNT;
    return (lines | 1) * LINE_COUNT;
}

// Returns the number of bf16 that a run of `pixels` pixels reads in one segment (one row of the
// windows).
static size_t segment_room(const struct inf_conv_packed *conv, size_t pixels)
{
    size_t count = (pixels - 1) * conv->copy_step + conv->depth;
    return (count + LINE_COUNT - 1) / LINE_COUNT * LINE_COUNT;
}

size_t inf_round_bf16_scratch(const struct inf_conv_packed *conv, size_t count)
{
    if (conv->round == NULL || count == 0)
        return 0;
    // Kernels with tile registers read operands behind the last pixel.
    size_t behind = conv->begin != NULL ? INF_TILE_CALL_ROWS * conv->copy_step : 0;
    behind = (behind + LINE_COUNT - 1) / LINE_COUNT * LINE_COUNT;
    return (conv->segments * segment_room(conv, count) + behind) / 2;
}

void inf_round_bf16_run(const struct inf_conv_packed *conv, const struct inf_conv_packed_run *run,
                        const uint16_t **rounded)
{
    uint16_t *to = (uint16_t *)run->scratch;
    for (size_t s = 0; s < conv->segments; s++, to += segment_room(conv, run->count)) {
        rounded[s] = run->a[s] != NULL ? to : NULL;
        if (run->a[s] == NULL)
            continue;
        if (conv->copy_step == conv->a_step) {
            conv->round((run->count - 1) * conv->a_step + conv->depth, run->a[s], to);
            continue;
        }
        for (size_t i = 0; i < run->count; i++)
            conv->round(conv->depth, run->a[s] + i * conv->a_step, to + i * conv->copy_step);
    }
}
