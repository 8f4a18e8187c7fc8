// SPDX-License-Identifier: Apache-2.0
// Finds a tensor by name. TensorFlow calls the first output of node "x" both "x" and "x:0", so a
// request may use either name, whichever of the two the model has.
#ifndef INF_PROTO_CORE_TENSOR_NAME_H
#define INF_PROTO_CORE_TENSOR_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/core/attributes.h"

// Describes where the names are in an array of structs. Made by INF_TENSOR_NAMES().
struct inf_tensor_names {
    const void *tensors;
    uint32_t count;
    size_t tensor_bytes; // size in bytes of one struct of the array
    size_t name_offset;  // offset of the struct's member `name`, a pointer to NUL-terminated text
};

// The names of `number` structs at `array`, whose type has a member `const char *name`. The array
// may be NULL if `number` is 0.
#define INF_TENSOR_NAMES(array, number)                                                            \
    (&(const struct inf_tensor_names){.tensors = (array),                                          \
                                      .count = (uint32_t)(number),                                 \
                                      .tensor_bytes = sizeof *(array),                             \
                                      .name_offset = offsetof(__typeof__(*(array)), name)})

// Returns true if `a` and `b` are equal, or differ only in a ":0" at the end of one of them.
bool inf_tensor_name_matches(const char *a, const char *b);

// Returns the index of the tensor called `name`, which has `length` bytes and need not be
// NUL-terminated; names->count if there is none. A tensor of exactly this name comes before a
// tensor whose name matches only by inf_tensor_name_matches().
uint32_t inf_tensor_names_find(const struct inf_tensor_names *names, const char *name,
                               size_t length);

#endif
