// SPDX-License-Identifier: Apache-2.0
// Reads the groups of a client from its socket. The kernel keeps what they were when the client
// connected (SO_PEERCRED, SO_PEERGROUPS), so the answer is the same whenever it is asked for, and
// in the next process too.
#include "daemon/system/caller.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "proto/core/attributes.h"
#include "proto/core/limits.h"

void inf_caller_init(struct inf_caller *caller, int fd, uid_t uid, bool admin)
{
    *caller = (struct inf_caller){.fd = fd, .uid = uid, .admin = admin};
}

void inf_caller_fini(struct inf_caller *caller)
{
    free(caller->groups);
    caller->groups = NULL;
    caller->group_count = 0;
    caller->fd = -1;
}

static int compare_groups(const void *a, const void *b)
{
    gid_t first = *(const gid_t *)a, second = *(const gid_t *)b;
    return (first > second) - (first < second);
}

// Returns the number of supplementary groups; 0 if there are none or too many.
static uint32_t count_supplementary(int fd)
{
    socklen_t size = 0;
    // ERANGE: the buffer is too small, and `size` is what it must have.
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &size) == 0 || errno != ERANGE ||
        size > INF_LIMIT_PEER_GROUPS * sizeof(gid_t))
        return 0;
    return size / sizeof(gid_t);
}

// Reads the primary group and the supplementary ones.
static void read_groups(struct inf_caller *caller)
{
    struct ucred peer;
    socklen_t peer_size = sizeof peer;
    uint32_t count = count_supplementary(caller->fd);
    socklen_t size = count * (socklen_t)sizeof(gid_t);
    // Without memory, the next question reads them.
    caller->groups = malloc(size + sizeof(gid_t));
    if (caller->groups == NULL)
        return;
    caller->groups_known = true;
    if (getsockopt(caller->fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_size) != 0)
        return;
    if (count > 0 && getsockopt(caller->fd, SOL_SOCKET, SO_PEERGROUPS, caller->groups, &size) != 0)
        count = 0;
    caller->groups[count] = peer.gid;
    caller->group_count = count + 1;
    qsort(caller->groups, caller->group_count, sizeof(gid_t), compare_groups);
}

bool inf_caller_is_member(struct inf_caller *caller, gid_t group)
{
    if (!caller->groups_known && caller->fd >= 0)
        read_groups(caller);
    return caller->group_count > 0 && bsearch(&group, caller->groups, caller->group_count,
                                              sizeof group, compare_groups) != NULL;
}
