// SPDX-License-Identifier: Apache-2.0
// Whether requests are being served, for work that must not disturb them: it waits until none is, and
// stops when one comes. All zero is calm.
#ifndef INF_BACKENDS_BASE_IDLE_GATE_H
#define INF_BACKENDS_BASE_IDLE_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/base/role.h"

// Whoever finds no calm for so long may go on in small pieces: for each a pause of INF_IDLE_GATE_BACK_OFF_FACTOR times
// as long, so that less than one request in a hundred meets it.
#define INF_IDLE_GATE_TIMEOUT_NS      2000000000u
#define INF_IDLE_GATE_BACK_OFF_FACTOR 200u
#define INF_IDLE_GATE_BACK_OFF_MAX_NS 2000000000u

// For so long nothing may have been served before it counts as calm.
#define INF_IDLE_GATE_QUIET_NS 5000000u

struct inf_idle_gate {
    _Atomic uint32_t busy;      // requests that wait or run
    _Atomic uint64_t served_ns; // when the last one ended
    atomic_bool
        interrupted; // one has come since inf_idle_gate_wait_idle(); may be a run's `cancelled`
    atomic_bool shutting_down; // nobody is to wait any more
};

// A request has come. Any thread.
void inf_idle_gate_begin_request(struct inf_idle_gate *idle_gate);

// One is done. Any thread.
void inf_idle_gate_end_request(struct inf_idle_gate *idle_gate);

// The end: whoever waits is told, and what runs is stopped. Any thread.
void inf_idle_gate_shut_down(struct inf_idle_gate *idle_gate);

enum inf_idle_gate_result {
    INF_IDLE_GATE_IDLE,
    INF_IDLE_GATE_TIMEOUT,   // it was waited for in vain
    INF_IDLE_GATE_SHUT_DOWN, // nobody is to go on
};

// Waits until nothing has been served for INF_IDLE_GATE_QUIET_NS, and takes `interrupted` back; at most for
// INF_IDLE_GATE_TIMEOUT_NS.
enum inf_idle_gate_result inf_idle_gate_wait_idle(struct inf_idle_gate *idle_gate) INF_MAY_BLOCK;

// Waits as inf_idle_gate_wait_idle(), or until `ending` is set, for somebody who leaves `interrupted` alone.
void inf_idle_gate_wait_shared(const struct inf_idle_gate *idle_gate,
                               const atomic_bool *ending) INF_MAY_BLOCK;

// Pauses after a piece of work of `worked_ns` that was done without calm. False at the end.
bool inf_idle_gate_back_off(struct inf_idle_gate *idle_gate, uint64_t worked_ns) INF_MAY_BLOCK;

#endif
