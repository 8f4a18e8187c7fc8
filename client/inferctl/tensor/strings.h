// SPDX-License-Identifier: Apache-2.0
// Tensors of strings of `inferctl infer`: from a text or the lines of a file, to lines and JSON.
#ifndef INF_CLIENT_INFERCTL_TENSOR_STRINGS_H
#define INF_CLIENT_INFERCTL_TENSOR_STRINGS_H

#include <jansson.h>
#include <stdbool.h>

#include "client/inferd.h"

// Fills *tensor for input `wanted` of BYTES from `text`: the text is the only string, or "@FILE"
// names a file whose lines are the strings ("@@..." is the text "@..."). The number of strings must
// fit the input's shape. Returns an exit code, and prints a message on failure. The caller frees
// tensor->data.
int strings_load(inferd_tensor *tensor, const inferd_tensor *wanted, const char *text);

// Prints at most `count` strings of a tensor of BYTES, one a line, below a line with its name.
// Control characters become '?'.
void strings_print(const inferd_tensor *tensor, size_t count);

// Returns all strings of a tensor of BYTES as a JSON array. Characters of a string that is not
// UTF-8 become '?' unless they are ASCII.
json_t *strings_json(const inferd_tensor *tensor);

// Writes all strings of a tensor of BYTES to a file as a JSON array. Returns false and sets errno
// if that fails.
bool strings_save(const inferd_tensor *tensor, const char *path);

#endif
