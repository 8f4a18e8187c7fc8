// SPDX-License-Identifier: Apache-2.0
// Checks of a request against the description of its model.
#ifndef INF_CLIENT_LIB_INFER_MODEL_CHECK_H
#define INF_CLIENT_LIB_INFER_MODEL_CHECK_H

#include "client/inferd.h"
#include "proto/core/status.h"

// Checks a request against a description.
//
// INF_INVALID  (TENSOR_UNKNOWN, TENSOR_MISSING, DTYPE_MISMATCH, SHAPE_MISMATCH) the text names the
//              tensor, its actual type or shape, and the one that the model requires.
enum inf_code inf_client_model_check_info(const inferd_request *request,
                                          const inferd_model_info *info,
                                          struct inf_error *err) INF_NODISCARD;

// Checks a request as inf_client_model_check_info() does, against the description in the metadata
// cache. Returns INF_OK if the cache has no description of the model.
enum inf_code inf_client_model_check_cached(inferd_client *client, const inferd_request *request,
                                            struct inf_error *err) INF_NODISCARD;

#endif
