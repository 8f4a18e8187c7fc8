// SPDX-License-Identifier: Apache-2.0
// Tensors as text: shapes, summaries of elements, best classes.
#ifndef INF_CLIENT_INFERCTL_TENSOR_TEXT_H
#define INF_CLIENT_INFERCTL_TENSOR_TEXT_H

#include <jansson.h>
#include <stdbool.h>

#include "client/inferd.h"

#define TENSOR_SHAPE_TEXT 128

// Writes the shape, such as "[1,128,128,3]", to `text` and returns `text`. A dimension of any size
// becomes "?".
const char *tensor_shape_text(const inferd_tensor *tensor, char text[TENSOR_SHAPE_TEXT]);

// Returns the shape as an array, with null for dimensions of any size.
json_t *tensor_shape_json(const inferd_tensor *tensor);

// Returns element `index` of the tensor.
double tensor_element(const inferd_tensor *tensor, size_t index);

// Returns the number of elements of the tensor.
size_t tensor_count(const inferd_tensor *tensor);

// Statistics of the elements of a tensor. NaNs are counted separately and excluded from the other
// values.
struct tensor_summary {
    double min, max, mean;
    size_t nan_count;
};

// Computes the statistics of all elements.
struct tensor_summary tensor_summarise(const inferd_tensor *tensor);

// Returns whether the tensor may be the scores of classes: floating point, with one row and 2 to
// 100000 columns.
bool tensor_is_class_vector(const inferd_tensor *tensor);

// Sets indices[] to the positions of the `count` largest elements, the largest first. If the tensor
// has fewer elements, all are returned. Returns the number of indices.
size_t tensor_top(const inferd_tensor *tensor, size_t count, size_t *indices);

#endif
