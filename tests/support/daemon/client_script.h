// SPDX-License-Identifier: Apache-2.0
// A fake daemon that follows a script, and a client of it, for unit tests of requests that are sent
// again: the daemon refuses, holds or answers each request as the script says, and notes when it
// came.
#ifndef INF_TESTS_SUPPORT_DAEMON_CLIENT_SCRIPT_H
#define INF_TESTS_SUPPORT_DAEMON_CLIENT_SCRIPT_H

#include "tests/support/daemon/client_case.h"

#define CLIENT_SCRIPT_ARRIVALS 128
#define CLIENT_SCRIPT_NEVER_MS 60000 // longer than any test

// What the fake daemon does with a request.
enum client_action {
    CLIENT_REFUSE,
    CLIENT_ANSWER,
    CLIENT_HOLD, // refuse when the client cancels it
    CLIENT_HANG_UP,
    CLIENT_REFUSE_AND_HANG_UP,
    CLIENT_ANSWER_AND_GO_AWAY,
};

// The daemon handles request i by actions[i] if i < action_count, and later ones by CLIENT_ANSWER.
struct client_script {
    enum client_action actions[CLIENT_SCRIPT_ARRIVALS];
    uint32_t action_count;
    struct inf_status refusal;
    // The daemon writes these members for each request. A test reads element i when `arrived` is
    // greater than i.
    atomic_uint arrived;
    uint64_t times_ns[CLIENT_SCRIPT_ARRIVALS], timeouts_ns[CLIENT_SCRIPT_ARRIVALS];
    int32_t numbers[CLIENT_SCRIPT_ARRIVALS]; // the input
};

// Refusals. The queue is full: the client may try again after 1 ms. The model is loading: after
// 10 ms.
extern const struct inf_status client_script_queue_full, client_script_loading;

// Adds a request to those that have arrived. Called on the thread of the fake daemon.
void client_script_note_arrival(struct client_script *script, const struct fake_frame *frame);

// Starts a fake daemon that takes `connections` connections, and connects a client that sends
// requests again for `retry_ms`. `credit` is the number of requests that may be in flight; 0: as
// fake_daemon.h says.
inferd_client *client_script_start(struct client_script *script, uint32_t connections,
                                   uint32_t credit, uint64_t retry_ms,
                                   struct fake_daemon **out_daemon);

// Closes the client, and waits for the daemon, which must have had all its connections.
void client_script_stop(inferd_client *client, struct fake_daemon *daemon);

// Starts an asynchronous request to the model "grow" with `number` as input; timeout_ms 0: no
// deadline. Returns its stream number.
uint64_t client_script_send(inferd_client *client, int32_t number, uint64_t timeout_ms,
                            struct client_answers *answers);

// Runs the client until the daemon has received `count` requests.
void client_script_run_until_arrived(inferd_client *client, struct client_script *script,
                                     unsigned count);

// Runs the client until `count` requests are answered.
void client_script_run_until_answered(inferd_client *client, struct client_answers *answers,
                                      unsigned count);

#endif
