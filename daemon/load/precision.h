// SPDX-License-Identifier: Apache-2.0
// Decides in which precision a model computes, and records why. Used on the loader threads.
#ifndef INF_DAEMON_LOAD_PRECISION_H
#define INF_DAEMON_LOAD_PRECISION_H

#include "backends/base/precision.h"
#include "backends/exec/model/model.h"
#include "backends/precision/precision_check.h"
#include "backends/registry.h"
#include "daemon/load/placement.h"

// Buffer size for the text that explains a choice of precision.
#define INF_PRECISION_REASON 256

// Evaluates how much the outputs of the model would change in `precision` at `shapes`. Runs the
// model on the reference kernels with noise between 0 and 1, and, if the model takes pictures, also
// with a synthetic picture. The report describes the worse of the two.
//
// INF_UNSUPPORTED  this cannot be evaluated; the text gives the reason.
enum inf_code inf_precision_evaluate(struct inf_precision_report *report,
                                     enum inf_precision precision, struct inf_model *model,
                                     const struct inf_shape *shapes,
                                     struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Decides whether the precision `wanted` is used on `device`, or on any device if `device` is NULL.
// If `wanted` is less than fp32, the values of the model are checked at `shapes` (NULL: not known),
// and nodes that must stay in fp32 are pinned. `reason` receives an explanation.
//
// INF_PRECONDITION  a precision below fp32 was named and is not available; the text says why, and
//                   which precision the model would use otherwise.
enum inf_code inf_precision_decide(enum inf_precision wanted, struct inf_model *model,
                                   const struct inf_shape *shapes,
                                   const struct inf_device_list *devices,
                                   const struct inf_device *device,
                                   char reason[INF_PRECISION_REASON],
                                   struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Writes to `reason` why a model that was loaded with precision "auto" computes in its precision.
// If the placement does not record a reason, `reason` is left unchanged.
void inf_precision_explain(const struct inf_placement *placement,
                           char reason[INF_PRECISION_REASON]);

#endif
