// SPDX-License-Identifier: Apache-2.0
// Which precision a model computes in, and why: never another one than is said. On the loader thread.
#ifndef INF_DAEMON_MODEL_PRECISION_H
#define INF_DAEMON_MODEL_PRECISION_H

#include "backends/exec/model.h"
#include "backends/registry.h"

// What is wanted.
enum inf_precision {
    INF_PRECISION_AUTO, // the fastest that is as good as fp32 within bounds
    INF_PRECISION_FP32,
    INF_PRECISION_FP16, // or nothing
    INF_PRECISIONS,
};

// Parses "auto", "fp32" or "fp16"; false for anything else.
bool inf_precision_parse(const char *text, enum inf_precision *precision);

// The name of a wish; static.
const char *inf_precision_name(enum inf_precision precision);

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
