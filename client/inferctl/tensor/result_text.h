// SPDX-License-Identifier: Apache-2.0
// The answer to an inference, for people or for programs.
#ifndef INF_CLIENT_INFERCTL_TENSOR_RESULT_TEXT_H
#define INF_CLIENT_INFERCTL_TENSOR_RESULT_TEXT_H

#include "client/inferctl/cli/command.h"
#include "client/inferctl/tensor/labels.h"

#define RESULT_TOP_MAX 100

// What is shown of it.
struct result_view {
    unsigned long top;           // that many best classes, at most RESULT_TOP_MAX
    const struct labels *labels; // of classes
    const char *directory;       // where output_files_save() has put the outputs; NULL: nowhere
};

// Prints, for each output, name, dtype, shape, a summary of its elements and, for a class vector, the
// best classes; then what ran where for how long.
void result_print(const inferd_result *result, const struct result_view *view,
                  enum output_format format);

#endif
