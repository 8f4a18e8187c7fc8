// SPDX-License-Identifier: Apache-2.0
// Watches the repository on a thread of its own, and reports which models changed. A change is
// reported after it has settled (daemon/model/settle.h), so a half-copied model is not reported.
#ifndef INF_DAEMON_MODEL_REPOSITORY_WATCH_H
#define INF_DAEMON_MODEL_REPOSITORY_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/base/log.h"
#include "backends/base/role.h"
#include "proto/core/limits.h"
#include "proto/core/status.h"

struct inf_repository_watch;

struct inf_repository_watch_options {
    const char *repository; // directory of the models; outlives the watch
    // True: check all files every `poll_ms`. False: use inotify, unless the repository is on a
    // file system that does not report what other machines change.
    bool poll;
    uint32_t poll_ms;
    // A change is reported after no file of the model has changed for this time.
    uint32_t settle_ms;
    const struct inf_log *log; // outlives the watch
};

// Starts watching. Changes after this call are reported, so the caller must call it before the
// first load. The caller destroys *out_watch.
//
// INF_NOT_FOUND  there is no such directory.
// INF_EXHAUSTED  there is no memory, thread or descriptor.
enum inf_code inf_repository_watch_create(struct inf_repository_watch **out_watch,
                                          const struct inf_repository_watch_options *options,
                                          struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Asks the thread to stop, so that inf_repository_watch_destroy() waits less: closing an inotify
// descriptor takes the kernel about 20 ms. Later changes are not reported. NULL is allowed. Never
// blocks.
void inf_repository_watch_stop(struct inf_repository_watch *watch);

// Stops the thread and frees everything. NULL is allowed.
void inf_repository_watch_destroy(struct inf_repository_watch **watch);

// Returns a descriptor that becomes readable when a model is reported as changed. The watch owns
// it.
int inf_repository_watch_fd(const struct inf_repository_watch *watch);

// Takes the name of a reported model; returns false if there is none. Never blocks. Each time the
// descriptor is readable, the caller repeats this call until it returns false.
bool inf_repository_watch_next(struct inf_repository_watch *watch,
                               char name[INF_LIMIT_MODEL_NAME + 1]) INF_NODISCARD;

#endif
