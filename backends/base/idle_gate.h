// SPDX-License-Identifier: Apache-2.0
// Whether requests are being served, for work that must not disturb them: it waits until none is, and
// stops when one comes. All zero is calm.
#ifndef INF_BACKENDS_BASE_IDLE_GATE_H
#define INF_BACKENDS_BASE_IDLE_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/base/role.h"

// Whoever finds no calm for so long may go on in small pieces: for each a pause of INF_CALM_PAUSES times
// as long, so that less than one request in a hundred meets it.
#define INF_CALM_PATIENCE_NS  2000000000u
#define INF_CALM_PAUSES       200u
#define INF_CALM_PAUSE_MAX_NS 2000000000u

// For so long nothing may have been served before it counts as calm.
#define INF_CALM_NS 5000000u

struct inf_calm {
    _Atomic uint32_t busy;      // requests that wait or run
    _Atomic uint64_t served_ns; // when the last one ended
    atomic_bool stirred;        // one has come since inf_calm_wait(); may be a run's `cancelled`
    atomic_bool ending;         // nobody is to wait any more
};

// A request has come. Any thread.
void inf_calm_stir(struct inf_calm *calm);

// One is done. Any thread.
void inf_calm_settle(struct inf_calm *calm);

// The end: whoever waits is told, and what runs is stopped. Any thread.
void inf_calm_end(struct inf_calm *calm);

enum inf_calm_answer {
    INF_CALM_NOW,
    INF_CALM_NEVER, // it was waited for in vain
    INF_CALM_ENDED, // nobody is to go on
};

// Waits until nothing has been served for INF_CALM_NS, and takes `stirred` back; at most for
// INF_CALM_PATIENCE_NS.
enum inf_calm_answer inf_calm_wait(struct inf_calm *calm) INF_MAY_BLOCK;

// Waits as inf_calm_wait(), or until `ending` is set, for somebody who leaves `stirred` alone.
void inf_calm_await(const struct inf_calm *calm, const atomic_bool *ending) INF_MAY_BLOCK;

// Pauses after a piece of work of `worked_ns` that was done without calm. False at the end.
bool inf_calm_pause(struct inf_calm *calm, uint64_t worked_ns) INF_MAY_BLOCK;

#endif
