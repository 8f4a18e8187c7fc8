// SPDX-License-Identifier: Apache-2.0
// Reads the options of custom operators: a FlexBuffer that is a map of names to numbers or lists of
// integers.
#ifndef INF_BACKENDS_IMPORT_TFLITE_FLEXBUFFER_H
#define INF_BACKENDS_IMPORT_TFLITE_FLEXBUFFER_H

#include "proto/core/span.h"

// Finds the number or bool called `key` in the map `bytes`. Returns false if there is none, if it
// is of another type, or if the bytes are no map; *out is unchanged then. Any bytes are safe.
bool inf_flexbuffer_number(struct inf_span bytes, const char *key, double *out);

// Copies the list of integers called `key` to `out`, and stores their number in *count. Returns
// false if there is none, if it is no list of integers, if it has more than `capacity` elements, or
// if the bytes are no map. Any bytes are safe.
bool inf_flexbuffer_integers(struct inf_span bytes, const char *key, int64_t *out,
                             uint32_t capacity, uint32_t *count);

#endif
