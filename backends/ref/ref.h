// SPDX-License-Identifier: Apache-2.0
// The reference device: simple scalar loops for every operator of ops.def. Other backends are
// compared with it, and it is the last resort of every plan.
#ifndef INF_BACKENDS_REF_REF_H
#define INF_BACKENDS_REF_REF_H

#include "backends/device/backend.h"
#include "backends/graph/pass/pass.h"

extern const struct inf_backend inf_ref_backend;

// Returns an evaluator for constant folding that computes nodes as the reference device does.
// Stateless; static.
const struct inf_evaluator *inf_ref_evaluator(void);

#endif
