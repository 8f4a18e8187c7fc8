// SPDX-License-Identifier: Apache-2.0
// Remembers for which shapes and numbers of rows a model could not be built with a history
// (backends/graph/history), so that each step of a session does not try again. Refusals are kept
// for each set of shapes: what one client asks for does not change how the model runs for others.
// A refusal for lack of memory expires.
#ifndef INF_BACKENDS_EXEC_MODEL_HISTORY_REFUSALS_H
#define INF_BACKENDS_EXEC_MODEL_HISTORY_REFUSALS_H

#include "backends/base/thread.h"
#include "backends/graph/history/history.h"
#include "proto/core/shape.h"

// The most refusals of a model. A further one replaces the oldest.
#define INF_HISTORY_REFUSALS_MAX 8
// How long the first refusal for lack of memory holds. If the next attempt lacks memory too, the
// time doubles, at most INF_HISTORY_RETRY_DOUBLINGS times.
#define INF_HISTORY_RETRY_NS        UINT64_C(1000000000)
#define INF_HISTORY_RETRY_DOUBLINGS 6u

// The end of a refusal that does not expire.
#define INF_HISTORY_FOR_EVER UINT64_MAX

struct inf_history_refusals {
    struct inf_mutex mutex; // guards the following members
    struct inf_history_refusal {
        uint64_t shapes;    // hash of the shapes
        uint32_t room;      // the least number of rows that was refused; 0: the entry is unused
        uint64_t until_ns;  // time at which the refusal expires
        uint32_t doublings; // if the refusal expires: how often to double the time of the next one
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
// expired. `now_ns` is the time of inf_clock_ns(). Any thread.
bool inf_history_refusals_have(struct inf_history_refusals *refusals, uint64_t shapes,
                               uint32_t room, uint64_t now_ns);

// Notes with which code a compilation of these shapes for `buffers` ended at the time `now_ns`.
// `buffers.room` is at least 1. Any thread.
//
// Shapes for which the graph is not possible with such buffers (INF_UNSUPPORTED), or that
// contradict the buffers (INF_INVALID), are refused for ever. For one session, other errors are no
// refusal: memory and budgets change, a cancelled compilation says nothing about the graph, and
// INF_RANGE means that the rows are too few, but a refusal would hold for more rows too.
//
// Steps of several sessions can run one by one instead. Therefore every error but a cancellation is
// a refusal for them. A refusal for lack of memory (INF_EXHAUSTED) expires, and a success ends it.
void inf_history_refusals_note(struct inf_history_refusals *refusals, uint64_t shapes,
                               struct inf_history_buffers buffers, enum inf_code code,
                               uint64_t now_ns);

#endif
