// SPDX-License-Identifier: Apache-2.0
// Checks of a request that need no knowledge of its model.
#ifndef INF_CLIENT_LIB_INFER_REQUEST_CHECK_H
#define INF_CLIENT_LIB_INFER_REQUEST_CHECK_H

#include "client/inferd.h"
#include "proto/core/status.h"

// Checks whether a request is well-formed. Called before any other work is done for the request.
//
// INF_INVALID  (BAD_PARAMETER, SIZE_MISMATCH, REGION_BOUNDS) the text says what is wrong.
enum inf_code inf_client_request_check(const inferd_client *client, const inferd_request *request,
                                       struct inf_error *err) INF_NODISCARD;

#endif
