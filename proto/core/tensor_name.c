// SPDX-License-Identifier: Apache-2.0
// Finds a tensor by name, with or without the ":0" by which TensorFlow denotes the first output of
// a node. The name as it is written comes first, because an ONNX model may have both "x" and "x:0".
#include "proto/core/tensor_name.h"

#include <string.h>

#define FIRST_OUTPUT ":0"

// Returns the length of the name without a ":0" at its end. A name that is only ":0" stays as it
// is.
static size_t measure_node_name(const char *name, size_t length)
{
    const size_t suffix = strlen(FIRST_OUTPUT);
    bool has_suffix = length > suffix && memcmp(name + length - suffix, FIRST_OUTPUT, suffix) == 0;
    return has_suffix ? length - suffix : length;
}

static bool is_same_node(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t length = measure_node_name(a, a_length);
    return measure_node_name(b, b_length) == length && memcmp(a, b, length) == 0;
}

bool inf_tensor_name_matches(const char *a, const char *b)
{
    return is_same_node(a, strlen(a), b, strlen(b));
}

uint32_t inf_tensor_names_find(const struct inf_tensor_names *names, const char *name,
                               size_t length)
{
    uint32_t found = names->count;
    for (uint32_t i = 0; i < names->count; i++) {
        const char *candidate;
        memcpy(&candidate,
               (const char *)names->tensors + i * names->tensor_bytes + names->name_offset,
               sizeof candidate);
        size_t candidate_length = strlen(candidate);
        if (candidate_length == length && memcmp(candidate, name, length) == 0)
            return i;
        if (is_same_node(candidate, candidate_length, name, length))
            found = i;
    }
    return found;
}
