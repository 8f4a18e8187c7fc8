// SPDX-License-Identifier: Apache-2.0
// Tensors of strings (BYTES) in JSON and in the typed contents of protobuf. Raw and binary data
// have the form of libinferd already, and pass unchanged.
#ifndef INF_CLIENT_GATEWAY_OIP_STRINGS_H
#define INF_CLIENT_GATEWAY_OIP_STRINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/inferd.h"
#include "proto/core/attributes.h"
#include "proto/core/span.h"
#include "proto/core/status.h"

// Reads strings from JSON text and writes them in the form of libinferd. Zero-initialise, and set
// `to` to memory with room for 4 bytes per string and all bytes of the text.
struct inf_json_strings {
    uint8_t *to;     // behind the last byte written
    uint8_t *length; // where the length of the open string belongs; NULL: none is open
};

// Reads a string, whose opening quote is at *at unless a string is open, up to its closing quote or
// about up to `stop`, and moves *at behind what was read. `end` is the end of the text. Returns
// false if the string is no valid JSON; its text must be UTF-8.
bool inf_json_string_read(struct inf_json_strings *strings, const char **at, const char *stop,
                          const char *end) INF_NODISCARD;

// Room that inf_json_string_print() needs for a string of `size` bytes, in bytes.
#define INF_JSON_STRING_BYTES(size) (6 * (size) + 2)

// Prints a string as JSON and returns the number of bytes, or 0 if the string is not UTF-8, which
// JSON cannot express.
size_t inf_json_string_print(char *to, inferd_string string);

// Sets data and size of a BYTES tensor whose shape is set from the bytes_contents of an
// InferTensorContents. The caller frees tensor->data.
//
// INF_INVALID    (SIZE_MISMATCH) another number of elements, or contents of another type.
// INF_EXHAUSTED  no memory.
enum inf_code inf_oip_strings_from_contents(inferd_tensor *tensor, struct inf_span contents,
                                            struct inf_error *err) INF_NODISCARD;

#endif
