// SPDX-License-Identifier: Apache-2.0
// The functions of a model, sorted so that lookups are fast.
#ifndef INF_BACKENDS_IMPORT_ONNX_FUNCTIONS_H
#define INF_BACKENDS_IMPORT_ONNX_FUNCTIONS_H

#include "backends/import/onnx/proto.h"

// Sorts the functions of a model for inf_onnx_function_find().
//
// INF_INVALID  two functions have the same domain, name and overload.
enum inf_code inf_onnx_functions_sort(struct inf_onnx_model *model,
                                      struct inf_error *err) INF_NODISCARD;

// Returns the function with this domain, name and overload; NULL if there is none. If `overload` is
// NULL, any overload matches. The time grows with the logarithm of the number of functions.
const struct inf_onnx_function *inf_onnx_function_find(const struct inf_onnx_model *model,
                                                       const char *domain, const char *name,
                                                       const char *overload);

#endif
