// SPDX-License-Identifier: Apache-2.0
// The reference device: plain scalar loops for every operator of ops.def, no cleverness. The oracle
// that other backends are compared with, and the last resort of every plan.
#ifndef INF_BACKENDS_REF_REF_H
#define INF_BACKENDS_REF_REF_H

#include "backends/device/backend.h"
#include "backends/graph/pass/pass.h"

extern const struct inf_backend inf_ref_backend;

// An evaluator for constant folding that computes nodes as the reference device would. Stateless;
// static.
const struct inf_evaluator *inf_ref_evaluator(void);

#endif
