// SPDX-License-Identifier: Apache-2.0
// Communicates with systemd: readiness, status, watchdog pings, and inherited sockets. Without
// systemd all functions do nothing. No function blocks: if systemd has no room for a message, the
// loop sends the message later.
#ifndef INF_DAEMON_SYSTEM_NOTIFY_H
#define INF_DAEMON_SYSTEM_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "backends/base/role.h"
#include "proto/core/status.h"

// Size of the buffer for a status line.
#define INF_NOTIFY_STATUS 256

struct event_base;
struct inf_notify;

struct inf_notify_options {
    struct event_base *base; // outlives the notifier
    // Returns true if the daemon makes progress, that is, no run takes too long. The watchdog of
    // systemd is pinged only then. That the loop calls this function shows that the loop itself
    // works. NULL: always ping.
    bool (*healthy)(void *context);
    void *context;
};

// Creates a notifier for the socket in NOTIFY_SOCKET, and pings the watchdog from the loop, twice
// as often as WATCHDOG_USEC requires. The caller destroys *out_notify before the event base.
//
// INF_INVALID    NOTIFY_SOCKET or WATCHDOG_USEC is malformed.
// INF_EXHAUSTED  memory, or file descriptors.
enum inf_code inf_notify_create(struct inf_notify **out_notify,
                                const struct inf_notify_options *options,
                                struct inf_error *err) INF_NODISCARD;

// Frees the notifier after a last attempt to send the queued notifications. NULL is allowed.
void inf_notify_destroy(struct inf_notify **notify);

// Reports that start-up is complete and requests are answered. `status` is a text for people.
void inf_notify_ready(struct inf_notify *notify, const char *status) INF_ON_LOOP;

// Reports during start-up that it goes on, so that systemd waits for up to `time_ms` more for
// inf_notify_ready(). If the socket has no room, the report is lost.
void inf_notify_extend_start(struct inf_notify *notify, uint64_t time_ms) INF_ON_LOOP;

// Reports a new status line.
void inf_notify_status(struct inf_notify *notify, const char *status) INF_ON_LOOP;

// Reports that reloading begins. A later inf_notify_ready() reports its end.
void inf_notify_reloading(struct inf_notify *notify) INF_ON_LOOP;

// Reports that the daemon is stopping.
void inf_notify_stopping(struct inf_notify *notify, const char *status) INF_ON_LOOP;

// Reports why the process will end without having served, so that `systemctl status` shows the
// reason, and waits for some seconds (or until SIGTERM or SIGINT). Without the wait, clients that
// connect in a loop would make systemd start the failing daemon so often that systemd gives up and
// closes the sockets. Call it as the last act of the process. Does nothing without systemd.
void inf_notify_failed_start(const char *reason) INF_MAY_BLOCK;

// Fills the address of the socket to the service manager from NOTIFY_SOCKET.
//
// INF_INVALID  NOTIFY_SOCKET is not set, or malformed.
enum inf_code inf_notify_address(struct sockaddr_un *address, socklen_t *size,
                                 struct inf_error *err) INF_NODISCARD;

// Returns how many descriptors the service manager keeps for this process: FDSTORE in the
// environment, but at most INF_LIMIT_STORED_FDS. 0: there is no manager, or it keeps none.
uint32_t inf_notify_store_room(void);

// A descriptor that an earlier process of the service stored (fd_store.h).
struct inf_stored_fd {
    int fd; // -1: taken
    char *name;
};

// Descriptors that systemd passed; -1 for none. The caller closes the two sockets.
struct inf_listen_fds {
    int data;  // data socket, with FileDescriptorName=inferd
    int admin; // admin socket, with FileDescriptorName=inferd-admin
    struct inf_stored_fd *stored;
    uint32_t stored_count;
};

// Takes the sockets that systemd passed. Must be called once. If none of them has one of the two
// names, the first is the data socket and the second the admin socket. Both become non-blocking and
// close-on-exec. Descriptors whose names begin with "inferd-" are those that an earlier process
// stored. The caller calls inf_listen_fds_fini(), after a failure too.
//
// INF_INVALID  one is not a listening Unix stream socket, there are more than two, or two have the
//              same name.
enum inf_code inf_listen_fds_take(struct inf_listen_fds *fds, struct inf_error *err) INF_NODISCARD;

// Closes the stored descriptors that are not taken, and frees the list of them. Keeps the sockets.
void inf_listen_fds_fini(struct inf_listen_fds *fds);

#endif
