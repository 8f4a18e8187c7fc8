// SPDX-License-Identifier: Apache-2.0
// A result's outputs as .npy files in a directory.
#ifndef INF_CLIENT_INFERCTL_TENSOR_OUTPUT_FILES_H
#define INF_CLIENT_INFERCTL_TENSOR_OUTPUT_FILES_H

#include <limits.h>

#include "client/inferd.h"

// Makes the directory where it is not there. Prints what is wrong and returns an exit code.
int output_files_prepare(const char *directory);

// The file that output `index` goes to: DIRECTORY/NAME.npy, where everything but letters, digits, '.',
// '-' and '_' becomes '_'; an output whose file another one in front of it has gets NAME-INDEX.npy.
// Returns `path`.
const char *output_files_path(const char *directory, const inferd_result *result, size_t index,
                              char path[PATH_MAX]);

// Writes every output to its file. BF16, which .npy does not have, is written as float32. Prints what
// is wrong and returns an exit code.
int output_files_save(const char *directory, const inferd_result *result);

#endif
