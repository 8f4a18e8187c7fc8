// SPDX-License-Identifier: Apache-2.0
// Which of a model's constants are in memory as they are. Compiling needs all of them; between
// compilations those that every executable has in a form of its own may be given up, and are made
// again from that form before the next.
#ifndef INF_BACKENDS_EXEC_MODEL_WEIGHT_RESIDENCY_H
#define INF_BACKENDS_EXEC_MODEL_WEIGHT_RESIDENCY_H

#include "backends/base/thread.h"
#include "backends/device/device.h"
#include "backends/exec/constants.h"

// Embedded in a model.
struct inf_weight_residency {
    struct inf_mutex mutex; // guards all below
    struct inf_cond changed;
    uint32_t users;         // that need every constant
    bool busy;              // one thread is making bytes, or giving them up
    bool gives_up;          // inf_weight_residency_allow_eviction()
    struct inf_blob **gone; // a reference each
    size_t gone_count;
    struct inf_device_held held; // constants, as they are in memory now
    struct inf_form_cost forms;  // that stand in for the others, or are beside them
    struct inf_device *device;   // a reference; that `held` is counted at, or NULL
};

// Prepares one where every constant is in memory.
void inf_weight_residency_init(struct inf_weight_residency *residency);

// Releases the state. No compilation or review may be in progress.
void inf_weight_residency_fini(struct inf_weight_residency *residency);

// Makes every constant whole again, and keeps it so until inf_weight_residency_release().
//
// INF_EXHAUSTED  memory.
enum inf_code inf_weight_residency_acquire(struct inf_weight_residency *residency,
                                           struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Gives back what inf_weight_residency_acquire() gave.
void inf_weight_residency_release(struct inf_weight_residency *residency);

// From now on inf_weight_residency_review() gives up what it can.
void inf_weight_residency_allow_eviction(struct inf_weight_residency *residency);

// Counts constants at `device` (NULL: nowhere) instead of where they were.
void inf_weight_residency_charge(struct inf_weight_residency *residency, struct inf_device *device);

// Begins a review: no compilation or other review runs until inf_weight_residency_end_review().
// Returns false if a compilation is in progress; that one asks for a review when it is done.
bool inf_weight_residency_begin_review(struct inf_weight_residency *residency)
    INF_NODISCARD INF_MAY_BLOCK;

// Ends a review.
void inf_weight_residency_end_review(struct inf_weight_residency *residency);

// During a review: gives up what may be, and counts what is left. `constants` are all of the model,
// with their uses, as many tensors as `tensors` says.
void inf_weight_residency_review(struct inf_weight_residency *residency,
                                 struct inf_constants *constants, uint32_t tensors) INF_MAY_BLOCK;

// What is in memory, and what other forms take. Any thread.
struct inf_device_held inf_weight_residency_memory(struct inf_weight_residency *residency,
                                                   struct inf_form_cost *forms);

#endif
