// SPDX-License-Identifier: Apache-2.0
// Who may use a model: the users and groups of the settings allow_users and allow_groups.
#ifndef INF_DAEMON_MODEL_ACCESS_H
#define INF_DAEMON_MODEL_ACCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "backends/base/role.h"
#include "daemon/system/caller.h"
#include "proto/core/status.h"

// The most users, and the most groups, that a model names.
#define INF_ACCESS_NAMES 64u

// The numbers of users and groups that may use a model. All zero: every client may.
struct inf_access {
    bool is_restricted; // only the listed ones, and admins, may use the model
    uint32_t user_count, group_count;
    uid_t users[INF_ACCESS_NAMES];
    gid_t groups[INF_ACCESS_NAMES];
};

// Looks up the names, which may be numbers, in the databases of the system. Commas are between
// them. If both texts are empty, every client may use the model. After a failure only admins may.
//
// INF_INVALID      there is no such user or group, or there are more than INF_ACCESS_NAMES.
// INF_UNAVAILABLE  a database cannot be read at present.
// INF_EXHAUSTED    memory.
enum inf_code inf_access_resolve(struct inf_access *access, const char *users, const char *groups,
                                 struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Returns true if the client may use the model. `caller` is NULL for the daemon itself. Takes time
// in proportion to the names, of which there are few.
bool inf_access_allows(const struct inf_access *access, struct inf_caller *caller);

#endif
