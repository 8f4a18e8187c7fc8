// SPDX-License-Identifier: Apache-2.0
// The gateway's connection to the daemon for inferences and shared memory. The event loop drives
// it. Not thread-safe: all functions run on the thread of the loop.
#ifndef INF_GATEWAY_LINK_H
#define INF_GATEWAY_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "client/inferd.h"
#include "proto/core/attributes.h"
#include "proto/core/status.h"

struct event_base;
struct inf_link;
struct inf_link_call;

// Maximum number of inferences that wait in the gateway because the daemon's limit of requests in
// flight is reached.
#define INF_LINK_WAITING_MAX 4096u

// An object that is told when a link becomes ready or stops being ready. Its owner has its memory.
struct inf_link_watcher {
    // Called on the thread of the loop. May remove this watcher and others.
    void (*callback)(void *context);
    void *context;
    LIST_ENTRY(inf_link_watcher) neighbours;
};

// Receives the answer of an inference: a result, which the callback must free, or NULL and the
// error.
typedef void (*inf_link_callback)(void *context, inferd_result *result,
                                  const struct inferd_error *err);

// Creates a link to the daemon's socket at `path` (NULL: the default path). The link connects from
// the event loop. It reconnects if the connection ends.
enum inf_code inf_link_create(struct inf_link **link, struct event_base *base, const char *path,
                              struct inf_error *err) INF_NODISCARD;

// Creates a link for a client that is connected. On success the link owns the client. The link does
// not reconnect: if the connection ends, the link is no longer ready. Returns false if there is no
// memory.
bool inf_link_adopt(struct inf_link **link, struct event_base *base, inferd_client *client);

// Closes the connection and frees the link. The callbacks of calls in flight are not called. Sets
// *link to NULL.
void inf_link_destroy(struct inf_link **link);

// Returns true if the link is connected to the daemon.
bool inf_link_is_ready(const struct inf_link *link);

// Adds a watcher, whose callback is called at each change of inf_link_is_ready() from now on. The
// caller must remove it before the link is destroyed.
void inf_link_watch(struct inf_link *link, struct inf_link_watcher *watcher);

// Removes a watcher that was added to a link.
void inf_link_unwatch(struct inf_link_watcher *watcher);

// Returns libinferd's client, which the link owns, or NULL if the link has never been connected.
inferd_client *inf_link_client(const struct inf_link *link);

// Returns the number of inferences that wait in the gateway and were not sent yet.
size_t inf_link_waiting_count(const struct inf_link *link);

// Starts an inference. `trace_parent` is the W3C traceparent that it carries; "": none. It, and the
// strings and tensors of `request`, must stay valid until the callback has been called or the call
// has been cancelled. On success *call identifies the call, and the callback is called later, once,
// unless the call is cancelled. On failure the callback is not called.
int inf_link_infer(struct inf_link *link, const inferd_request *request, const char *trace_parent,
                   inf_link_callback callback, void *context, struct inf_link_call **call,
                   struct inferd_error *err);

// Cancels a call. Its callback will not be called.
void inf_link_cancel(struct inf_link_call *call);

#endif
