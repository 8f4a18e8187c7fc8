// SPDX-License-Identifier: Apache-2.0
// Parameters of 8-bit operators, and memory for their steps.
#ifndef INF_BACKENDS_CPU_QUANTIZED_Q8_H
#define INF_BACKENDS_CPU_QUANTIZED_Q8_H

#include "backends/cpu/core/kernel.h"
#include "backends/cpu/kernels/q8.h"

// The parameters of a qconv2d or qmatmul in the form that kernels need: x is unsigned and weights
// are signed.
struct inf_q8_params {
    uint8_t flip;           // 0 or 128: x ^ flip is the unsigned number
    uint8_t w_flip;         // 0 or 128: w ^ w_flip is the signed number
    int32_t x_zero;         // zero point of unsigned x: 0 to 255
    const uint8_t *w_zeros; // as in the graph, before XOR with w_flip; NULL: all zero points are 0
    size_t w_zero_count;    // 1, or the number of channels
    const int32_t *bias;    // NULL: there is no bias
    const float *scales;    // NULL: the result is the 32-bit sums, unscaled
    size_t scale_count;     // 1, or the number of channels
    float low, high;        // bounds of the result minus its zero point
    int32_t y_zero;
    uint8_t y_flip; // 128 if y is signed bytes; 0
    size_t y_size;  // size of an element of y in bytes
};

// Returns the parameters of a qconv2d or qmatmul, except `x_zero`, which is 0. Operands 2 and 4 to
// 6 are read at the addresses in step->inputs, so all of them must be constants or the step must be
// running.
struct inf_q8_params inf_q8_params_of(const struct inf_cpu_step *step);

// Returns the zero point of the unsigned x of a qconv2d or qmatmul. Operand 3 is read in the same
// way as by inf_q8_params_of().
int32_t inf_q8_x_zero_of(const struct inf_cpu_step *step);

// Returns the zero point of channel `channel` of the weights, after the weights are made signed.
int32_t inf_q8_w_zero(const struct inf_q8_params *params, size_t channel);

// Returns true if at least one zero point of the signed weights is not 0.
bool inf_q8_has_w_zeros(const struct inf_q8_params *params);

// Returns the bias of a channel plus all terms of the expanded product that do not depend on x
// (product.c): bias - x_zero * w_sum + depth * x_zero * w_zero. `w_sum` is the sum of the channel's
// `depth` signed weights.
int32_t inf_q8_adjusted_bias(const struct inf_q8_params *params, size_t channel, int32_t w_sum,
                             size_t depth);

// Returns the scale of a channel; 0 if results are not scaled.
float inf_q8_scale(const struct inf_q8_params *params, size_t channel);

// Returns how sums become results. `scales` are those of the columns; NULL: results are the sums.
struct inf_q8_requant inf_q8_requant_of(const struct inf_q8_params *params, const float *scales);

// Returns the value of step->scratch_count, in floats, for a step that needs `size` bytes of
// scratch memory. It includes INF_BLOB_SLACK_BYTES more bytes, because kernels read beyond the end.
// The steps of a slot use the same scratch memory, one after the other.
size_t inf_q8_scratch_count(size_t size);

// Allocates `size` bytes, uninitialised and aligned to a cache line, followed by
// INF_BLOB_SLACK_BYTES bytes that kernels may read. The memory is freed with the step.
//
// INF_EXHAUSTED  no memory.
enum inf_code inf_q8_alloc(void **out_memory, struct inf_cpu_step *step, size_t size,
                           struct inf_error *err) INF_NODISCARD;

#endif
