// SPDX-License-Identifier: Apache-2.0
// XNNPACK's element-wise operators of one input. They are used as a step of their own, or run in
// place on the result of another XNNPACK operator (step->post_op).
#ifndef INF_BACKENDS_CPU_XNNPACK_UNARY_OPERATOR_H
#define INF_BACKENDS_CPU_XNNPACK_UNARY_OPERATOR_H

#include "backends/cpu/core/activation.h"

// Sets step->post_op, which applies an activation other than clamping to the result. `prelu` points
// to `channels` slopes.
enum inf_code inf_xnn_add_post_op(struct inf_cpu_step *step,
                                  const struct inf_cpu_activation *activation, const float *prelu,
                                  size_t channels, struct inf_error *err) INF_NODISCARD;

// Creates the XNNPACK operator for the unary function `kind` over `count` elements. `alpha` is the
// attribute of the node. The kind must be one for which inf_xnn_unary_name() returns a name.
enum xnn_status inf_xnn_unary_create(struct inf_xnn_unary *unary, enum inf_unary_kind kind,
                                     float alpha, size_t count) INF_NODISCARD;

// Returns the name of the XNNPACK operator for a unary kind, as shown in profiles; NULL if XNNPACK
// has no operator for this kind.
const char *inf_xnn_unary_name(enum inf_unary_kind kind);

#endif
