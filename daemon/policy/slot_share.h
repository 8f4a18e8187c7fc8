// SPDX-License-Identifier: Apache-2.0
// Which model may start a run on a device whose slots several models share. A model may have a
// limit of runs at the same time, and it may reserve slots, which runs of other models leave free.
// The functions read no clock and take no lock; the caller passes the time and holds a lock.
#ifndef INF_DAEMON_POLICY_SLOT_SHARE_H
#define INF_DAEMON_POLICY_SLOT_SHARE_H

#include <stdbool.h>
#include <stdint.h>

// The most models with a limit or a reservation that one device remembers. If there are more, the
// one whose last request is oldest is forgotten, unless it runs or waits.
#define INF_SLOT_SHARE_MODELS 32u

// A reservation ends if the model had no request for this long, so that a model that is no longer
// used, or was unloaded, holds no slot.
#define INF_SLOT_SHARE_IDLE_MS 60000u

// The settings of a model. All zero: no limit, and no reservation.
struct inf_slot_limits {
    uint32_t runs_max; // most runs at the same time; 0: no limit
    uint32_t reserved; // slots that runs of other models leave free
};

// The jobs of a model. A run has one job or, as a batch, several.
struct inf_slot_share_jobs {
    uint32_t waiting, running;
    uint64_t waiting_ns;  // sum of the expected device times of the waiting jobs
    uint64_t ends_sum_ns; // sum of the expected end times of the running jobs
};

// A model that has limits, and its runs in progress.
struct inf_slot_share_model {
    uint64_t model; // identifies the model
    struct inf_slot_limits limits;
    uint32_t running;
    uint64_t asked_ns; // time of its last request
    struct inf_slot_share_jobs jobs;
};

// The slots of one device. Zero-initialise, then set `slots`.
struct inf_slot_share {
    uint32_t slots;   // runs that the device can have at the same time
    uint32_t running; // runs in progress, of all models
    uint32_t count;   // elements of `models` in use
    struct inf_slot_share_model models[INF_SLOT_SHARE_MODELS];
};

// Records that a request for the model arrived, and the limits of the model.
void inf_slot_share_note(struct inf_slot_share *share, uint64_t model,
                         const struct inf_slot_limits *limits, uint64_t now_ns);

// Returns true if a run of the model may start now. If no run is in progress, the result is true
// for every model, so some request always makes progress.
bool inf_slot_share_may_begin(const struct inf_slot_share *share, uint64_t model, uint64_t now_ns);

// Returns how many runs of the model may start now, if no other model starts one.
uint32_t inf_slot_share_count_startable(const struct inf_slot_share *share, uint64_t model,
                                        uint64_t now_ns);

// Returns how many slots a model of the share has reserved; 0 if its reservation has ended.
uint32_t inf_slot_share_count_reserved(const struct inf_slot_share *share,
                                       const struct inf_slot_share_model *entry, uint64_t now_ns);

// Counts a job of the model while it waits, with its expected device time.
void inf_slot_share_add_waiting(struct inf_slot_share *share, uint64_t model, uint64_t cost_ns);
void inf_slot_share_remove_waiting(struct inf_slot_share *share, uint64_t model, uint64_t cost_ns);

// Counts a job of the model while it runs, with the time at which it is expected to end.
void inf_slot_share_begin_job(struct inf_slot_share *share, uint64_t model, uint64_t end_ns);
void inf_slot_share_end_job(struct inf_slot_share *share, uint64_t model, uint64_t end_ns);

// Counts a run of the model, from its start to its end.
void inf_slot_share_begin(struct inf_slot_share *share, uint64_t model);
void inf_slot_share_end(struct inf_slot_share *share, uint64_t model);

#endif
