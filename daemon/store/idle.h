// SPDX-License-Identifier: Apache-2.0
// Unloads models that no request used for some time, and loads them again for the next request.
#ifndef INF_DAEMON_STORE_IDLE_H
#define INF_DAEMON_STORE_IDLE_H

#include "backends/base/role.h"
#include "daemon/store/state.h"

// Returns true if the model `name` in `version` (a number, a label or "") was unloaded while it was
// idle, and no load of it is queued or running.
bool inf_store_is_idle(const struct inf_model_store *store, const char *name,
                       const char *version) INF_NODISCARD INF_ON_LOOP;

// If the model `name` in `version` (a number, a label or "") was unloaded while it was idle, starts
// loading it and returns true.
bool inf_store_wake(struct inf_model_store *store, const char *name,
                    const char *version) INF_NODISCARD INF_ON_LOOP;

// Unloads models that nothing uses until the loaded models fit into model_bytes_max and the daemon
// into its budget, or until no more model can be unloaded.
void inf_store_keep_limit(struct inf_model_store *store, uint64_t now_ns) INF_ON_LOOP;

#endif
