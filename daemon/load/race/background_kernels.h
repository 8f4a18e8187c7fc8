// SPDX-License-Identifier: Apache-2.0
// Races of the kernels of a served model: loads choose kernels by rules and by what is known, so
// that no request waits for a race. Used on the racer's thread.
#ifndef INF_DAEMON_LOAD_RACE_BACKGROUND_KERNELS_H
#define INF_DAEMON_LOAD_RACE_BACKGROUND_KERNELS_H

#include "daemon/load/load_job.h"

// Compiles a copy of job->base, and of its further signatures, for each device, precision and shape
// for which the load compiled them, with races of the kernels whose winner is not known. The
// devices keep the winners. Sets job->race.kernels_changed if the choice of a rule has lost a race,
// this one or another, since the load of the model began: the model then may have better kernels
// when it is placed again. Sets job->race.disturbed if races were given up because the daemon was
// not idle in time.
//
// INF_CANCELLED  the daemon ends, or the model was unloaded.
// INF_EXHAUSTED  memory.
enum inf_code inf_background_kernels_run(struct inf_load_job *job,
                                         const struct inf_load_options *options,
                                         struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Returns how many kernels the devices have chosen by rules because their races come later.
uint64_t inf_background_kernels_count_due(const struct inf_device_list *devices);

// Returns how many races of the devices the choice of a rule has lost.
uint64_t inf_background_kernels_count_overturned(const struct inf_device_list *devices);

#endif
