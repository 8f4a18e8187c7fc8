// SPDX-License-Identifier: Apache-2.0
// Files of plans: what a load made of a model, so that the next load neither reads the model nor
// runs passes nor packs weights. A plan has the graph after the passes that need no shapes, the
// graphs that were compiled for shapes, the constants, and the packed weights that stand in for
// constants. A plan is for machines of one instruction set and for one build. A file is used only
// if it belongs to the user of the daemon or to root, no other user may write to it, and every byte
// of it agrees with its checksums.
#ifndef INF_BACKENDS_SAVED_PLAN_FILE_H
#define INF_BACKENDS_SAVED_PLAN_FILE_H

#include <sys/types.h>

#include "backends/base/role.h"
#include "backends/graph/graph.h"

// The most bytes of notes, and the most graphs that were compiled for shapes.
#define INF_PLAN_NOTES_BYTES 512
#define INF_PLAN_CLASSES_MAX 64u

// The most bytes that a load may add to a plan.
#define INF_PLAN_EXTRA_BYTES_MAX ((size_t)4 << 20)

// What a plan was made from.
struct inf_plan_id {
    // Key of the model's files and of the settings that change its graph. When a plan is read, 0
    // stands for every key.
    uint64_t key;
    const char *build; // version and build of inferd; other builds do not use the plan
};

// What a load needs to know about the model's files besides the graph.
struct inf_plan_facts {
    char format[32];       // format of the model, as in struct inf_model_info
    uint64_t content_hash; // hash of the model's files, as in struct inf_model_info
    // What the load measured, in a format that only the load knows; unused bytes are 0.
    uint8_t notes[INF_PLAN_NOTES_BYTES];
};

// A graph that was compiled for the shapes of its inputs.
struct inf_plan_class {
    char device[32]; // name of the device
    uint32_t precision, threads;
    struct inf_graph *graph; // borrowed when a plan is written, owned when it was read
};

// A form of a constant, such as packed weights.
struct inf_plan_form {
    struct inf_blob *blob; // borrowed when a plan is written, one reference when it was read
    struct inf_form_record record;
    // Only when a plan is written: leave out the bytes of the constant, which the form restores.
    bool replaces;
};

// The contents of a plan's file. Zeroed: empty.
struct inf_saved_plan {
    struct inf_plan_facts facts;
    uint64_t key; // set when a plan was read: the key that it was written with
    // After the passes that need no shapes. Borrowed when a plan is written, owned when it was
    // read.
    struct inf_graph *graph;
    struct inf_plan_class *classes;
    struct inf_plan_form *forms;
    uint32_t class_count, form_count;
    // What the load adds, in a format that only the load knows. Borrowed when a plan is written,
    // owned when it was read; NULL: nothing.
    void *extra;
    size_t extra_bytes; // at most INF_PLAN_EXTRA_BYTES_MAX
};

// Writes a plan to the file `name` in a directory, with these permissions. Replaces an older file
// as a whole. Each constant
// must have its bytes or a form that replaces them. Forms of other constants than those of the
// graphs are left out.
//
// INF_EXHAUSTED    memory, or `extra` is too large.
// INF_UNAVAILABLE  the file cannot be written.
enum inf_code inf_plan_file_write(int directory_fd, const char *name, mode_t mode,
                                  const struct inf_plan_id *id, const struct inf_saved_plan *plan,
                                  struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Reads a plan, with several threads if it is large. Constants whose bytes are not in the file are
// evicted blobs without a form: the caller adopts the forms before it uses the graphs. The caller
// frees the contents of *plan with inf_saved_plan_fini().
//
// INF_NOT_FOUND  there is no such file.
// INF_DENIED     the file is a link, belongs to another user, or others may write to it.
// INF_INVALID    the file is damaged, or is of another model or build.
// INF_EXHAUSTED  memory.
enum inf_code inf_plan_file_read(struct inf_saved_plan *plan, int directory_fd, const char *name,
                                 const struct inf_plan_id *id,
                                 struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Frees what inf_plan_file_read() has read and the caller has not taken.
void inf_saved_plan_fini(struct inf_saved_plan *plan);

#endif
