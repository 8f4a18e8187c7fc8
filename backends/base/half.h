// SPDX-License-Identifier: Apache-2.0
// IEEE binary16 and bfloat16 to and from binary32, by value.
#ifndef INF_BACKENDS_BASE_HALF_H
#define INF_BACKENDS_BASE_HALF_H

#include <stdint.h>

// The float that the binary16 bits `half` stand for; exact, denormals and NaN included.
float inf_half_to_float(uint16_t half);

// The binary16 bits nearest to `value`, ties to even; beyond 65519.99 it is infinity.
uint16_t inf_half_from_float(float value);

// The float that the bfloat16 bits stand for; exact.
float inf_bf16_to_float(uint16_t bits);

// The bfloat16 bits nearest to `value`, ties to even.
uint16_t inf_bf16_from_float(float value);

#endif
