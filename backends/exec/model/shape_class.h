// SPDX-License-Identifier: Apache-2.0
// The executables of one model, one for each shape class. A shape class is a device, run options
// and the shapes of the inputs. An executable is compiled once, even if several threads request it
// at the same time. If a device has too many, the least recently used one is freed. Any thread,
// unless stated otherwise.
#ifndef INF_BACKENDS_EXEC_MODEL_SHAPE_CLASS_H
#define INF_BACKENDS_EXEC_MODEL_SHAPE_CLASS_H

#include "backends/base/thread.h"
#include "backends/exec/executable.h"
#include "backends/exec/model/arena_budget.h"
#include "backends/exec/run_options.h"
#include "backends/graph/history/history.h"

// The most executables that one model keeps for each device, besides those that compute the steps
// of several sessions.
#define INF_SHAPE_CLASSES_MAX 8
// The most executables for several sessions that one model keeps for each device. They are enough
// for three numbers of sessions with buffers of eight sizes each.
#define INF_JOINED_CLASSES_MAX 24

// Identifies a shape class and its executable.
struct inf_shape_key {
    struct inf_device *device;
    struct inf_run_options options; // resolved by inf_run_options_resolve()
    const struct inf_shape *shapes; // one for each input of the model
    // If `buffers.room` is not 0, `shapes` are those for an empty history. All 0: the inputs are as
    // the model has them.
    struct inf_history_buffers buffers;
};

// An executable for one shape class, or a promise: an empty class whose executable a thread is
// compiling. Users of the executable may read the members that describe its class.
struct inf_shape_class {
    struct inf_shape_class *next;
    struct inf_device *device; // a counted reference
    struct inf_run_options options;
    struct inf_executable *executable; // NULL: a promise; a thread is compiling the executable
    uint32_t users;                    // number of threads that hold the executable or wait for it
    bool pinned;      // true: held by inf_shape_classes_pin(), which is counted in `users`
    bool retired;     // true: the device was lost; the last user frees the class
    uint64_t used_at; // time of the last use: value of the set's `clock`, which counts acquisitions
    uint64_t weight_bytes, arena_bytes;
    struct inf_history_buffers buffers; // as in struct inf_shape_key
    struct inf_shape_classes *classes;  // the set that this class belongs to
    // registers the class in the arena budget of its set, if a request made the class
    struct inf_arena_entry budget_entry;
    struct inf_shape shapes[]; // one for each input
};

struct inf_shape_classes {
    uint32_t input_count; // number of inputs of the model
    // Bounds the classes that requests make; NULL: no bound. Set before the first such class.
    struct inf_arena_budget *budget;
    struct inf_mutex mutex; // guards the following members
    struct inf_cond compiled;
    struct inf_shape_class *list;
    uint64_t clock;
};

// Initialises an empty set of classes, for a model with `input_count` inputs.
void inf_shape_classes_init(struct inf_shape_classes *classes, uint32_t input_count);

// Frees all executables. No user may hold one.
void inf_shape_classes_fini(struct inf_shape_classes *classes) INF_MAY_BLOCK;

// Returns the executable for `key` if there is one; waits while another thread compiles it. The
// caller holds it until inf_shape_classes_release(). If NULL is returned, the caller must compile.
// *promise is then a class that other threads wait for, and the caller must fulfil or withdraw it;
// *promise is NULL if memory is exhausted.
struct inf_executable *inf_shape_classes_acquire(struct inf_shape_classes *classes,
                                                 const struct inf_shape_key *key,
                                                 struct inf_shape_class **promise) INF_MAY_BLOCK;

// Returns the executable for `key`, which the caller holds until inf_shape_classes_release(). Never
// waits: returns NULL if there is no executable, or if a thread is compiling it.
struct inf_executable *inf_shape_classes_find(struct inf_shape_classes *classes,
                                              const struct inf_shape_key *key);

// Fulfils a promise: stores `executable` in the class that inf_shape_classes_acquire() gave the
// caller, and holds it for the caller. If the device has too many classes, frees an unused one.
void inf_shape_classes_keep(struct inf_shape_classes *classes, struct inf_shape_class *promise,
                            struct inf_executable *executable) INF_MAY_BLOCK;

// Removes and frees a promised class after its compilation failed. Threads that wait for the class
// try again.
void inf_shape_classes_withdraw(struct inf_shape_classes *classes,
                                struct inf_shape_class *promise) INF_MAY_BLOCK;

// Releases an executable from inf_shape_classes_acquire(), inf_shape_classes_find() or
// inf_shape_classes_keep().
void inf_shape_classes_release(struct inf_shape_classes *classes,
                               const struct inf_executable *executable);

// Releases an executable like inf_shape_classes_release(), and frees it if a request made it and no
// other user holds it. Returns true if it was freed.
bool inf_shape_classes_discard(struct inf_shape_classes *classes,
                               const struct inf_executable *executable) INF_MAY_BLOCK;

// Frees the executable for `key` unless a user holds it. Returns false if nothing was freed.
bool inf_shape_classes_drop(struct inf_shape_classes *classes,
                            const struct inf_shape_key *key) INF_MAY_BLOCK;

// If `more` is true, holds all existing executables, so that none is freed. If `more` is false,
// releases the executables that an earlier call holds. Only one thread at a time may do this.
void inf_shape_classes_pin(struct inf_shape_classes *classes, bool more);

// Returns the next pinned class after `class` (NULL: the first one); NULL if there are no more.
const struct inf_shape_class *inf_shape_classes_next_pinned(struct inf_shape_classes *classes,
                                                            const struct inf_shape_class *class);

// The memory that executables do not share.
struct inf_shape_memory {
    uint64_t weight_bytes, arena_bytes;
    uint32_t executables;
};

// Returns the total memory of the executables of `device`; NULL selects all devices.
struct inf_shape_memory inf_shape_classes_memory(struct inf_shape_classes *classes,
                                                 const struct inf_device *device);

#endif
