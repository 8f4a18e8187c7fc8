// SPDX-License-Identifier: Apache-2.0
// Opens files that a model file names, such as those with its weights.
#ifndef INF_BACKENDS_IMPORT_COMMON_BESIDE_H
#define INF_BACKENDS_IMPORT_COMMON_BESIDE_H

#include "backends/import/common/shards.h"
#include "proto/core/span.h"

// The most bytes of a path below the directory of a model, with the final NUL.
#define INF_BESIDE_PATH 4096

// Opens the file `location` in the folder of the model, or in a folder below it. The bytes of
// `location` are not trusted. Stores its path below place->directory_fd in `path`, and its size in
// *out_bytes. The caller closes *out_fd.
//
// INF_UNSUPPORTED  there is no folder: place->directory_fd is negative.
// INF_INVALID      the location is empty, has a NUL byte, or is too long.
// INF_DENIED       the location leaves the folder of the model, or is a link.
// INF_NOT_FOUND    there is no such file.
enum inf_code inf_beside_open(int *out_fd, uint64_t *out_bytes, char path[INF_BESIDE_PATH],
                              const struct inf_shard_place *place, struct inf_span location,
                              struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
