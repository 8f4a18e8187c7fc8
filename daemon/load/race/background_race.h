// SPDX-License-Identifier: Apache-2.0
// A race, that is a timing comparison of devices, precisions and thread counts, for a model that is
// served. It runs on a copy of the model, while no request is served. Used on the racer's thread.
#ifndef INF_DAEMON_LOAD_RACE_BACKGROUND_RACE_H
#define INF_DAEMON_LOAD_RACE_BACKGROUND_RACE_H

#include "daemon/load/load_job.h"

// Times the candidates in the placement of job->base against each other, and stores the result in
// job->race.decision. Candidates below fp32 take part only if the precision check admits them.
//
// INF_CANCELLED  the daemon ends.
// INF_INVALID, INF_UNAVAILABLE, INF_EXHAUSTED  inf_race_run() returned this error.
enum inf_code inf_background_race_run(struct inf_load_job *job,
                                      const struct inf_load_options *options,
                                      struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
