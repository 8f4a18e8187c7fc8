// SPDX-License-Identifier: Apache-2.0
// Thread roles. The loop thread owns every connection and never blocks; workers run jobs and may.
// Stated on functions, checked by clang -Wthread-safety at build time and by an assertion at run
// time. docs/reference/threads.md has the whole picture.
#ifndef INF_BACKENDS_BASE_ROLE_H
#define INF_BACKENDS_BASE_ROLE_H

#include "proto/core/attributes.h"

struct INF_ATTR(capability("role")) inf_role {
    int unused;
};

// Names for the static analysis. Nothing is stored in them.
extern struct inf_role inf_role_loop;
extern struct inf_role inf_role_worker;

#define INF_ON_LOOP   INF_ATTR(requires_capability(inf_role_loop))   // only from the loop thread
#define INF_ON_WORKER INF_ATTR(requires_capability(inf_role_worker)) // only from worker threads
#define INF_MAY_BLOCK INF_ATTR(locks_excluded(inf_role_loop))        // never from the loop thread

// Call it first in every libevent callback: tells the analysis that this is the loop thread, and
// aborts if the thread has another role. The first call on a thread gives it the role.
void inf_role_enter_loop(void) INF_ATTR(assert_capability(inf_role_loop));

// First statement of a worker's (or the loader's) main function. As above, for the worker role.
void inf_role_enter_worker(void) INF_ATTR(assert_capability(inf_role_worker));

// Aborts if the calling thread is the loop thread: the run-time half of INF_MAY_BLOCK. Threads
// without a role (tests, tools) pass.
void inf_role_check_may_block(void) INF_MAY_BLOCK;

// Removes the role of the calling thread; for tests that run a loop on a thread for a while.
void inf_role_leave(void);

#endif
