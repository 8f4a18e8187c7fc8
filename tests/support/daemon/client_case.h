// SPDX-License-Identifier: Apache-2.0
// A client of a fake daemon, for unit tests of libinferd. Its requests ask for an output of seven
// bytes.
#ifndef INF_TESTS_SUPPORT_DAEMON_CLIENT_CASE_H
#define INF_TESTS_SUPPORT_DAEMON_CLIENT_CASE_H

#include "client/inferd.h"
#include "tests/support/daemon/fake_daemon.h"

// Numbers of the answers that the callback client_case_count() received, by kind.
struct client_answers {
    unsigned ok, failed;
    struct inferd_error last;
};

// Returns a connected client. The caller closes it.
inferd_client *client_case_connect(struct fake_daemon *daemon);

// Returns the input of the model "grow", with *count as its element.
inferd_tensor client_case_tensor(int32_t *count);

// Runs the model "grow", requesting an output of 7 bytes, and waits for the answer.
int client_case_ask(inferd_client *client, uint64_t timeout_ms, struct inferd_error *err);

// A callback for inferd_infer_async(), which adds the answer to the struct client_answers that
// `context` points to.
void client_case_count(void *context, inferd_result *result, const struct inferd_error *err);

// Sends an asynchronous request to the model "grow" for an output of 7 bytes. Its answer is counted
// in `answers`. Returns the stream number of the request.
uint64_t client_case_start(inferd_client *client, struct client_answers *answers);

#endif
