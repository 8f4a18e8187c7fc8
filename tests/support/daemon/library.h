// SPDX-License-Identifier: Apache-2.0
// Calls of libinferd for the models of the fixture's daemon. Every failure in here fails the test.
#ifndef INF_TESTS_SUPPORT_DAEMON_LIBRARY_H
#define INF_TESTS_SUPPORT_DAEMON_LIBRARY_H

#include <stdint.h>

#include "client/inferd.h"

// Returns a client of the daemon on `path`. The caller closes it.
inferd_client *inf_library_connect(const char *path);

// Returns a tensor FP32 [rows, 4] with the caller's elements.
inferd_tensor inf_library_rows(const char *name, int64_t rows, float *elements);

// Runs the model "add" with two tensors of `rows` rows, and checks the answer.
void inf_library_add(inferd_client *client, int64_t rows);

// Returns a request for the model "slow", which takes a second or more on the device ref, with this
// input.
inferd_request inf_library_slow(inferd_tensor *input, float *element);

// Checks that a request fails with this code and reason.
void inf_library_check_failure(inferd_client *client, const inferd_request *request, int code,
                               const char *reason);

// A session of the model add, which keeps its output as its input b, [1,4] (`rank` -1: the model's
// shape).
inferd_session *inf_library_session(inferd_client *client, int rank);

// Adds ones to what such a session has, and checks that it is `sum` then.
void inf_library_step(inferd_client *client, inferd_session *session, float sum);

#endif
