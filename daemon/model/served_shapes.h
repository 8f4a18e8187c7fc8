// SPDX-License-Identifier: Apache-2.0
// Shapes that models served last, saved for the next start in a text file in the directory of the
// tune database. Lines have checksums and are only appended. Broken or foreign lines are ignored,
// so the worst effect of a damaged file is that a first request waits for compilation.
#ifndef INF_DAEMON_MODEL_SERVED_SHAPES_H
#define INF_DAEMON_MODEL_SERVED_SHAPES_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/base/log.h"
#include "backends/base/role.h"
#include "proto/core/shape.h"
#include "proto/core/status.h"

// The highest number of models in the file; a further model replaces the oldest one.
#define INF_SERVED_SHAPES_MODELS 512u

// Number of shape sets that are saved per model. A set with more than INF_SERVED_SHAPES_SET_TEXT
// characters ("1x128,1x128", in the order of the inputs) is not saved.
#define INF_SERVED_SHAPES_SETS     4u
#define INF_SERVED_SHAPES_SET_TEXT 160u

// Buffer size for all shape sets of a model as text, separated by ";", the last served set first.
#define INF_SERVED_SHAPES_TEXT (INF_SERVED_SHAPES_SETS * INF_SERVED_SHAPES_SET_TEXT)

// The shortest time between two writes of one model's shape sets, in nanoseconds.
#define INF_SERVED_SHAPES_PAUSE_NS ((uint64_t)10 * 1000000000u)

// --- shape sets of one model; used by the loop ---

struct inf_served_shape_set {
    // Key of the set that was recorded last, so that repeats of it are cheap; 0: none.
    uint64_t last_key;
    uint32_t count;
    char sets[INF_SERVED_SHAPES_SETS][INF_SERVED_SHAPES_SET_TEXT];
    bool changed; // the sets changed since they were last written to the file of saved shapes
    uint64_t written_ns;
};

// Records that a request with inputs of these shapes was answered. `key` is a number that is equal
// for equal shapes. Returns true if the caller should save the sets now.
bool inf_served_shapes_note(struct inf_served_shape_set *served, uint64_t key,
                            const struct inf_shape *shapes, uint32_t count, uint64_t now_ns);

// Writes all shape sets to `text`, separated by ";". Returns `text`.
const char *inf_served_shapes_print(const struct inf_served_shape_set *served,
                                    char text[INF_SERVED_SHAPES_TEXT]);

// Reads shape sets from a text, at most INF_SERVED_SHAPES_SETS.
void inf_served_shapes_take(struct inf_served_shape_set *served, const char *text);

// --- the file of saved shapes; used by one thread ---

struct inf_served_shapes;

// Reads DIRECTORY/shapes.db, if it exists. If `directory` is NULL, nothing is saved beyond this
// run. The caller closes *out_db. Problems with the file are logged as warnings.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_served_shapes_open(struct inf_served_shapes **out_db, const char *directory,
                                     const struct inf_log *log,
                                     struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Frees the saved shapes in memory. The file stays. NULL is allowed.
void inf_served_shapes_close(struct inf_served_shapes **db);

// Returns the shape sets of the model whose file has this hash; "" if none are known. The text is
// valid until the next inf_served_shapes_keep().
const char *inf_served_shapes_find(const struct inf_served_shapes *db, uint64_t content_hash);

// Saves the shape sets of a model, and appends them to the file if they changed. If the file cannot
// be written, logs this once.
void inf_served_shapes_keep(struct inf_served_shapes *db, uint64_t content_hash,
                            const char *text) INF_MAY_BLOCK;

#endif
