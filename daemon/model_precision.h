// SPDX-License-Identifier: Apache-2.0
// Which precision a model computes in, and why: never another one than is said. On the loader thread.
#ifndef INF_DAEMON_MODEL_PRECISION_H
#define INF_DAEMON_MODEL_PRECISION_H

#include "backends/exec/model.h"
#include "backends/registry.h"

// Decides. `reason` says why the model computes in fp32. Where somebody asked for less, the model's
// values are looked at at `shapes` (NULL: not known), on inputs of 0 to 1.
//
// INF_PRECONDITION  fp16 and nothing else was wanted, and cannot be had; the text says what no device
//                   can, and what the model would do in it.
enum inf_code inf_precision_settle(enum inf_precision wanted, struct inf_model *model,
                                   const struct inf_shape *shapes,
                                   const struct inf_device_list *devices, char reason[256],
                                   struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
