// SPDX-License-Identifier: Apache-2.0
// Reads the repository: which models it has, in which order they are to be loaded, and, if models
// are known already, what a reload will do with each of them.
#ifndef INF_DAEMON_LOAD_SOURCE_SCAN_H
#define INF_DAEMON_LOAD_SOURCE_SCAN_H

#include "daemon/load/load_job.h"

// Sets the outcomes of a scan: scan->names, scan->ranks and, if scan->known is set, scan->report.
// On failure some of them may be set.
//
// INF_NOT_FOUND  there is no such directory.
// INF_EXHAUSTED  the repository has too many models, or memory.
enum inf_code inf_scan_run(const struct inf_load_options *options, struct inf_load_scan_job *scan,
                           struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
