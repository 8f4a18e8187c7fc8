// SPDX-License-Identifier: Apache-2.0
// Predicts how long a job waits for a slot of a device, given the limits and reservations of the
// models that share the slots. The functions read no clock and take no lock; the caller passes the
// time and holds a lock.
#ifndef INF_DAEMON_POLICY_WAIT_ESTIMATE_H
#define INF_DAEMON_POLICY_WAIT_ESTIMATE_H

#include "daemon/policy/slot_share.h"

// The work of a device, of all models.
struct inf_wait_work {
    uint32_t queued;     // jobs that wait
    uint64_t ahead_ns;   // expected device time of the waiting jobs that go first
    uint64_t waiting_ns; // expected device time of all waiting jobs
    uint64_t running_ns; // remaining device time of the running jobs
};

// Returns true if a run of the model that arrives now could start at once.
bool inf_wait_estimate_starts_at_once(const struct inf_slot_share *share, uint64_t model,
                                      uint32_t queued, uint64_t now_ns);

// Returns the expected time until a job of the model that arrives now would start; 0 if a slot is
// free for it.
uint64_t inf_wait_estimate_start_ns(const struct inf_slot_share *share, uint64_t model,
                                    const struct inf_wait_work *work, uint64_t now_ns);

// Returns the expected time until all waiting and running jobs are done.
uint64_t inf_wait_estimate_drain_ns(const struct inf_slot_share *share,
                                    const struct inf_wait_work *work, uint64_t now_ns);

#endif
