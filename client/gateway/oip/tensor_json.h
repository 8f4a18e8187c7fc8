// SPDX-License-Identifier: Apache-2.0
// Converts the elements of tensors from and to JSON values.
#ifndef INF_GATEWAY_OIP_TENSOR_JSON_H
#define INF_GATEWAY_OIP_TENSOR_JSON_H

#include <stdio.h>

#include <jansson.h>

#include "client/inferd.h"
#include "proto/core/attributes.h"
#include "proto/core/status.h"

// Stores the elements of `data` (a flat array, or arrays nested like the shape) in tensor->data,
// which must have room for tensor->size bytes. Fails if the arrays do not match the shape, if a
// number is out of the range of the element type, if an integer tensor has a real number, or if the
// type is FP16 or BF16.
enum inf_code inf_oip_tensor_from_json(const inferd_tensor *tensor, const json_t *data,
                                       struct inf_error *err) INF_NODISCARD;

// Writes the elements as a flat JSON array. The numbers read back as exactly the same values. Fails
// for values that JSON does not have (NaN, infinities), for FP16 and BF16, and if there are more
// than INF_OIP_JSON_VALUES elements.
enum inf_code inf_oip_tensor_to_json(const inferd_tensor *tensor, FILE *out,
                                     struct inf_error *err) INF_NODISCARD;

#endif
