// SPDX-License-Identifier: Apache-2.0
// What is said to systemd, and what comes from it: readiness, status, watchdog pings, and sockets
// it has opened. Without systemd everything here does nothing. Nothing blocks: a message that the
// service manager has no room for is kept and sent later, on the loop.
#ifndef INF_DAEMON_SYSTEM_NOTIFY_H
#define INF_DAEMON_SYSTEM_NOTIFY_H

#include <stdbool.h>

#include "backends/base/role.h"
#include "proto/core/status.h"

struct event_base;
struct inf_notify;

struct inf_notify_options {
    struct event_base *base; // outlives the notifier
    // Whether the daemon makes progress; the watchdog is pinged only while it says so. That the
    // loop itself runs is proven by the call. NULL: always.
    bool (*healthy)(void *context);
    void *context;
};

// Makes a notifier for the socket in NOTIFY_SOCKET, and pings the watchdog from the loop twice as
// often as WATCHDOG_USEC asks. *out_notify is the caller's to destroy, before the base.
//
// INF_INVALID    NOTIFY_SOCKET or WATCHDOG_USEC make no sense.
// INF_EXHAUSTED  memory, or file descriptors.
enum inf_code inf_notify_create(struct inf_notify **out_notify,
                                const struct inf_notify_options *options,
                                struct inf_error *err) INF_NODISCARD;

// Frees the notifier; what could not be sent so far is tried once more. NULL is fine.
void inf_notify_destroy(struct inf_notify **notify);

// Start-up is complete: requests are answered from now on. `status` is for people.
void inf_notify_ready(struct inf_notify *notify, const char *status) INF_ON_LOOP;

// A new line of status.
void inf_notify_status(struct inf_notify *notify, const char *status) INF_ON_LOOP;

// Reloading begins; inf_notify_ready() ends it.
void inf_notify_reloading(struct inf_notify *notify) INF_ON_LOOP;

// The end begins.
void inf_notify_stopping(struct inf_notify *notify, const char *status) INF_ON_LOOP;

// Sockets that systemd passed; -1 for none. The caller closes them.
struct inf_listen_fds {
    int data;  // FileDescriptorName=inferd
    int admin; // FileDescriptorName=inferd-admin
};

// Takes the sockets systemd passed, once in the life of the process. Where neither name is among
// them, the first is the data socket and the second the admin one. Both become non-blocking and
// close-on-exec.
//
// INF_INVALID  one is not a listening Unix stream socket, or there are more than two, or two of one
//              name.
enum inf_code inf_listen_fds_take(struct inf_listen_fds *fds, struct inf_error *err) INF_NODISCARD;

#endif
