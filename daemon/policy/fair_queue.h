// SPDX-License-Identifier: Apache-2.0
// The order of requests that wait for one device, shared fairly by device time. The user who has
// used the least device time goes first. Among the requests of that user the most urgent one goes
// first, and among equally urgent requests the one whose model has used the least. A user who was
// idle neither gains nor loses. The functions read no clock and take no lock; the caller passes the
// time and holds a lock.
//
// The user with the least use goes first, instead of rounds with a quantum, because costs differ by
// a factor of 100,000 (30 us to seconds): any quantum is too long for one model and too short for
// another. The long-term shares are the same, and one user never runs twice while another waiting
// user has used less.
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

// A request that has waited this long counts as one priority class more urgent. After twice this
// time it counts as two classes more urgent.
#define INF_FAIR_QUEUE_AGING_MS 2000u

struct inf_fair_queue;
struct inf_fair_queue_flow;

// A request in a fair queue. Embedded in the object that is queued.
struct inf_fair_queue_entry {
    // The caller sets `user` and the fields below it before inf_fair_queue_add().
    uint64_t user;
    uint64_t model; // number that identifies the model of the request
    enum inf_priority priority;
    uint64_t cost_ns;  // expected device time of the request
    uint64_t since_ns; // time at which the request arrived
    // The fields from `flow` on are used by the fair queue only.
    struct inf_fair_queue_flow *flow;
    struct inf_fair_queue_entry *previous, *next;
};

// Creates a queue with room for `capacity` entries that wait or run. The caller destroys
// *out_queue.
enum inf_code inf_fair_queue_create(struct inf_fair_queue **out_queue, uint32_t capacity,
                                    struct inf_error *err) INF_NODISCARD;

// Frees the queue. Entries that are still in it are not touched. NULL is allowed.
void inf_fair_queue_destroy(struct inf_fair_queue **fair_queue);

// Adds an entry, which waits from then on.
void inf_fair_queue_add(struct inf_fair_queue *fair_queue, struct inf_fair_queue_entry *entry);

// Removes a waiting entry that will not run.
void inf_fair_queue_remove(struct inf_fair_queue *fair_queue, struct inf_fair_queue_entry *entry);

// Decides which entries may run. `allows` is called with `context`, a model, and the present time.
struct inf_fair_queue_filter {
    bool (*allows)(const void *context, uint64_t model, uint64_t now_ns);
    const void *context;
    bool skips_low; // entries for which inf_fair_queue_is_low() returns true must not run
};

// Returns true if the entry has low priority and has not waited long enough to count as more
// urgent.
bool inf_fair_queue_is_low(const struct inf_fair_queue_entry *entry, uint64_t now_ns);

// Returns the entry that should run next, without removing it; NULL if no entry waits that
// the filter allows. `filter` may be NULL, which allows all models.
struct inf_fair_queue_entry *inf_fair_queue_next(struct inf_fair_queue *fair_queue,
                                                 const struct inf_fair_queue_filter *filter,
                                                 uint64_t now_ns);

// Starts a waiting entry: charges its user and its model the expected cost.
void inf_fair_queue_begin(struct inf_fair_queue *fair_queue, struct inf_fair_queue_entry *entry);

// Ends a running entry: corrects the charge of its user and model to `took_ns`.
void inf_fair_queue_end(struct inf_fair_queue *fair_queue, struct inf_fair_queue_entry *entry,
                        uint64_t took_ns);

// Writes the waiting entry `first`, and then other waiting entries of the same model, to `entries`,
// at most `capacity`. Returns their number. Entries of the same user come before those of other
// users, and urgent entries come first.
uint32_t inf_fair_queue_gather(const struct inf_fair_queue *fair_queue,
                               struct inf_fair_queue_entry *first,
                               struct inf_fair_queue_entry **entries, uint32_t capacity);

// Estimates the device time that is used before a new entry of this user and priority would start.
// The estimate is the time of the user's own entries that are at least as urgent, times the number
// of waiting users, but at most the time of all waiting entries.
uint64_t inf_fair_queue_ahead_ns(const struct inf_fair_queue *fair_queue, uint64_t user,
                                 enum inf_priority priority);

// Returns the expected device time of all waiting entries.
uint64_t inf_fair_queue_waiting_ns(const struct inf_fair_queue *fair_queue);

#endif
