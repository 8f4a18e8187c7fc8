// SPDX-License-Identifier: Apache-2.0
// Remembers for which shapes and numbers of rows a model could not be built with a history
// (backends/graph/history), so that each step of a session does not try again. Refusals are kept
// for each set of shapes: what one client asks for does not change how the model runs for others.
// A refusal for want of memory passes.
#ifndef INF_BACKENDS_EXEC_MODEL_HISTORY_REFUSALS_H
#define INF_BACKENDS_EXEC_MODEL_HISTORY_REFUSALS_H

#include "backends/base/thread.h"
#include "proto/core/shape.h"

// The most refusals of a model. A further one replaces the oldest.
#define INF_HISTORY_REFUSALS_MAX 8
// How long the first refusal for want of memory holds. Each further one in a row holds twice as
// long as the one before, at most INF_HISTORY_RETRY_DOUBLINGS times.
#define INF_HISTORY_RETRY_NS        UINT64_C(1000000000)
#define INF_HISTORY_RETRY_DOUBLINGS 6u

// A refusal that does not pass.
#define INF_HISTORY_FOR_EVER UINT64_MAX

struct inf_history_refusals {
    struct inf_mutex mutex; // guards the following members
    struct inf_history_refusal {
        uint64_t shapes;   // hash of the shapes
        uint32_t room;     // the least number of rows that was refused; 0: the entry is unused
        uint64_t until_ns; // time at which the refusal passes
        uint32_t in_row;   // refusals in a row that pass
    } entries[INF_HISTORY_REFUSALS_MAX];
    uint32_t next; // the entry that the next refusal replaces
};

// Initialises an empty set, which is embedded in the model.
void inf_history_refusals_init(struct inf_history_refusals *refusals);

// Releases the mutex of the set, which the model embeds.
void inf_history_refusals_fini(struct inf_history_refusals *refusals);

// Returns a number that stands for the shapes of `count` inputs and a number of sessions.
uint64_t inf_history_refusals_hash(const struct inf_shape *shapes, uint32_t count,
                                   uint32_t sessions);

// Returns true if these shapes were refused for `room` rows or less, and the refusal has not
// passed. Any thread.
bool inf_history_refusals_have(struct inf_history_refusals *refusals, uint64_t shapes,
                               uint32_t room, uint64_t now_ns);

// Notes that these shapes were refused for `room` rows, which is at least 1. Any thread.
void inf_history_refusals_add(struct inf_history_refusals *refusals, uint64_t shapes,
                              uint32_t room);

// Notes that there was no memory for these shapes with `room` rows, which is at least 1. Any
// thread.
void inf_history_refusals_add_passing(struct inf_history_refusals *refusals, uint64_t shapes,
                                      uint32_t room, uint64_t now_ns);

// Forgets that there was no memory for these shapes with `room` rows or less. Any thread.
void inf_history_refusals_forget(struct inf_history_refusals *refusals, uint64_t shapes,
                                 uint32_t room);

#endif
