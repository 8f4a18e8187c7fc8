// SPDX-License-Identifier: Apache-2.0
// Calls of libinferd for the models of the fixture's daemon. Every failure in here fails the test.
#ifndef INF_TESTS_SUPPORT_DAEMON_LIBRARY_H
#define INF_TESTS_SUPPORT_DAEMON_LIBRARY_H

#include <stdint.h>

#include "client/inferd.h"

// Returns a client that is connected to the daemon on `path`. The caller closes the client.
inferd_client *inf_library_connect(const char *path);

// Returns a tensor FP32 [rows, 4] that refers to the caller's elements.
inferd_tensor inf_library_rows(const char *name, int64_t rows, float *elements);

// Runs the model "add" with two tensors of `rows` rows, and checks the answer.
void inf_library_add(inferd_client *client, int64_t rows);

// Returns a request for the model "slow" with this input. The model runs for a second or more on
// the reference device.
inferd_request inf_library_slow(inferd_tensor *input, float *element);

// Checks that a request fails with this code and reason.
void inf_library_check_failure(inferd_client *client, const inferd_request *request, int code,
                               const char *reason);

// Opens a session of the model add. The session keeps the model's output and passes it as input b,
// [1,4], of the next step. If `rank` is -1, the state has the shape that the model declares.
inferd_session *inf_library_session(inferd_client *client, int rank);

// Runs the next step of a session that inf_library_session() opened: adds 1 to each element of the
// state, and checks that each element is `sum` afterwards.
void inf_library_step(inferd_client *client, inferd_session *session, float sum);

#endif
