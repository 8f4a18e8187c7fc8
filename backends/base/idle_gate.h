// SPDX-License-Identifier: Apache-2.0
// Lets background work run only while no request is served. The work waits until the daemon is
// idle, and stops when a request arrives. A zeroed struct is an idle gate.
#ifndef INF_BACKENDS_BASE_IDLE_GATE_H
#define INF_BACKENDS_BASE_IDLE_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/base/role.h"

// Work that found no idle time for INF_IDLE_GATE_TIMEOUT_NS may continue in short pieces. After
// each piece it pauses INF_IDLE_GATE_BACK_OFF_FACTOR times as long as the piece took, so that fewer
// than one request in a hundred is delayed by it.
#define INF_IDLE_GATE_TIMEOUT_NS      2000000000u
#define INF_IDLE_GATE_BACK_OFF_FACTOR 200u
#define INF_IDLE_GATE_BACK_OFF_MAX_NS 2000000000u

// The daemon counts as idle if no request has been served for this long.
#define INF_IDLE_GATE_QUIET_NS 5000000u

struct inf_idle_gate {
    _Atomic uint32_t busy;      // number of requests that wait or run
    _Atomic uint64_t served_ns; // time when the last request ended
    // Set if a request has arrived since inf_idle_gate_wait_idle(). May be used as the `cancelled`
    // flag of a run.
    atomic_bool interrupted;
    atomic_bool shutting_down; // true: waits return immediately
};

// Counts a request that arrived, and interrupts background work. Any thread.
void inf_idle_gate_begin_request(struct inf_idle_gate *idle_gate);

// Counts a request that is done. Any thread.
void inf_idle_gate_end_request(struct inf_idle_gate *idle_gate);

// Interrupts background work and makes all waits return, now and in the future. Any thread.
void inf_idle_gate_shut_down(struct inf_idle_gate *idle_gate);

enum inf_idle_gate_result {
    INF_IDLE_GATE_IDLE,
    INF_IDLE_GATE_TIMEOUT,   // the daemon was not idle in time
    INF_IDLE_GATE_SHUT_DOWN, // the gate was shut down: background work must end
};

// Clears `interrupted` and waits until the daemon is idle, for at most INF_IDLE_GATE_TIMEOUT_NS.
enum inf_idle_gate_result inf_idle_gate_wait_idle(struct inf_idle_gate *idle_gate) INF_MAY_BLOCK;

// Waits until the daemon is idle, for at most INF_IDLE_GATE_TIMEOUT_NS, or until *stop becomes
// true. Returns true if the daemon is idle. Unlike inf_idle_gate_wait_idle(), it does not clear
// `interrupted`, because another thread uses that flag at the same time.
bool inf_idle_gate_wait_shared(const struct inf_idle_gate *idle_gate,
                               const atomic_bool *stop) INF_MAY_BLOCK;

// Pauses after a piece of work that took `worked_ns` while the daemon was busy. Returns false if
// the gate was shut down.
bool inf_idle_gate_back_off(struct inf_idle_gate *idle_gate, uint64_t worked_ns) INF_MAY_BLOCK;

#endif
