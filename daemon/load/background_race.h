// SPDX-License-Identifier: Apache-2.0
// A race for a model that is served already: on a copy of it, while nothing is being served. On the
// racer's thread.
#ifndef INF_DAEMON_LOAD_BACKGROUND_RACE_H
#define INF_DAEMON_LOAD_BACKGROUND_RACE_H

#include "daemon/load/load_job.h"

// Has the candidates of job->base's placement race, those in less than fp32 only where that is
// admissible, and puts what is decided into job->decision.
//
// INF_CANCELLED  the daemon ends.
// INF_INVALID, INF_UNAVAILABLE, INF_EXHAUSTED  as inf_race_run().
enum inf_code inf_background_race_run(struct inf_load_job *job,
                                      const struct inf_load_options *options,
                                      struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
