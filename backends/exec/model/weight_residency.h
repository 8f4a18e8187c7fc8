// SPDX-License-Identifier: Apache-2.0
// Decides which constants of a model have their bytes in memory. Compiling needs the bytes of all
// constants. Between compilations, the bytes of a constant may be freed if every executable has the
// constant in a packed form. They are restored from that form before the next compilation.
#ifndef INF_BACKENDS_EXEC_MODEL_WEIGHT_RESIDENCY_H
#define INF_BACKENDS_EXEC_MODEL_WEIGHT_RESIDENCY_H

#include "backends/base/thread.h"
#include "backends/device/device.h"
#include "backends/exec/constants.h"

// Records which constants of one model are in memory. Embedded in the model.
struct inf_weight_residency {
    struct inf_mutex mutex; // guards the following members
    struct inf_cond changed;
    uint32_t users;         // number of compilations that need all constants
    bool busy;              // true: a thread is restoring or freeing bytes
    bool gives_up;          // true: constants may be evicted
    struct inf_blob **gone; // evicted blobs, each a counted reference
    size_t gone_count;
    struct inf_device_held held; // amount of memory of the constants that have their bytes
    struct inf_form_cost forms;  // memory of the packed forms of all constants, evicted or not
    struct inf_device *device;   // device for which `held` is counted, a counted reference; or NULL
};

// Initialises the state. All constants are in memory.
void inf_weight_residency_init(struct inf_weight_residency *residency);

// Releases the state. No compilation or review may be in progress.
void inf_weight_residency_fini(struct inf_weight_residency *residency);

// Restores the bytes of all constants, and keeps them until inf_weight_residency_release().
//
// INF_EXHAUSTED  memory.
enum inf_code inf_weight_residency_acquire(struct inf_weight_residency *residency,
                                           struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Keeps constants as they are until inf_weight_residency_release(): those that have their bytes
// keep them, and evicted ones are not restored.
void inf_weight_residency_hold(struct inf_weight_residency *residency) INF_MAY_BLOCK;

// Adds the constants of a graph and its subgraphs that are evicted already, because they were read
// from a file in another form.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_weight_residency_add_evicted(struct inf_weight_residency *residency,
                                               const struct inf_graph *graph,
                                               struct inf_error *err) INF_NODISCARD;

// Ends the use of constants that inf_weight_residency_acquire() or inf_weight_residency_hold()
// began. After the last such call, constants may be evicted again.
void inf_weight_residency_release(struct inf_weight_residency *residency);

// Allows inf_weight_residency_review() to evict constants from now on.
void inf_weight_residency_allow_eviction(struct inf_weight_residency *residency);

// Counts the constants for `device` (NULL: for no device), instead of the previous device.
void inf_weight_residency_charge(struct inf_weight_residency *residency, struct inf_device *device);

// Returns true if inf_weight_residency_allow_eviction() was called. Any thread.
bool inf_weight_residency_evicts(struct inf_weight_residency *residency);

// Begins a review, which decides which constants are evicted. No compilation or other review runs
// until inf_weight_residency_end_review(). Returns false if a compilation is in progress; that
// compilation requests a review when it is done.
bool inf_weight_residency_begin_review(struct inf_weight_residency *residency)
    INF_NODISCARD INF_MAY_BLOCK;

// Ends a review of the constants. Compilations may use the constants again.
void inf_weight_residency_end_review(struct inf_weight_residency *residency);

// During a review: evicts all constants that may be evicted, and counts the memory of the others.
// `constants` lists all constants of the model with their uses. `tensors` is their number.
void inf_weight_residency_review(struct inf_weight_residency *residency,
                                 struct inf_constants *constants, uint32_t tensors) INF_MAY_BLOCK;

// Returns the memory of constants and of packed forms. Any thread.
struct inf_device_held inf_weight_residency_memory(struct inf_weight_residency *residency,
                                                   struct inf_form_cost *forms);

#endif
