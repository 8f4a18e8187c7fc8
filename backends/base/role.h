// SPDX-License-Identifier: Apache-2.0
// Thread roles. The event loop thread owns every connection and never blocks; worker threads run
// jobs and may block. Functions are annotated with roles. clang -Wthread-safety checks the
// annotations at build time, and an assertion checks them at run time. See
// docs/reference/threads.md.
#ifndef INF_BACKENDS_BASE_ROLE_H
#define INF_BACKENDS_BASE_ROLE_H

#include "proto/core/attributes.h"

struct INF_ATTR(capability("role")) inf_role {
    int unused;
};

// Roles as names for the static analysis. No data is stored in them.
extern struct inf_role inf_role_loop;
extern struct inf_role inf_role_worker;

#define INF_ON_LOOP   INF_ATTR(requires_capability(inf_role_loop))   // only from the loop thread
#define INF_ON_WORKER INF_ATTR(requires_capability(inf_role_worker)) // only from worker threads
#define INF_MAY_BLOCK INF_ATTR(locks_excluded(inf_role_loop))        // never from the loop thread

// Tells the analysis that the calling thread is the loop thread, and aborts if the thread has
// another role. The first call on a thread gives the thread this role. Call it first in every
// libevent callback.
void inf_role_enter_loop(void) INF_ATTR(assert_capability(inf_role_loop));

// Tells the analysis that the calling thread is a worker, and aborts if the thread has another
// role. Call it first in the main function of a worker thread or of the thread that loads models.
void inf_role_enter_worker(void) INF_ATTR(assert_capability(inf_role_worker));

// Aborts if the calling thread is the loop thread. This is the run-time check for INF_MAY_BLOCK.
// Threads without a role (tests, tools) are allowed.
void inf_role_check_may_block(void) INF_MAY_BLOCK;

// Removes the role of the calling thread. Used by tests that run an event loop on a thread for a
// while.
void inf_role_leave(void);

#endif
