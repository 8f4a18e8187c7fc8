// SPDX-License-Identifier: Apache-2.0
// The reference device `ref`: simple scalar loops for every operator of ops.def. Other backends are
// compared with it, and every plan falls back on it for nodes that no other device supports.
#ifndef INF_BACKENDS_REF_REF_H
#define INF_BACKENDS_REF_REF_H

#include "backends/device/backend.h"
#include "backends/graph/pass/pass.h"

extern const struct inf_backend inf_ref_backend;

// Returns the evaluator for constant folding that computes nodes with the reference kernels. The
// evaluator is static and has no state.
const struct inf_evaluator *inf_ref_evaluator(void);

#endif
