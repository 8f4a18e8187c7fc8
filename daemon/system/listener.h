// SPDX-License-Identifier: Apache-2.0
// Listening Unix sockets: inherited, or created at a path that no other daemon serves.
#ifndef INF_DAEMON_SYSTEM_LISTENER_H
#define INF_DAEMON_SYSTEM_LISTENER_H

#include <stdbool.h>
#include <sys/types.h>

#include "proto/core/status.h"

// One listening socket. The owner embeds this struct in its own and calls inf_listener_init()
// before use.
struct inf_listener {
    int fd;      // the listening socket; -1: none
    int lock_fd; // descriptor that holds the lock on PATH.lock as long as the daemon runs; -1: none
    char *path;  // socket file that is removed on close; NULL: the socket is inherited
};

// Initialises an embedded listener to the closed state.
void inf_listener_init(struct inf_listener *listener);

// Takes over an inherited listening socket.
void inf_listener_adopt(struct inf_listener *listener, int fd);

struct inf_listener_options {
    const char *path;
    mode_t mode; // mode of the socket file: 0660 or 0600
    gid_t group; // group of the socket file; (gid_t)-1: the group of the process
};

// Creates a socket at a path. A socket file that a dead daemon left is replaced. A socket that
// another process serves is never touched: a lock file and a connection attempt detect this case.
//
// INF_EXISTS   another daemon serves the socket, or the file is not a socket.
// INF_INVALID  the path is too long, or its directory does not exist.
// INF_DENIED   the directory is not writable.
enum inf_code inf_listener_open(struct inf_listener *listener,
                                const struct inf_listener_options *options,
                                struct inf_error *err) INF_NODISCARD;

// Closes the socket, and removes its file if inf_listener_open() created it. A closed listener is
// allowed.
void inf_listener_close(struct inf_listener *listener);

// Who connected to a listening socket: the process at the other end of a connection.
struct inf_credentials {
    uid_t uid;
    pid_t pid;
    bool in_group; // the peer is a member of the group that the caller passed
};

// Reads the credentials of the peer as they were when it connected, and whether the peer is a
// member of `group` ((gid_t)-1: none).
enum inf_code inf_peer_credentials(int fd, gid_t group, struct inf_credentials *credentials,
                                   struct inf_error *err) INF_NODISCARD;

#endif
