// SPDX-License-Identifier: Apache-2.0
// Deadlines of requests: a heap, and a timer file descriptor that is readable once one has passed,
// whatever the workers are doing. The loop's.
#ifndef INF_DAEMON_POLICY_DEADLINE_H
#define INF_DAEMON_POLICY_DEADLINE_H

#include <stdint.h>

#include "backends/base/role.h"
#include "proto/core/status.h"

// Embedded in what has a deadline.
struct inf_deadline {
    uint64_t at_ns; // of inf_clock_ns(); 0: none
    uint32_t index; // in the heap, from 1; 0: not in it
    uint32_t kind;  // the owner's: tells apart those that one object has
};

struct inf_deadlines;

// The time `timeout_ns` after `from_ns`; 0, none, for a timeout of 0 and for what does not fit the clock.
uint64_t inf_deadline_after(uint64_t from_ns, uint64_t timeout_ns);

// Makes room for `capacity` deadlines at once. *out_deadlines is the caller's to destroy.
enum inf_code inf_deadlines_create(struct inf_deadlines **out_deadlines, uint32_t capacity,
                                   struct inf_error *err) INF_NODISCARD;

// Frees the heap. NULL is fine.
void inf_deadlines_destroy(struct inf_deadlines **deadlines);

// Readable while a deadline may have passed. Owned by the heap.
int inf_deadlines_fd(const struct inf_deadlines *deadlines);

// Puts a deadline in; one with at_ns 0 stays out.
void inf_deadlines_add(struct inf_deadlines *deadlines, struct inf_deadline *deadline) INF_ON_LOOP;

// Takes a deadline out; nothing to do for one that is not in.
void inf_deadlines_remove(struct inf_deadlines *deadlines,
                          struct inf_deadline *deadline) INF_ON_LOOP;

// Takes the next deadline that has passed out, or returns NULL and sets the timer for the one to
// come. Call until NULL each time the descriptor is readable.
struct inf_deadline *inf_deadlines_next(struct inf_deadlines *deadlines) INF_ON_LOOP;

#endif
