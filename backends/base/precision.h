// SPDX-License-Identifier: Apache-2.0
// What numbers a model's floats are computed in. One list for devices, judges, settings and replies.
#ifndef INF_BACKENDS_BASE_PRECISION_H
#define INF_BACKENDS_BASE_PRECISION_H

#include <stdbool.h>
#include <stdint.h>

enum inf_precision {
    INF_PRECISION_AUTO, // a wish: the fastest that is as good as fp32 within bounds
    INF_PRECISION_FP32, // every device
    INF_PRECISION_FP16, // IEEE half: 11 bits, up to 65504
    INF_PRECISION_BF16, // 8 bits, the range of fp32
    INF_PRECISION_INT8, // 8-bit integers with a scale
    INF_PRECISIONS,
};

// A set of precisions has this bit for each.
#define INF_PRECISION_BIT(precision) (1u << (precision))

// Parses "auto", "fp32", "fp16", "bf16" or "int8"; false for anything else.
bool inf_precision_parse(const char *text, enum inf_precision *precision);

// The name of a precision; static.
const char *inf_precision_name(enum inf_precision precision);

#endif
