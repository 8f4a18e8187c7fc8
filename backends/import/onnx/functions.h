// SPDX-License-Identifier: Apache-2.0
// The functions of a model, in an order in which one is found quickly.
#ifndef INF_BACKENDS_IMPORT_ONNX_FUNCTIONS_H
#define INF_BACKENDS_IMPORT_ONNX_FUNCTIONS_H

#include "backends/import/onnx/proto.h"

// Sorts the functions of a model for inf_onnx_function_find().
//
// INF_INVALID  two functions have the same domain, name and overload.
enum inf_code inf_onnx_functions_sort(struct inf_onnx_model *model,
                                      struct inf_error *err) INF_NODISCARD;

// Returns a function of the model; `overload` NULL: any of this domain and name. NULL: there is
// none. Takes time that grows with the logarithm of the number of functions.
const struct inf_onnx_function *inf_onnx_function_find(const struct inf_onnx_model *model,
                                                       const char *domain, const char *name,
                                                       const char *overload);

#endif
