// SPDX-License-Identifier: Apache-2.0
// Decides when a model that changes on disk has settled: none of its files changed for `quiet_ns`,
// and none of them is being written. Pure data: the caller says what happened and what time it is.
#ifndef INF_DAEMON_MODEL_SETTLE_H
#define INF_DAEMON_MODEL_SETTLE_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/core/limits.h"

// The most models, and the most files that are being written at the same time. A model does not
// wait for a further file to be closed, only until `quiet_ns` after each write to it.
#define INF_SETTLE_MODELS  1024u
#define INF_SETTLE_WRITERS 256u

// Value of a time that never comes.
#define INF_SETTLE_NEVER UINT64_MAX

// What is known about one model.
struct inf_settle_model {
    char name[INF_LIMIT_MODEL_NAME + 1]; // empty: forgotten, free for another model
    uint64_t fingerprint; // fingerprint of the files when last reported; 0: no files or no report
    uint64_t seen;        // fingerprint of the files when last computed; polling compares with it
    uint64_t due_ns;      // time at which the model settles; INF_SETTLE_NEVER: no change
};

// A file that was written to and not closed since.
struct inf_settle_writer {
    int directory; // number of the file's directory, chosen by the caller
    char file[256];
    struct inf_settle_model *model;
};

struct inf_settle {
    uint64_t quiet_ns; // time without changes of a model after which it has settled
    uint32_t model_count, writer_count;
    struct inf_settle_model models[INF_SETTLE_MODELS]; // the first model_count, some forgotten
    struct inf_settle_writer writers[INF_SETTLE_WRITERS];
};

// Returns the model called `name`, and adds it if it is new; NULL if there are INF_SETTLE_MODELS
// other models. Valid until the model is forgotten.
struct inf_settle_model *inf_settle_obtain(struct inf_settle *settle, const char *name);

// Forgets a model whose files are gone, and its writers. The caller no longer uses `model`.
void inf_settle_forget(struct inf_settle *settle, struct inf_settle_model *model);

// Notes that a file of a model changed at `now_ns`.
void inf_settle_note_change(struct inf_settle *settle, struct inf_settle_model *model,
                            uint64_t now_ns);

// Notes that a file of a model was written to, so that the model waits until the file is closed.
void inf_settle_note_write(struct inf_settle *settle, struct inf_settle_model *model, int directory,
                           const char *file, uint64_t now_ns);

// Notes that a file of a model was closed after writing, removed, replaced or moved away.
void inf_settle_note_close(struct inf_settle *settle, struct inf_settle_model *model, int directory,
                           const char *file, uint64_t now_ns);

// Forgets which files of a directory are being written. The caller uses this if it stops watching
// the directory, because it no longer learns when these files are closed.
void inf_settle_forget_directory(struct inf_settle *settle, int directory);

// Forgets which files are being written in all directories. The caller uses this if it lost events.
void inf_settle_forget_writers(struct inf_settle *settle);

// Returns a model that has settled by `now_ns`; NULL if there is none. Each model is returned once
// after its last change.
struct inf_settle_model *inf_settle_take(struct inf_settle *settle, uint64_t now_ns);

// Returns the time at which the next model settles if no file changes; INF_SETTLE_NEVER: no model
// does.
uint64_t inf_settle_next_ns(const struct inf_settle *settle);

#endif
