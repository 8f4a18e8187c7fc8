// SPDX-License-Identifier: Apache-2.0
// Tensors as text: shapes, a summary of the elements, the best classes.
#ifndef INF_CLIENT_INFERCTL_TENSOR_TEXT_H
#define INF_CLIENT_INFERCTL_TENSOR_TEXT_H

#include <jansson.h>
#include <stdbool.h>

#include "client/inferd.h"

#define TENSOR_SHAPE_TEXT 128

// Writes "[1,128,128,3]" ("?" for dimensions that may be anything) and returns `text`.
const char *tensor_shape_text(const inferd_tensor *tensor, char text[TENSOR_SHAPE_TEXT]);

// The shape as an array; null for dimensions that may be anything.
json_t *tensor_shape_json(const inferd_tensor *tensor);

// Element `index` of the tensor as a double.
double tensor_element(const inferd_tensor *tensor, size_t index);

// How many elements the tensor has.
size_t tensor_count(const inferd_tensor *tensor);

// What the elements of a tensor are like; NaNs count apart and are left out of the rest.
struct tensor_summary {
    double min, max, mean;
    size_t nan_count;
};

// Looks at every element.
struct tensor_summary tensor_summarise(const inferd_tensor *tensor);

// Whether the tensor looks like scores of classes: one row, 2 to 100000 columns, floating point.
bool tensor_is_class_vector(const inferd_tensor *tensor);

// The indices of the `count` largest elements, largest first; fewer where there are fewer. Returns
// how many.
size_t tensor_top(const inferd_tensor *tensor, size_t count, size_t *indices);

#endif
