// SPDX-License-Identifier: Apache-2.0
// Decides in which precision a model computes, and records why. Used on the loader threads.
#ifndef INF_DAEMON_LOAD_PRECISION_H
#define INF_DAEMON_LOAD_PRECISION_H

#include "backends/base/precision.h"
#include "backends/exec/model/model.h"
#include "backends/precision/precision_check.h"
#include "backends/registry.h"
#include "daemon/load/placement.h"

// Room for the reason of a precision.
#define INF_PRECISION_REASON 256

// Evaluates how far the outputs of the model would move in `precision` at `shapes`. Runs it on the
// reference kernels with inputs between 0 and 1: noise, and if it takes pictures also something
// like a picture. The report is that of the worse input.
//
// INF_UNSUPPORTED  this cannot be evaluated; the text gives the reason.
enum inf_code inf_precision_evaluate(struct inf_precision_report *report,
                                     enum inf_precision precision, struct inf_model *model,
                                     const struct inf_shape *shapes,
                                     struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Decides about the precision `wanted` on `device`, or on any device if that is NULL. If less than
// fp32 is wanted, the values of the model are checked at `shapes` (NULL: not known), and nodes that
// must stay in fp32 are pinned. `reason` receives an explanation.
//
// INF_PRECONDITION  a precision below fp32 was named and is not available; the text says why, and
//                   what the model would do in it.
enum inf_code inf_precision_decide(enum inf_precision wanted, struct inf_model *model,
                                   const struct inf_shape *shapes,
                                   const struct inf_device_list *devices,
                                   const struct inf_device *device,
                                   char reason[INF_PRECISION_REASON],
                                   struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Explains the precision of a model that was loaded with "auto", as far as the placement tells;
// otherwise `reason` is left unchanged.
void inf_precision_explain(const struct inf_placement *placement,
                           char reason[INF_PRECISION_REASON]);

#endif
