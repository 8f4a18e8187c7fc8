// SPDX-License-Identifier: Apache-2.0
// Names to values: a hash table that grows.
#ifndef INF_BACKENDS_IMPORT_ONNX_NAMES_H
#define INF_BACKENDS_IMPORT_ONNX_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/core/attributes.h"

struct inf_onnx_name {
    const char *name; // the caller's; NULL: the place is free
    uint32_t value;
};

// All zero is an empty table.
struct inf_onnx_names {
    struct inf_onnx_name *places;
    uint32_t capacity, count;
};

// Adds a name that must outlive the table. *known is whether it was there already: then nothing
// changes. False without memory.
bool inf_onnx_names_add(struct inf_onnx_names *names, const char *name, uint32_t value,
                        bool *known) INF_NODISCARD;

// *out_value = what `name` means; false where it means nothing.
bool inf_onnx_names_find(const struct inf_onnx_names *names, const char *name,
                         uint32_t *out_value) INF_NODISCARD;

// Frees the table.
void inf_onnx_names_fini(struct inf_onnx_names *names);

#endif
