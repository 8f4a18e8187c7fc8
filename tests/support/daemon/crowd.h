// SPDX-License-Identifier: Apache-2.0
// Somebody who asks while a test does something else: for tests that no request may fail meanwhile.
#ifndef INF_TESTS_SUPPORT_DAEMON_CROWD_H
#define INF_TESTS_SUPPORT_DAEMON_CROWD_H

#include <pthread.h>
#include <stdatomic.h>

struct inf_crowd {
    const char *socket;
    unsigned pause_ms; // between an answer and the next question
    atomic_bool stop;
    atomic_ulong answers;
    pthread_t thread;
};

// Asks the fixture's model add for 1 + 2 and so on, on a thread of its own, until inf_crowd_stop(): every
// answer has to be there, right, in fp32, and name its device. `socket` outlives it.
void inf_crowd_start(struct inf_crowd *crowd, const char *socket, unsigned pause_ms);

// Waits until there are `count` more answers; fails after 20 s.
void inf_crowd_await(struct inf_crowd *crowd, unsigned long count);

// Ends it.
void inf_crowd_stop(struct inf_crowd *crowd);

#endif
