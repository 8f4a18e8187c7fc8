// SPDX-License-Identifier: Apache-2.0
// Converts single numbers between 16-bit floats (IEEE binary16, bfloat16) and 32-bit floats.
#ifndef INF_BACKENDS_BASE_HALF_H
#define INF_BACKENDS_BASE_HALF_H

#include <stdint.h>

// Returns the value of the binary16 bits `half`. Exact, including denormals and NaN.
float inf_half_to_float(uint16_t half);

// Returns the binary16 bits nearest to `value`, ties to even; infinity if |value| exceeds 65519.99.
uint16_t inf_half_from_float(float value);

// Returns the value of the bfloat16 bits. Exact.
float inf_bf16_to_float(uint16_t bits);

// Returns the bfloat16 bits nearest to `value`, ties to even.
uint16_t inf_bf16_from_float(float value);

#endif
