// SPDX-License-Identifier: Apache-2.0
// The order of requests that wait for one device, shared fairly by device time. The user who has
// used the least goes first; of that user's requests the most urgent one, and among equally urgent
// ones that of the model that has used the least. A user who was idle neither gains nor loses. Uses
// no clock and no lock: the caller provides both.
//
// Least-served-first is used instead of rounds with a quantum because costs differ by a factor of
// 100,000 (30 us to seconds): any quantum is too long for one model and too short for another. The
// long-term shares are the same, and one user never runs twice while another one has used less.
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

// A request that has waited this long counts as one class more urgent; after twice that as two.
#define INF_FAIR_QUEUE_AGING_MS 2000u

struct inf_fair_queue;
struct inf_fair_queue_flow;

// Embedded in what is queued.
struct inf_fair_queue_entry {
    // Set before inf_fair_queue_add().
    uint64_t user;
    uint64_t model; // identifies the model
    enum inf_priority priority;
    uint64_t cost_ns;  // expected device time
    uint64_t since_ns; // time of arrival
    // Private.
    struct inf_fair_queue_flow *flow;
    struct inf_fair_queue_entry *previous, *next;
};

// Creates a queue with room for `capacity` entries that wait or run. *out_queue is the caller's to
// destroy.
enum inf_code inf_fair_queue_create(struct inf_fair_queue **out_queue, uint32_t capacity,
                                    struct inf_error *err) INF_NODISCARD;

// Frees the queue; entries still in it are forgotten. NULL is allowed.
void inf_fair_queue_destroy(struct inf_fair_queue **fair_queue);

// Adds an entry, which waits from then on.
void inf_fair_queue_add(struct inf_fair_queue *fair_queue, struct inf_fair_queue_entry *entry);

// Removes a waiting entry that will not run.
void inf_fair_queue_remove(struct inf_fair_queue *fair_queue, struct inf_fair_queue_entry *entry);

// Returns the entry that goes next, which keeps waiting; NULL if none waits.
struct inf_fair_queue_entry *inf_fair_queue_next(struct inf_fair_queue *fair_queue,
                                                 uint64_t now_ns);

// Starts a waiting entry: its user and its model are charged the expected cost.
void inf_fair_queue_begin(struct inf_fair_queue *fair_queue, struct inf_fair_queue_entry *entry);

// Ends a running entry: the charge is corrected to `took_ns`.
void inf_fair_queue_end(struct inf_fair_queue *fair_queue, struct inf_fair_queue_entry *entry,
                        uint64_t took_ns);

// Writes `first`, which waits, and then other waiting entries of its model to `entries`, at most
// `capacity`, and returns their number. Entries of its user come before those of others, and urgent
// ones come first.
uint32_t inf_fair_queue_gather(const struct inf_fair_queue *fair_queue,
                               struct inf_fair_queue_entry *first,
                               struct inf_fair_queue_entry **entries, uint32_t capacity);

// Estimates the device time that is spent before a new entry of this user and priority would start:
// the time of the user's own entries that are at least as urgent, times the number of waiting
// users, but at most the time of all waiting entries.
uint64_t inf_fair_queue_ahead_ns(const struct inf_fair_queue *fair_queue, uint64_t user,
                                 enum inf_priority priority);

// Returns the expected device time of all waiting entries.
uint64_t inf_fair_queue_waiting_ns(const struct inf_fair_queue *fair_queue);

#endif
