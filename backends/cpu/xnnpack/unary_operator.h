// SPDX-License-Identifier: Apache-2.0
// XNNPACK's element-wise operators of one input, alone and as the post-op of a step.
#ifndef INF_BACKENDS_CPU_XNNPACK_UNARY_OPERATOR_H
#define INF_BACKENDS_CPU_XNNPACK_UNARY_OPERATOR_H

#include "backends/cpu/core/activation.h"

// Sets up step->after for activations that no clamping does. `prelu` holds `channels` slopes.
enum inf_code inf_xnn_add_post_op(struct inf_cpu_step *step,
                                  const struct inf_cpu_activation *activation, const float *prelu,
                                  size_t channels, struct inf_error *err) INF_NODISCARD;

// Makes the operator of a unary kind over `count` elements; `alpha` as in the op. Not for kinds that
// inf_xnn_unary_name() has no name for.
enum xnn_status inf_xnn_unary_create(struct inf_xnn_unary *unary, enum inf_unary_kind kind,
                                     float alpha, size_t count) INF_NODISCARD;

// What is shown in profiles for a unary kind; NULL where XNNPACK has no operator for it.
const char *inf_xnn_unary_name(enum inf_unary_kind kind);

#endif
