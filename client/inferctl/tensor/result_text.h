// SPDX-License-Identifier: Apache-2.0
// Prints the result of an inference, as text or as JSON.
#ifndef INF_CLIENT_INFERCTL_TENSOR_RESULT_TEXT_H
#define INF_CLIENT_INFERCTL_TENSOR_RESULT_TEXT_H

#include "client/inferctl/cli/command.h"
#include "client/inferctl/tensor/description.h"
#include "client/inferctl/tensor/labels.h"

#define RESULT_TOP_MAX 100

// Which parts of the result to print.
struct result_view {
    unsigned long top;           // number of best classes to print, at most RESULT_TOP_MAX
    const struct labels *labels; // names of the classes that the user gave; without text: none
    // What the model says about its outputs: its labels are used if the user gave none.
    const struct description *description;
    // Directory in which output_files_save() wrote the outputs; NULL: no files were written.
    const char *directory;
};

// Checks that the labels, if there are some, fit the result: at least one output has scores of
// classes, and each such output has as many classes as there are labels. Otherwise labels would
// name wrong classes. Prints a message on failure and returns an exit code.
int result_check_labels(const inferd_result *result, const struct result_view *view);

// Prints name, dtype, shape and a summary of each output and, for a vector of class scores, the
// best classes. Of an output whose values have labels, prints the first values with their labels.
// After the outputs, prints the device and the times.
void result_print(const inferd_result *result, const struct result_view *view,
                  enum output_format format);

#endif
