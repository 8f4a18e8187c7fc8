// SPDX-License-Identifier: Apache-2.0
// Converts the elements of tensors from and to JSON, a bounded number of bytes at a time.
#ifndef INF_GATEWAY_OIP_ELEMENTS_JSON_H
#define INF_GATEWAY_OIP_ELEMENTS_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include "client/gateway/oip/number_text.h"
#include "client/gateway/oip/strings.h"
#include "client/inferd.h"
#include "proto/core/attributes.h"
#include "proto/core/limits.h"
#include "proto/core/span.h"
#include "proto/core/status.h"

// Reads the elements of one tensor. Initialise with inf_json_elements_begin(); nothing is freed.
struct inf_json_elements {
    const inferd_tensor *tensor;
    const char *at, *end;
    size_t next, count; // index of the next element; number of elements
    int level, levels;  // number of open arrays; how many an element needs (0: not known yet)
    size_t dims[INF_LIMIT_RANK], done[INF_LIMIT_RANK]; // by level: wanted and complete items
    bool after_item;                                   // a comma or a closing bracket follows
    struct inf_json_strings strings;                   // of BYTES
};

// Begins to read `data`, a text that begins with '[' and whose last byte is the closing bracket:
// a flat array, or arrays nested like the shape. Elements are stored in tensor->data, which must
// have room for inf_json_elements_room() bytes; both must stay valid while elements are read. Fails
// if the type is FP16 or BF16, or if `data` is too short to have all elements.
enum inf_code inf_json_elements_begin(struct inf_json_elements *elements,
                                      const inferd_tensor *tensor, struct inf_span data,
                                      struct inf_error *err) INF_NODISCARD;

// Returns the maximum size of the elements in bytes; they have that size unless they are strings.
// Those have the form of libinferd, and their size is known when they are read.
size_t inf_json_elements_room(const struct inf_json_elements *elements);

// Reads about `bytes_max` bytes: the last number of them can be longer. Sets *done to true when all
// elements are stored. Fails if the text is no valid JSON, if the arrays do not match the shape, if
// a number is out of the range of the type, or if an integer tensor has a real number. The words
// NaN, Infinity and -Infinity are numbers of FP32 and FP64, as in Triton.
enum inf_code inf_json_elements_read(struct inf_json_elements *elements, size_t bytes_max,
                                     bool *done, struct inf_error *err) INF_NODISCARD;

// Room that inf_json_element_print() needs, in bytes.
#define INF_JSON_ELEMENT_BYTES INF_NUMBER_PRINT_BYTES

// Prints element `index` of a tensor, and returns the number of bytes. The text reads back as
// exactly the same value. The type must not be FP16, BF16 or BYTES.
size_t inf_json_element_print(char to[INF_JSON_ELEMENT_BYTES], const inferd_tensor *tensor,
                              size_t index);

#endif
