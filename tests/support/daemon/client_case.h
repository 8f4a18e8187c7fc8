// SPDX-License-Identifier: Apache-2.0
// A client of a fake daemon, for unit tests of libinferd. Its requests ask for an output of seven
// bytes.
#ifndef INF_TESTS_SUPPORT_DAEMON_CLIENT_CASE_H
#define INF_TESTS_SUPPORT_DAEMON_CLIENT_CASE_H

#include "client/inferd.h"
#include "tests/support/daemon/fake_daemon.h"

// The answers that client_case_count() has counted.
struct client_answers {
    unsigned ok, failed;
    struct inferd_error last;
};

// Returns a connected client. The caller closes it.
inferd_client *client_case_connect(struct fake_daemon *daemon);

// Returns the input of the model "grow", with *count as its element.
inferd_tensor client_case_tensor(int32_t *count);

// Runs "grow" for 7 bytes and waits for the answer.
int client_case_ask(inferd_client *client, uint64_t timeout_ms, struct inferd_error *err);

// Counts an answer: a callback whose `context` is a struct client_answers.
void client_case_count(void *context, inferd_result *result, const struct inferd_error *err);

// Sends a request for 7 bytes to "grow". The answer is counted in `answers`. Returns the request's
// stream.
uint64_t client_case_start(inferd_client *client, struct client_answers *answers);

#endif
