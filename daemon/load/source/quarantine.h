// SPDX-License-Identifier: Apache-2.0
// Which models are in quarantine: the daemon did not survive their loads or their runs several
// times, so they are not loaded unless an admin asks for it.
#ifndef INF_DAEMON_LOAD_SOURCE_QUARANTINE_H
#define INF_DAEMON_LOAD_SOURCE_QUARANTINE_H

#include "daemon/load/load_job.h"

// The keys of one model in the journal of loads: of its loads, and of its runs. A load that ends
// clears its own entry, but not that of runs.
struct inf_quarantine_keys {
    uint64_t load, run;
};

// Returns the keys of the model file with this stamp, under this name. Another build of the daemon
// has other keys, because it may not have the fault.
struct inf_quarantine_keys inf_quarantine_make_keys(uint64_t stamp, const char *name,
                                                    const char *build);

// Fails if the model `name` is in quarantine.
//
// INF_PRECONDITION  (MODEL_FAILED) the text says how often the daemon ended, and what an admin can
//                   do.
enum inf_code inf_quarantine_check(const struct inf_load_journal *journal,
                                   const struct inf_quarantine_keys *keys, const char *name,
                                   struct inf_error *err) INF_NODISCARD;

#endif
