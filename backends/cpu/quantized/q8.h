// SPDX-License-Identifier: Apache-2.0
// What the steps on 8-bit numbers share.
#ifndef INF_BACKENDS_CPU_QUANTIZED_Q8_H
#define INF_BACKENDS_CPU_QUANTIZED_Q8_H

#include "backends/cpu/core/kernel.h"
#include "backends/cpu/kernels/q8.h"

// The parameters of a qconv2d or qmatmul, in the form that kernels want: x unsigned, weights signed.
struct inf_q8_params {
    uint8_t flip;           // what makes a byte of x unsigned, by exclusive or: 0 or 128
    uint8_t w_flip;         // what makes a byte of the weights signed
    int32_t x_zero;         // of x unsigned: 0 to 255
    const uint8_t *w_zeros; // as in the graph; NULL: none
    size_t w_zero_count;    // 1 or one a channel
    const int32_t *bias;    // NULL: none
    const float *scales;    // NULL: the result is the sums
    size_t scale_count;     // 1 or one a channel
    float low, high;        // bounds of the result less its zero point
    int32_t y_zero;
    size_t y_size; // bytes of an element of y
};

// INF_UNSUPPORTED unless weights, bias, zero points and scale of a qconv2d or qmatmul are constants.
enum inf_code inf_q8_params_check(const struct inf_graph *graph, const struct inf_node *node,
                                  struct inf_error *err) INF_NODISCARD;

// The params of a node that was accepted.
struct inf_q8_params inf_q8_params_of(const struct inf_graph *graph, const struct inf_node *node);

// The zero point of channel `channel` of the weights made signed.
int32_t inf_q8_w_zero(const struct inf_q8_params *params, size_t channel);

// Whether any of them is not 0.
bool inf_q8_has_w_zeros(const struct inf_q8_params *params);

// What is added to the sum of x * w of a channel, both as the kernels have them, so that x less its zero
// point times w less its own comes out but for w's zero point times the sum of x. `w_sum` is the sum of
// the channel's `depth` weights.
int32_t inf_q8_adjusted_bias(const struct inf_q8_params *params, size_t channel, int32_t w_sum,
                             size_t depth);

// The scale of a channel; 0 where there is none.
float inf_q8_scale(const struct inf_q8_params *params, size_t channel);

// Uncleared memory, aligned to a cache line, that lives as long as the step, with INF_BLOB_SLACK_BYTES
// behind it.
//
// INF_EXHAUSTED  there is none.
enum inf_code inf_q8_alloc(void **out_memory, struct inf_cpu_step *step, size_t size,
                           struct inf_error *err) INF_NODISCARD;

#endif
