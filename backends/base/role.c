// SPDX-License-Identifier: Apache-2.0
// Keeps the role of each thread in a thread-local pointer and aborts on a call that the role
// forbids.
#include "backends/base/role.h"

#include <assert.h>
#include <stddef.h>

struct inf_role inf_role_loop;
struct inf_role inf_role_worker;

// The role of the calling thread; NULL if it has none.
static _Thread_local const struct inf_role *thread_role;

static void enter_role(const struct inf_role *role)
{
    assert((thread_role == NULL || thread_role == role) && "called from a thread of another role");
    thread_role = role;
}

void inf_role_enter_loop(void)
{
    enter_role(&inf_role_loop);
}

void inf_role_enter_worker(void)
{
    enter_role(&inf_role_worker);
}

void inf_role_check_may_block(void)
{
    assert(thread_role != &inf_role_loop && "a call that may block, made on the loop thread");
}

void inf_role_leave(void)
{
    thread_role = NULL;
}
