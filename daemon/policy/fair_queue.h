// SPDX-License-Identifier: Apache-2.0
// Who is next: requests that wait for one device, shared out in device time. The user who has had
// least goes first; of that user's requests the most urgent, and among equally urgent ones those of
// the model that has had least. Whoever had nothing waiting for a while neither gains nor loses by
// it. Knows no clock and no lock: the caller has both.
//
// Why least-served-first and not rounds with a quantum: costs differ a hundred thousand fold (30 us to
// seconds), so that any quantum is too long for one model and too short for another. This has the
// same long-term shares and never gives one user two turns while another has had less.
#ifndef INF_DAEMON_POLICY_FAIR_QUEUE_H
#define INF_DAEMON_POLICY_FAIR_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/core/status.h"

enum inf_priority {
    INF_PRIORITY_HIGH,
    INF_PRIORITY_NORMAL,
    INF_PRIORITY_LOW,
    INF_PRIORITY_COUNT
};

// A request that has waited so long counts as one class more urgent, after twice that as two.
#define INF_FAIR_QUEUE_AGING_MS 2000u

struct inf_fair_queue;
struct inf_fair_queue_flow;

// Embedded in what waits.
struct inf_fair_queue_entry {
    // Set before inf_fair_queue_add().
    uint64_t user;
    uint64_t model; // what tells models apart
    enum inf_priority priority;
    uint64_t cost_ns;  // device time that it is expected to take
    uint64_t since_ns; // when it came
    // Private.
    struct inf_fair_queue_flow *flow;
    struct inf_fair_queue_entry *previous, *next;
};

// Makes room for `capacity` entries that wait or run at once. *out_queue is the caller's to destroy.
enum inf_code inf_fair_queue_create(struct inf_fair_queue **out_queue, uint32_t capacity,
                                    struct inf_error *err) INF_NODISCARD;

// Frees it; entries still in it are forgotten. NULL is fine.
void inf_fair_queue_destroy(struct inf_fair_queue **fair_queue);

// An entry begins to wait.
void inf_fair_queue_add(struct inf_fair_queue *fair_queue, struct inf_fair_queue_entry *entry);

// An entry that waits goes away without having run.
void inf_fair_queue_remove(struct inf_fair_queue *fair_queue, struct inf_fair_queue_entry *entry);

// The entry whose turn it is, still waiting; NULL where none waits.
struct inf_fair_queue_entry *inf_fair_queue_next(struct inf_fair_queue *fair_queue,
                                                 uint64_t now_ns);

// An entry that waits begins to run: its user and its model are charged what it is expected to cost.
void inf_fair_queue_begin(struct inf_fair_queue *fair_queue, struct inf_fair_queue_entry *entry);

// An entry has run: the charge becomes what it really took.
void inf_fair_queue_end(struct inf_fair_queue *fair_queue, struct inf_fair_queue_entry *entry,
                        uint64_t took_ns);

// Writes `first`, which waits, and then other waiting entries of its model to `entries`, at most
// `capacity`, and returns how many: those of its user before those of others, urgent ones first.
uint32_t inf_fair_queue_gather(const struct inf_fair_queue *fair_queue,
                               struct inf_fair_queue_entry *first,
                               struct inf_fair_queue_entry **entries, uint32_t capacity);

// Device time of what would be done before a new entry of this user and priority began, as it looks
// now: that of the user's own entries that are at least as urgent times the number of users who wait,
// and no more than that of all that waits.
uint64_t inf_fair_queue_ahead_ns(const struct inf_fair_queue *fair_queue, uint64_t user,
                                 enum inf_priority priority);

// Device time of all that waits.
uint64_t inf_fair_queue_waiting_ns(const struct inf_fair_queue *fair_queue);

#endif
