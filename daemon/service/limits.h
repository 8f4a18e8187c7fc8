// SPDX-License-Identifier: Apache-2.0
// Changing flags while the daemon runs.
#ifndef INF_DAEMON_SERVICE_LIMITS_H
#define INF_DAEMON_SERVICE_LIMITS_H

#include "daemon/service/state.h"

// Changes a flag like inf_environment_set(), and passes new limits on to the parts that keep
// copies.
enum inf_code inf_service_change_flag(struct inf_service *service, const char *name,
                                      const char *value, const struct inf_flag **out_flag,
                                      struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

#endif
