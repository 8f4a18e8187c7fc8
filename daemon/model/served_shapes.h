// SPDX-License-Identifier: Apache-2.0
// Shapes that models served last, kept for the next start: a text file beside the tune database
// that is only appended to, each line with a checksum. A line that is broken, cut off or of another
// version is passed over: the worst that a damaged file can cause is a first request that compiles.
#ifndef INF_DAEMON_MODEL_SERVED_SHAPES_H
#define INF_DAEMON_MODEL_SERVED_SHAPES_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/base/log.h"
#include "backends/base/role.h"
#include "proto/core/shape.h"
#include "proto/core/status.h"

// Models that are remembered; the oldest go.
#define INF_SERVED_SHAPES_MODELS 512u

// Sets of shapes that are remembered of a model, and the characters of one: "1x128,1x128", by the
// model's order. A longer one is not remembered.
#define INF_SERVED_SHAPES_SETS     4u
#define INF_SERVED_SHAPES_SET_TEXT 160u

// All sets of a model, with ; between, the last served first.
#define INF_SERVED_SHAPES_TEXT (INF_SERVED_SHAPES_SETS * INF_SERVED_SHAPES_SET_TEXT)

// A model that served other shapes than it is known to is written down, at most so often.
#define INF_SERVED_SHAPES_PAUSE_NS ((uint64_t)10 * 1000000000u)

// --- what one model serves; the loop's ---

struct inf_served_shape_set {
    uint64_t last_key; // of the last set that was noted; 0: none
    uint32_t count;
    char sets[INF_SERVED_SHAPES_SETS][INF_SERVED_SHAPES_SET_TEXT];
    bool changed; // since it was written
    uint64_t written_ns;
};

// Notes that a request with inputs of these shapes was answered; `key` is a number that equal
// shapes have in common. True where it is time to write the sets down, which the caller then does.
bool inf_served_shapes_note(struct inf_served_shape_set *seen, uint64_t key,
                            const struct inf_shape *shapes, uint32_t count, uint64_t now_ns);

// Writes all sets, with ; between; returns `text`.
const char *inf_served_shapes_print(const struct inf_served_shape_set *seen,
                                    char text[INF_SERVED_SHAPES_TEXT]);

// Takes the sets of a text, as many as there is room for.
void inf_served_shapes_take(struct inf_served_shape_set *seen, const char *text);

// --- the file; one thread's ---

struct inf_served_shapes;

// Reads DIRECTORY/shapes.db, where there is one; NULL as directory: nothing is kept beyond this
// run. *out_seen is the caller's to close. What is wrong with the file is logged as a warning.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_served_shapes_open(struct inf_served_shapes **out_seen, const char *directory,
                                     const struct inf_log *log,
                                     struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Frees it. NULL is fine.
void inf_served_shapes_close(struct inf_served_shapes **seen);

// The sets of a model, by its file's hash; "" where none is known. Valid until the next
// inf_served_shapes_keep().
const char *inf_served_shapes_find(const struct inf_served_shapes *seen, uint64_t content_hash);

// Remembers the sets of a model, and appends them to the file where they are others than before. A
// file that cannot be written is logged once.
void inf_served_shapes_keep(struct inf_served_shapes *seen, uint64_t content_hash,
                            const char *text) INF_MAY_BLOCK;

#endif
