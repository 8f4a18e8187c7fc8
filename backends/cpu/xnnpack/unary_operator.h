// SPDX-License-Identifier: Apache-2.0
// XNNPACK's element-wise operators of one input. They are used as a step or as the post-op of a
// step.
#ifndef INF_BACKENDS_CPU_XNNPACK_UNARY_OPERATOR_H
#define INF_BACKENDS_CPU_XNNPACK_UNARY_OPERATOR_H

#include "backends/cpu/core/activation.h"

// Sets step->post_op for an activation other than clamping. `prelu` points to `channels` slopes.
enum inf_code inf_xnn_add_post_op(struct inf_cpu_step *step,
                                  const struct inf_cpu_activation *activation, const float *prelu,
                                  size_t channels, struct inf_error *err) INF_NODISCARD;

// Creates the operator of a unary kind over `count` elements; `alpha` is the attribute of the node.
// inf_xnn_unary_name() must have a name for the kind.
enum xnn_status inf_xnn_unary_create(struct inf_xnn_unary *unary, enum inf_unary_kind kind,
                                     float alpha, size_t count) INF_NODISCARD;

// Returns the display name of a unary kind in profiles; NULL if XNNPACK has no operator for this
// kind.
const char *inf_xnn_unary_name(enum inf_unary_kind kind);

#endif
