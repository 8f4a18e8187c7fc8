// SPDX-License-Identifier: Apache-2.0
// Remembers in a record file which models are being loaded. If the process ends during a load, the
// next start finds that the load began and did not end. A model whose loads did not end several
// times would bring the daemon down again and again. Used by the loader thread only.
#ifndef INF_DAEMON_MODEL_LOAD_JOURNAL_H
#define INF_DAEMON_MODEL_LOAD_JOURNAL_H

#include <stdint.h>

#include "backends/base/log.h"
#include "backends/base/role.h"
#include "proto/core/status.h"

// A model whose loads did not end so many times in a row is not loaded unless an admin asks for it.
#define INF_LOAD_CRASHES_MAX 2u
// Maximum number of models. When the limit is reached, the oldest one is forgotten.
#define INF_LOAD_JOURNAL_MODELS 256u

struct inf_load_journal;

// Reads DIRECTORY/loads.db and the notes in DIRECTORY/crashes.db, if they exist. If `directory` is
// NULL, nothing is remembered after the process ends. Faults of the file are logged as a warning.
// The caller closes *out_journal.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_load_journal_open(struct inf_load_journal **out_journal, const char *directory,
                                    const struct inf_log *log,
                                    struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Frees the journal and closes its file. NULL is allowed.
void inf_load_journal_close(struct inf_load_journal **journal);

// Returns the descriptor of DIRECTORY/crashes.db, for inf_crash_note_install(): if a run crashes
// the process, the key of its model is appended. The next inf_load_journal_open() counts each such
// key like a load that did not end. The descriptor belongs to the journal. -1: there is no file.
int inf_load_journal_notes_fd(const struct inf_load_journal *journal);

// Returns how many loads of the model with this key did not end, since the last one that did.
uint32_t inf_load_journal_crashes(const struct inf_load_journal *journal, uint64_t key);

// Notes that a load of the model begins.
void inf_load_journal_begin(struct inf_load_journal *journal, uint64_t key) INF_MAY_BLOCK;

// Notes that the load has ended, with success or not: the process is still there.
void inf_load_journal_end(struct inf_load_journal *journal, uint64_t key) INF_MAY_BLOCK;

#endif
