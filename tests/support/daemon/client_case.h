// SPDX-License-Identifier: Apache-2.0
// A client of a fake daemon, which asks it for seven bytes: for tests of the client.
#ifndef INF_TESTS_SUPPORT_DAEMON_CLIENT_CASE_H
#define INF_TESTS_SUPPORT_DAEMON_CLIENT_CASE_H

#include "client/inferd.h"
#include "tests/support/daemon/fake_daemon.h"

// What came to client_case_count().
struct client_answers {
    unsigned ok, failed;
    struct inferd_error last;
};

// A client that is connected.
inferd_client *client_case_connect(struct fake_daemon *daemon);

// The input of the model "grow", which points at *count.
inferd_tensor client_case_tensor(int32_t *count);

// Runs "grow" for 7 bytes.
int client_case_ask(inferd_client *client, uint64_t timeout_ms, struct inferd_error *err);

// Takes an answer; `context` is a struct client_answers.
void client_case_count(void *context, inferd_result *result, const struct inferd_error *err);

// Starts "grow" for 7 bytes, whose answer goes to `answers`; its stream.
uint64_t client_case_start(inferd_client *client, struct client_answers *answers);

#endif
