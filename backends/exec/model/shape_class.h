// SPDX-License-Identifier: Apache-2.0
// The executables of one model, one a shape class: a device, run options and the shapes of the
// inputs. Compiled once however many ask at the same time, and the least recently used of a device
// goes when there are too many. Any thread, but where a line says otherwise.
#ifndef INF_BACKENDS_EXEC_MODEL_SHAPE_CLASS_H
#define INF_BACKENDS_EXEC_MODEL_SHAPE_CLASS_H

#include "backends/base/thread.h"
#include "backends/exec/executable.h"
#include "backends/exec/run_options.h"

// Executables that one model keeps per device.
#define INF_SHAPE_CLASSES_MAX 8

// What an executable is for.
struct inf_shape_key {
    struct inf_device *device;
    struct inf_run_options options; // plain (inf_run_options_resolve())
    const struct inf_shape *shapes; // one an input of the model
};

// An executable for one shape class, or the promise of one. Its users may read what it is
// for.
struct inf_shape_class {
    struct inf_shape_class *next;
    struct inf_device *device; // a reference
    struct inf_run_options options;
    struct inf_executable *executable; // NULL: promised, a thread compiles it
    uint32_t users;                    // that hold it, or wait for it
    bool pinned;                       // by a review, which is one of them
    bool retired;     // its device was lost: freed once its last user has given it back
    uint64_t used_at; // of the classes' clock, when last acquired
    uint64_t weight_bytes, arena_bytes;
    struct inf_shape shapes[]; // one an input
};

struct inf_shape_classes {
    uint32_t input_count;   // of the model
    struct inf_mutex mutex; // guards all below
    struct inf_cond compiled;
    struct inf_shape_class *list;
    uint64_t clock;
};

// No class yet, of a model of so many inputs.
void inf_shape_classes_init(struct inf_shape_classes *classes, uint32_t input_count);

// Frees all executables, none of which may be held.
void inf_shape_classes_fini(struct inf_shape_classes *classes) INF_MAY_BLOCK;

// The executable for `key` if there is one, waits while another thread compiles it. Held until
// inf_shape_classes_release(). NULL where the caller must compile: then *promise is a class that
// others wait for, to be kept or taken back; NULL without memory for one.
struct inf_executable *inf_shape_classes_acquire(struct inf_shape_classes *classes,
                                                 const struct inf_shape_key *key,
                                                 struct inf_shape_class **promise) INF_MAY_BLOCK;

// Keeps a promise: `executable` is the class's now, and held by the caller. Frees one of the same
// device that no user holds, if there are too many.
void inf_shape_classes_keep(struct inf_shape_classes *classes, struct inf_shape_class *promise,
                            struct inf_executable *executable) INF_MAY_BLOCK;

// Takes a promise back, and frees it.
void inf_shape_classes_withdraw(struct inf_shape_classes *classes,
                                struct inf_shape_class *promise) INF_MAY_BLOCK;

// Gives back what inf_shape_classes_acquire() or inf_shape_classes_keep() gave.
void inf_shape_classes_release(struct inf_shape_classes *classes,
                               const struct inf_executable *executable);

// Frees the executable for `key` unless a user holds it. Returns false if nothing was freed.
bool inf_shape_classes_drop(struct inf_shape_classes *classes,
                            const struct inf_shape_key *key) INF_MAY_BLOCK;

// Holds each executable there is, so that none goes, or lets them go. By one review at a time.
void inf_shape_classes_pin(struct inf_shape_classes *classes, bool more);

// The class after `class` (NULL: the first) that is pinned; NULL behind the last.
const struct inf_shape_class *inf_shape_classes_next_pinned(struct inf_shape_classes *classes,
                                                            const struct inf_shape_class *class);

// What executables hold of their own.
struct inf_shape_memory {
    uint64_t weight_bytes, arena_bytes;
    uint32_t executables;
};

// The sum over the executables of `device`; NULL: of all devices.
struct inf_shape_memory inf_shape_classes_memory(struct inf_shape_classes *classes,
                                                 const struct inf_device *device);

#endif
