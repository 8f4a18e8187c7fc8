// SPDX-License-Identifier: Apache-2.0
// Writes the outputs of a result to .npy files in a directory.
#ifndef INF_CLIENT_INFERCTL_TENSOR_OUTPUT_FILES_H
#define INF_CLIENT_INFERCTL_TENSOR_OUTPUT_FILES_H

#include <limits.h>

#include "client/inferd.h"

// Creates the directory if it does not exist. Returns an exit code, and prints a message on
// failure.
int output_files_prepare(const char *directory);

// Writes the path of the file for output `index` to `path`, and returns `path`. It is
// DIRECTORY/NAME.npy, where '_' replaces all characters but letters, digits, '.', '-' and '_'. If
// an earlier output has the same path, the path is DIRECTORY/NAME-INDEX.npy.
const char *output_files_path(const char *directory, const inferd_result *result, size_t index,
                              char path[PATH_MAX]);

// Writes every output to its file. BF16, which .npy does not have, is written as float32. Returns
// an exit code, and prints a message on failure.
int output_files_save(const char *directory, const inferd_result *result);

#endif
