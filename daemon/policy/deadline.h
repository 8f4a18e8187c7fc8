// SPDX-License-Identifier: Apache-2.0
// Deadlines of requests: a heap, and a timer descriptor that becomes readable when a deadline
// passes, even if all workers are busy. Used by the loop only.
#ifndef INF_DAEMON_POLICY_DEADLINE_H
#define INF_DAEMON_POLICY_DEADLINE_H

#include <stdint.h>

#include "backends/base/role.h"
#include "proto/core/status.h"

// One deadline; embedded in the object that has to be done by then.
struct inf_deadline {
    uint64_t at_ns; // time of the deadline on the clock of inf_clock_ns(); 0: no deadline
    uint32_t index; // index of this deadline in the heap, from 1; 0: it is not in the heap
    uint32_t kind;  // lets the owner distinguish several deadlines of one object
};

struct inf_deadlines;

// Returns the time `timeout_ns` after `from_ns`. Returns 0 (no deadline) if the timeout is 0 or the
// sum exceeds the range of the clock.
uint64_t inf_deadline_after(uint64_t from_ns, uint64_t timeout_ns);

// Creates a heap with room for `capacity` deadlines. The caller destroys *out_deadlines.
enum inf_code inf_deadlines_create(struct inf_deadlines **out_deadlines, uint32_t capacity,
                                   struct inf_error *err) INF_NODISCARD;

// Frees the heap. NULL is allowed.
void inf_deadlines_destroy(struct inf_deadlines **deadlines);

// Returns a descriptor, owned by the heap, that becomes readable when a deadline may have passed.
int inf_deadlines_fd(const struct inf_deadlines *deadlines);

// Adds a deadline. If at_ns is 0, nothing is added.
void inf_deadlines_add(struct inf_deadlines *deadlines, struct inf_deadline *deadline) INF_ON_LOOP;

// Removes a deadline. Does nothing if it is not in the heap.
void inf_deadlines_remove(struct inf_deadlines *deadlines,
                          struct inf_deadline *deadline) INF_ON_LOOP;

// Removes and returns the next deadline that has passed. If none has passed, sets the timer for the
// earliest deadline and returns NULL. Each time the descriptor is readable, the caller repeats this
// call until it returns NULL.
struct inf_deadline *inf_deadlines_next(struct inf_deadlines *deadlines) INF_ON_LOOP;

#endif
