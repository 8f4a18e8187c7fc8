// SPDX-License-Identifier: Apache-2.0
// What this process gets from the one before it, and leaves to the next: the store of descriptors,
// the handover in it, and the connections that both describe.
#ifndef INF_DAEMON_TAKEOVER_H
#define INF_DAEMON_TAKEOVER_H

#include "backends/base/log.h"
#include "backends/base/role.h"
#include "daemon/handover/handover.h"
#include "daemon/server.h"
#include "daemon/system/fd_store.h"
#include "daemon/system/notify.h"

struct inf_takeover {
    struct inf_fd_store *fd_store; // NULL: the service manager keeps nothing
    struct inf_handover *handover; // NULL: likewise
    const struct inf_log *log;
};

// Opens the store, if the service manager has one, and adopts the handover of the earlier process.
// Creates a new handover if there is none, or if this version cannot use it; the log has the reason
// then. The caller calls inf_takeover_fini(), even after a failure.
enum inf_code inf_takeover_open(struct inf_takeover *takeover, struct event_base *base,
                                struct inf_listen_fds *fds, const struct inf_log *log,
                                struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Gives the connections among the stored descriptors to the server. Descriptors that belong to no
// connection are closed and removed from the store, and `fds` has none of them afterwards.
void inf_takeover_restore(struct inf_takeover *takeover, struct inf_listen_fds *fds,
                          struct inf_server *server) INF_ON_LOOP;

// Sends what waits for the service manager, and frees everything, after the server is destroyed.
void inf_takeover_fini(struct inf_takeover *takeover);

#endif
