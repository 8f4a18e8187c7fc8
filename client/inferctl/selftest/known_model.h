// SPDX-License-Identifier: Apache-2.0
// A small model whose answer is known, for inferctl selftest.
#ifndef INF_CLIENT_INFERCTL_SELFTEST_KNOWN_MODEL_H
#define INF_CLIENT_INFERCTL_SELFTEST_KNOWN_MODEL_H

#include "client/inferd.h"

#define KNOWN_MODEL_INPUTS  192 // elements of the input "x", of the shape [1, 8, 8, 3]
#define KNOWN_MODEL_CLASSES 10  // elements of each output, of the shape [1, 10]
#define KNOWN_MODEL_OUTPUTS 2

// Writes the files of the model, a TensorFlow.js graph model, into `folder`. The model has a dense,
// a depthwise and a 1x1 convolution with biases, relu6, a residual, a mean, a matrix product, and
// softmax. Returns an exit code, and prints a message on failure.
int known_model_write(const char *folder);

// Removes the files that known_model_write() creates, as far as they exist.
void known_model_remove(const char *folder);

// Fills `values` with the input to which the answer is known.
void known_model_fill_input(float values[KNOWN_MODEL_INPUTS]);

// Returns the expected output number `index`: its name, type, shape and elements. The elements were
// computed in double precision by tests/tools/gen/gen_selftest.py, from the definitions of the
// operators. The tensor is constant.
const inferd_tensor *known_model_output(unsigned index);

#endif
