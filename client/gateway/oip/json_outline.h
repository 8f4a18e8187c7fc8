// SPDX-License-Identifier: Apache-2.0
// Splits the JSON text of an inference request into the data of its inputs and all else.
#ifndef INF_GATEWAY_OIP_JSON_OUTLINE_H
#define INF_GATEWAY_OIP_JSON_OUTLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/gateway/oip/json_guard.h"
#include "proto/core/attributes.h"
#include "proto/core/limits.h"
#include "proto/core/span.h"
#include "proto/core/status.h"

// Zero-initialise, and set `text`.
struct inf_json_outline {
    struct inf_span text;
    size_t at; // all bytes before it are read
    // The text without the data: each array that is the member "data" of an element of "inputs" is
    // replaced by its index in `data`. Belongs to the outline.
    char *bytes;
    size_t size;
    struct inf_span data[INF_LIMIT_TENSORS]; // the arrays, with their brackets
    size_t data_count;
    // Internal state.
    unsigned depth;                      // number of open arrays and objects
    char opened[INF_OIP_JSON_DEPTH + 1]; // '[' or '{' of each of them
    size_t string_begin, string_size;    // the last string in `bytes`, without its quotes
    bool in_string, in_inputs;
    bool after_key;      // the next value is the data of an input
    bool after_space;    // the last byte was a space outside of a string
    unsigned data_depth; // depth in an array of data; 0: in none
    size_t data_begin;
};

// Reads the next bytes of the text, at most `bytes_max`. Sets *done to true if the text is read.
// Fails if the text nests deeper than INF_OIP_JSON_DEPTH, if it has more than INF_LIMIT_TENSORS
// arrays of data, if the outline exceeds INF_OIP_JSON_OUTLINE_BYTES, or if there is no memory. A
// text that is no valid JSON can have an outline; then the outline or the data is not valid either.
enum inf_code inf_json_outline_read(struct inf_json_outline *outline, size_t bytes_max, bool *done,
                                    struct inf_error *err) INF_NODISCARD;

// Frees the memory of the outline.
void inf_json_outline_fini(struct inf_json_outline *outline);

#endif
