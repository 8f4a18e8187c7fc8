// SPDX-License-Identifier: Apache-2.0
// Changing flags while the daemon runs.
#ifndef INF_DAEMON_SERVICE_LIMITS_H
#define INF_DAEMON_SERVICE_LIMITS_H

#include "daemon/service/state.h"

// Changes a flag like inf_environment_set(); `origin` says who changes it. Passes new limits on to
// the modules that keep copies of them.
enum inf_code inf_service_change_flag(struct inf_service *service, const char *name,
                                      const char *value, enum inf_origin origin,
                                      const struct inf_flag **out_flag,
                                      struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Returns the limits of runs that the configuration sets.
struct inf_run_limits inf_service_run_limits(const struct inf_config *config);

#endif
