// SPDX-License-Identifier: Apache-2.0
// Threads that send requests while a test does something else. For tests in which no request may
// fail.
#ifndef INF_TESTS_SUPPORT_DAEMON_CROWD_H
#define INF_TESTS_SUPPORT_DAEMON_CROWD_H

#include <pthread.h>
#include <stdatomic.h>

struct inf_crowd {
    const char *socket;
    unsigned pause_ms; // between an answer and the next request
    atomic_bool stop;
    atomic_ulong answers;
    pthread_t thread;
};

// Starts a thread that sends requests to the fixture's model "add" until inf_crowd_stop(). Each
// answer must arrive, be correct, be computed in fp32, and name its device. `socket` must stay
// valid until inf_crowd_stop().
void inf_crowd_start(struct inf_crowd *crowd, const char *socket, unsigned pause_ms);

// Waits for `count` more answers. Fails after 20 s.
void inf_crowd_await(struct inf_crowd *crowd, unsigned long count);

// Stops the thread.
void inf_crowd_stop(struct inf_crowd *crowd);

#endif
