// SPDX-License-Identifier: Apache-2.0
// The client at the other end of a connection, as far as rights depend on it: user, role and
// groups.
#ifndef INF_DAEMON_SYSTEM_CALLER_H
#define INF_DAEMON_SYSTEM_CALLER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

// One client. Embedded in its connection. The groups are read when a right first depends on them,
// so that most connections have none. Not thread-safe.
struct inf_caller {
    int fd; // the client's socket, borrowed; -1: the client is in no group
    uid_t uid;
    bool admin;
    bool groups_known; // `groups` has the groups of the client
    uint32_t group_count;
    gid_t *groups; // ascending; owned
};

// Initialises an embedded caller. `fd` stays valid until inf_caller_fini().
void inf_caller_init(struct inf_caller *caller, int fd, uid_t uid, bool admin);

// Returns true if the client was a member of the group when it connected. A client in more than
// INF_LIMIT_PEER_GROUPS groups counts as a member of its primary group only. If memory is exhausted
// when the groups are read, the client counts as a member of no group.
bool inf_caller_is_member(struct inf_caller *caller, gid_t group);

// Frees the groups.
void inf_caller_fini(struct inf_caller *caller);

#endif
