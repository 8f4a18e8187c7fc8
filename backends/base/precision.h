// SPDX-License-Identifier: Apache-2.0
// The precisions in which the floats of a model can be computed. Devices, checks, settings and
// replies use this one list.
#ifndef INF_BACKENDS_BASE_PRECISION_H
#define INF_BACKENDS_BASE_PRECISION_H

#include <stdbool.h>
#include <stdint.h>

enum inf_precision {
    // Only in requests: the fastest precision whose results are close enough to fp32.
    INF_PRECISION_AUTO,
    INF_PRECISION_FP32, // offered by every device
    INF_PRECISION_FP16, // IEEE binary16: 11 bits of significand, up to 65504
    INF_PRECISION_BF16, // bfloat16: 8 bits of significand, the range of fp32
    INF_PRECISION_INT8, // 8-bit integers with a scale
    INF_PRECISIONS,
};

// The bit of a precision in a set of precisions.
#define INF_PRECISION_BIT(precision) (1u << (precision))

// Parses "auto", "fp32", "fp16", "bf16" or "int8". Returns false for any other text.
bool inf_precision_parse(const char *text, enum inf_precision *precision);

// Returns the name of a precision, a static string.
const char *inf_precision_name(enum inf_precision precision);

#endif
