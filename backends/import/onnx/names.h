// SPDX-License-Identifier: Apache-2.0
// A map from names to values: a hash table that grows.
#ifndef INF_BACKENDS_IMPORT_ONNX_NAMES_H
#define INF_BACKENDS_IMPORT_ONNX_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/core/attributes.h"

struct inf_onnx_name {
    const char *name; // borrowed; NULL: the entry is free
    uint32_t value;
};

// A hash table. A zeroed struct is an empty table.
struct inf_onnx_names {
    struct inf_onnx_name *places;
    uint32_t capacity, count;
};

// Adds a name, which must outlive the table. If the name is present, sets *known to true and
// changes nothing. Returns false if there is no memory.
bool inf_onnx_names_add(struct inf_onnx_names *names, const char *name, uint32_t value,
                        bool *known) INF_NODISCARD;

// Sets *out_value to the value of `name`. Returns false if the name is unknown.
bool inf_onnx_names_find(const struct inf_onnx_names *names, const char *name,
                         uint32_t *out_value) INF_NODISCARD;

// Frees the table.
void inf_onnx_names_fini(struct inf_onnx_names *names);

#endif
