// SPDX-License-Identifier: Apache-2.0
// Which precision a model computes in, and why: never another one than is said. On the loader
// threads.
#ifndef INF_DAEMON_LOAD_PRECISION_H
#define INF_DAEMON_LOAD_PRECISION_H

#include "backends/base/precision.h"
#include "backends/exec/model/model.h"
#include "backends/precision/precision_check.h"
#include "backends/registry.h"
#include "daemon/load/placement.h"

// Room for why.
#define INF_PRECISION_REASON 256

// Looks at what the model would do in `precision` at `shapes`, on inputs of 0 to 1, with plain
// loops: on noise, and where it takes pictures on something like one. The report is that of the
// worse.
//
// INF_UNSUPPORTED  that cannot be told; the text says why.
enum inf_code inf_precision_evaluate(struct inf_precision_report *report,
                                     enum inf_precision precision, struct inf_model *model,
                                     const struct inf_shape *shapes,
                                     struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Decides about a wish, on `device` or where that is NULL on any. Where less than fp32 is wanted,
// the model's values are looked at at `shapes` (NULL: not known), and what has to stay fp32 is
// pinned. `reason` says what came of it.
//
// INF_PRECONDITION  less than fp32 was named and cannot be had; the text says who cannot, and what the
//                   model would do in it.
enum inf_code inf_precision_decide(enum inf_precision wanted, struct inf_model *model,
                                   const struct inf_shape *shapes,
                                   const struct inf_device_list *devices,
                                   const struct inf_device *device,
                                   char reason[INF_PRECISION_REASON],
                                   struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Says why a model whose wish was "auto" computes in what it does, as far as the placement tells;
// leaves `reason` as it is where it does not.
void inf_precision_explain(const struct inf_placement *placement,
                           char reason[INF_PRECISION_REASON]);

#endif
