// SPDX-License-Identifier: Apache-2.0
// Listening Unix sockets: inherited, or made at a path that no other daemon serves.
#ifndef INF_DAEMON_SYSTEM_LISTENER_H
#define INF_DAEMON_SYSTEM_LISTENER_H

#include <stdbool.h>
#include <sys/types.h>

#include "proto/core/status.h"

// One listening socket. Embedded; inf_listener_init() before use.
struct inf_listener {
    int fd;      // -1: none
    int lock_fd; // holds PATH.lock as long as the daemon lives; -1: none
    char *path;  // what close() removes; NULL: not made by us
};

// Makes an embedded listener that is closed.
void inf_listener_init(struct inf_listener *listener);

// Takes over a listening socket that was inherited.
void inf_listener_adopt(struct inf_listener *listener, int fd);

struct inf_listener_options {
    const char *path;
    mode_t mode; // of the socket: 0660, 0600
    gid_t group; // whom it belongs to; (gid_t)-1: as it comes
};

// Makes a socket at a path. A file left over by a daemon that is gone is replaced; one that is
// served is never touched: a lock file beside it, and a connection tried, tell.
//
// INF_EXISTS   another daemon serves it, or the file is no socket.
// INF_INVALID  the path is too long, or its directory does not exist.
// INF_DENIED   the directory may not be written.
enum inf_code inf_listener_open(struct inf_listener *listener,
                                const struct inf_listener_options *options,
                                struct inf_error *err) INF_NODISCARD;

// Closes the socket and removes its file, if it was made here. A closed one is fine.
void inf_listener_close(struct inf_listener *listener);

// Who connected.
struct inf_credentials {
    uid_t uid;
    bool in_group; // of the group asked for
};

// Reads the credentials of the peer as they were when it connected, and whether it is a member of
// `group`, (gid_t)-1 for none.
enum inf_code inf_peer_credentials(int fd, gid_t group, struct inf_credentials *credentials,
                                   struct inf_error *err) INF_NODISCARD;

#endif
