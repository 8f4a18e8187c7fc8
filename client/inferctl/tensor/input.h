// SPDX-License-Identifier: Apache-2.0
// Reads files as inputs of a model. A .npy file is used unchanged; a picture is converted to the
// type and shape of the input.
#ifndef INF_CLIENT_INFERCTL_TENSOR_INPUT_H
#define INF_CLIENT_INFERCTL_TENSOR_INPUT_H

#include <stdbool.h>

#include "client/inferctl/tensor/description.h"
#include "client/inferd.h"

#define TENSOR_INPUTS_MAX 64

// How a picture is converted to a tensor.
struct picture_options {
    // True: `low` and `high` are set. False: the range is 0:1 for floats, -128:127 for INT8 and
    // 0:255 for other integers.
    bool has_range;
    double low, high; // the element values for black and white
    // What the model says about its inputs, borrowed: without a range, FP32 inputs are normalised
    // as the model says. NULL: nothing.
    const struct description *description;
    bool bgr;       // the order of channels is blue, green, red; otherwise red, green, blue
    bool letterbox; // keep the aspect ratio, with a black border; otherwise stretch the picture
};

// The inputs of a request. The struct owns the elements of the tensors.
struct tensor_inputs {
    inferd_tensor tensors[TENSOR_INPUTS_MAX];
    size_t count;
};

// Adds the input that `assignment` names: "NAME=FILE", or "FILE" if the model has one input. FILE
// is .npy, JPEG or PNG, decided by its content. Returns an exit code, and prints a message on
// failure.
int tensor_inputs_add(struct tensor_inputs *inputs, const char *assignment,
                      const inferd_model_info *model, const struct picture_options *options);

// How to fill the inputs for which the user gave no file.
enum tensor_fill {
    TENSOR_ZEROS,
    // FP32 and FP64 get numbers from 0 to 1, UINT8 gets any values. The values are the same in each
    // run. Other types get zeros, because their elements are often indices.
    TENSOR_RANDOM,
};

// Adds every input of the model for which the user gave no file, filled as `enum tensor_fill` says.
// Unknown dimensions become 1. Returns an exit code.
int tensor_inputs_complete(struct tensor_inputs *inputs, const inferd_model_info *model,
                           enum tensor_fill fill);

// Frees the elements of all inputs.
void tensor_inputs_fini(struct tensor_inputs *inputs);

// Parses "LOW:HIGH" into the options. Otherwise prints a message and returns false.
bool picture_options_range(struct picture_options *options, const char *text);

#endif
