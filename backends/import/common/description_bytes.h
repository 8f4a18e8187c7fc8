// SPDX-License-Identifier: Apache-2.0
// The description of a model as bytes, for the file of its plan (backends/saved/plan_file.h).
#ifndef INF_BACKENDS_IMPORT_COMMON_DESCRIPTION_BYTES_H
#define INF_BACKENDS_IMPORT_COMMON_DESCRIPTION_BYTES_H

#include <stddef.h>

#include "backends/import/common/description.h"

// Writes a description to memory that the caller frees. Returns NULL if there is no memory.
void *inf_description_encode(const struct inf_model_description *description,
                             size_t *out_size) INF_NODISCARD;

// Makes a description from `size` bytes that inf_description_encode() wrote. Nothing in the bytes
// is trusted. The caller drops the only reference.
//
// INF_INVALID    the bytes are no description.
// INF_EXHAUSTED  memory.
enum inf_code inf_description_decode(struct inf_model_description **out_description,
                                     const void *data, size_t size,
                                     struct inf_error *err) INF_NODISCARD;

#endif
