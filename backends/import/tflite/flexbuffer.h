// SPDX-License-Identifier: Apache-2.0
// Reads the options of custom operators: a FlexBuffer that is a map of names to numbers.
#ifndef INF_BACKENDS_IMPORT_TFLITE_FLEXBUFFER_H
#define INF_BACKENDS_IMPORT_TFLITE_FLEXBUFFER_H

#include "proto/core/span.h"

// Finds the number or bool called `key` in the map `bytes`. Returns false if there is none, if it
// is of another type, or if the bytes are no map; *out is unchanged then. Any bytes are safe.
bool inf_flexbuffer_number(struct inf_span bytes, const char *key, double *out);

#endif
