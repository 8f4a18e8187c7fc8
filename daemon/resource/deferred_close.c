// SPDX-License-Identifier: Apache-2.0
// Threads that unmap memory and close descriptors for the loop.
//
// The problem: munmap() of gigabytes takes milliseconds. close() of a descriptor that a client
// passed may block for as long as the client wants: a TCP socket with SO_LINGER and unsent data, or
// a file of a file system in user space that the client controls. The loop must never wait for
// either, even if many descriptors wait and memory is exhausted. One client must not delay the
// closes of other clients.
//
// The idea: everything to be released is a task in a list, and threads take tasks from the list.
// One thread only unmaps, and cannot get stuck. The other threads close descriptors, and each of
// them may get stuck. Therefore a user occupies at most USER_THREADS of them at a time, and tasks
// wait in one queue per user. If a user's task waits and all threads are in close(), another thread
// is started, up to CLOSERS_MAX:
//
//   heads -> user A: task -> task -> task        closers: [A] [A] [B] [idle]
//              |                                 A waits for its own descriptors only
//            user B: task
//
// The list has no limit, because the memory of a task is reserved before its descriptor is
// received, and the user is charged for the descriptor until it is closed. The closing thread puts
// the task into a list of finished tasks, and the loop refunds the user, because only the loop uses
// the accounts.
#include "daemon/resource/deferred_close.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "backends/base/thread.h"

// The most threads that close descriptors.
#define CLOSERS_MAX 32
// The most closing threads that one user's descriptors may occupy at a time.
#define USER_THREADS 2
// The most task objects that are kept after use for later reservations.
#define SPARES_KEPT 512
// How long inf_deferred_close_destroy() waits for descriptors that do not close.
#define DESTROY_MS 1000

struct inf_close_task {
    struct inf_deferred_close *deferred_close;
    // Next task in the list of unused, unmapping or finished tasks, or in the user's list of
    // descriptors to close.
    struct inf_close_task *next;
    // Used only in the first task of a user: first task of the next user in the list `heads`.
    struct inf_close_task *next_head;
    // Used only in the first task of a user: last task of the same user.
    struct inf_close_task *last;
    // User who is charged for the descriptor; a reference; NULL: no user is charged.
    struct inf_quota_user *user;
    void *memory; // memory to be unmapped; NULL: the task closes a file descriptor
    size_t size_bytes;
    struct inf_mapping *mapping; // how devices map the memory; NULL: no device maps it
    int fd;
};

struct closer {
    struct inf_deferred_close *deferred_close;
    struct inf_thread thread;
    bool busy;
    const struct inf_quota_user *user; // the user of the descriptor that this thread is closing
};

struct inf_deferred_close {
    // Unused task objects. The fields from `spares` on are accessed by the loop only.
    struct inf_close_task *spares;
    uint32_t spare_count, reserved;
    struct inf_thread unmapper;

    atomic_bool any_finished;
    struct inf_mutex mutex; // guards the fields below it
    struct inf_cond closer_wanted, unmapper_wanted, progress;
    struct inf_close_task *heads;               // first closing task of each user who has one
    struct inf_close_task *unmaps, *last_unmap; // list of tasks that unmap memory
    struct inf_close_task *finished;
    // Number of tasks in `heads` and `unmaps`, plus tasks that a thread is performing.
    uint32_t waiting;
    uint32_t idle; // number of closing threads that wait for a task
    uint32_t closer_count;
    struct closer closers[CLOSERS_MAX];
    bool ending;
};

// --- lists of closing and unmapping tasks ---

static uint32_t count_threads(const struct inf_deferred_close *deferred_close,
                              const struct inf_quota_user *user)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < deferred_close->closer_count; i++)
        count += deferred_close->closers[i].busy && deferred_close->closers[i].user == user;
    return count;
}

// Returns the link to the first closing task that may be performed now, which is a task of a user
// who occupies fewer than USER_THREADS threads.
static struct inf_close_task **find_ready(struct inf_deferred_close *deferred_close)
{
    struct inf_close_task **link = &deferred_close->heads;
    while (*link != NULL && count_threads(deferred_close, (*link)->user) >= USER_THREADS)
        link = &(*link)->next_head;
    return link;
}

// Removes and returns a closing task that may be performed now; NULL if there is none. Moves the
// user of the task to the end of the list of users.
static struct inf_close_task *take_ready(struct inf_deferred_close *deferred_close)
{
    struct inf_close_task **link = find_ready(deferred_close);
    struct inf_close_task *task = *link;
    if (task == NULL)
        return NULL;
    *link = task->next_head;
    struct inf_close_task *second = task->next;
    if (second == NULL)
        return task;
    second->last = task->last;
    second->next_head = NULL;
    for (link = &deferred_close->heads; *link != NULL;)
        link = &(*link)->next_head;
    *link = second;
    return task;
}

static void append_close(struct inf_deferred_close *deferred_close, struct inf_close_task *task)
{
    struct inf_close_task **link = &deferred_close->heads;
    while (*link != NULL && (*link)->user != task->user)
        link = &(*link)->next_head;
    task->next = task->next_head = NULL;
    task->last = task;
    if (*link == NULL) {
        *link = task;
        return;
    }
    (*link)->last->next = task;
    (*link)->last = task;
}

static void append_unmap(struct inf_deferred_close *deferred_close, struct inf_close_task *task)
{
    task->next = NULL;
    if (deferred_close->last_unmap != NULL)
        deferred_close->last_unmap->next = task;
    else
        deferred_close->unmaps = task;
    deferred_close->last_unmap = task;
}

// Puts a performed task into the list of finished tasks, which the loop empties.
static void finish_task(struct inf_deferred_close *deferred_close, struct inf_close_task *task)
{
    task->next = deferred_close->finished;
    deferred_close->finished = task;
    deferred_close->waiting--;
    atomic_store(&deferred_close->any_finished, true);
    inf_cond_signal(&deferred_close->progress);
}

// --- closing and unmapping threads ---

static void run_closer(void *context);

// Starts another thread that closes descriptors.
static enum inf_code start_closer(struct inf_deferred_close *deferred_close, struct inf_error *err)
{
    struct closer *closer = &deferred_close->closers[deferred_close->closer_count];
    *closer = (struct closer){.deferred_close = deferred_close};
    INF_TRY(inf_thread_start(&closer->thread, "inferd-close", run_closer, closer, err));
    deferred_close->closer_count++;
    return INF_OK;
}

// Starts another closing thread if a task could be performed and every thread is busy. If the
// system refuses to start one, the task waits for the existing threads.
static void start_if_all_busy(struct inf_deferred_close *deferred_close)
{
    if (deferred_close->idle == 0 && deferred_close->closer_count < CLOSERS_MAX &&
        *find_ready(deferred_close) != NULL)
        (void)!start_closer(deferred_close, NULL);
}

static void run_closer(void *context)
{
    struct closer *closer = context;
    struct inf_deferred_close *deferred_close = closer->deferred_close;
    inf_mutex_lock(&deferred_close->mutex);
    for (;;) {
        struct inf_close_task *task = take_ready(deferred_close);
        if (task == NULL && deferred_close->ending)
            break;
        if (task == NULL) {
            deferred_close->idle++;
            inf_cond_wait(&deferred_close->closer_wanted, &deferred_close->mutex);
            deferred_close->idle--;
            continue;
        }
        closer->busy = true;
        closer->user = task->user;
        start_if_all_busy(deferred_close);
        inf_mutex_unlock(&deferred_close->mutex);
        close(task->fd);
        inf_mutex_lock(&deferred_close->mutex);
        closer->busy = false;
        finish_task(deferred_close, task);
    }
    inf_mutex_unlock(&deferred_close->mutex);
}

static void run_unmapper(void *context)
{
    struct inf_deferred_close *deferred_close = context;
    inf_mutex_lock(&deferred_close->mutex);
    while (deferred_close->unmaps != NULL || !deferred_close->ending) {
        struct inf_close_task *task = deferred_close->unmaps;
        if (task == NULL) {
            inf_cond_wait(&deferred_close->unmapper_wanted, &deferred_close->mutex);
            continue;
        }
        deferred_close->unmaps = task->next;
        if (task->next == NULL)
            deferred_close->last_unmap = NULL;
        inf_mutex_unlock(&deferred_close->mutex);
        inf_mapping_destroy(&task->mapping);
        munmap(task->memory, task->size_bytes);
        inf_mutex_lock(&deferred_close->mutex);
        finish_task(deferred_close, task);
    }
    inf_mutex_unlock(&deferred_close->mutex);
}

// --- creating and destroying the threads ---

static enum inf_code init_deferred_close(struct inf_deferred_close *deferred_close,
                                         struct inf_error *err)
{
    INF_TRY(inf_thread_start(&deferred_close->unmapper, "inferd-unmap", run_unmapper,
                             deferred_close, err));
    enum inf_code code = INF_OK;
    inf_mutex_lock(&deferred_close->mutex);
    while (code == INF_OK && deferred_close->closer_count < USER_THREADS)
        code = start_closer(deferred_close, err);
    inf_mutex_unlock(&deferred_close->mutex);
    return code;
}

// Waits until no task is left, or the time is up. Returns false if the time is up.
static bool wait_for_tasks(struct inf_deferred_close *deferred_close)
{
    uint64_t end_ns = inf_clock_ns() + (uint64_t)DESTROY_MS * INF_NS_PER_MS;
    bool in_time = true;
    inf_mutex_lock(&deferred_close->mutex);
    deferred_close->ending = true;
    inf_cond_broadcast(&deferred_close->closer_wanted);
    inf_cond_broadcast(&deferred_close->unmapper_wanted);
    while (deferred_close->waiting > 0 && in_time)
        in_time = inf_cond_wait_until(&deferred_close->progress, &deferred_close->mutex, end_ns);
    in_time = deferred_close->waiting == 0;
    inf_mutex_unlock(&deferred_close->mutex);
    return in_time;
}

// Joins the threads, which have ended or are about to end, and frees the object.
static void free_deferred_close(struct inf_deferred_close *deferred_close)
{
    for (uint32_t i = 0; i < deferred_close->closer_count; i++)
        inf_thread_join(&deferred_close->closers[i].thread);
    inf_thread_join(&deferred_close->unmapper);
    while (deferred_close->spares != NULL) {
        struct inf_close_task *spare = deferred_close->spares;
        deferred_close->spares = spare->next;
        free(spare);
    }
    inf_cond_fini(&deferred_close->closer_wanted);
    inf_cond_fini(&deferred_close->unmapper_wanted);
    inf_cond_fini(&deferred_close->progress);
    inf_mutex_fini(&deferred_close->mutex);
    free(deferred_close);
}

enum inf_code inf_deferred_close_create(struct inf_deferred_close **out_deferred_close,
                                        struct inf_error *err)
{
    struct inf_deferred_close *deferred_close = calloc(1, sizeof *deferred_close);
    if (deferred_close == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for deferred closing");
    inf_mutex_init(&deferred_close->mutex);
    inf_cond_init(&deferred_close->closer_wanted);
    inf_cond_init(&deferred_close->unmapper_wanted);
    inf_cond_init(&deferred_close->progress);
    enum inf_code code = init_deferred_close(deferred_close, err);
    if (code == INF_OK)
        *out_deferred_close = deferred_close;
    if (code != INF_OK && wait_for_tasks(deferred_close))
        free_deferred_close(deferred_close);
    return code;
}

void inf_deferred_close_destroy(struct inf_deferred_close **pointer)
{
    struct inf_deferred_close *deferred_close = *pointer;
    *pointer = NULL;
    if (deferred_close == NULL)
        return;
    bool in_time = wait_for_tasks(deferred_close);
    inf_deferred_close_settle(deferred_close);
    // If a thread is stuck in close(), leak the object, because that thread still uses it.
    if (in_time)
        free_deferred_close(deferred_close);
}

// --- reserving memory for tasks ---

static void push_spare(struct inf_deferred_close *deferred_close, struct inf_close_task *task)
{
    task->next = deferred_close->spares;
    deferred_close->spares = task;
    deferred_close->spare_count++;
}

enum inf_code inf_deferred_close_reserve(struct inf_deferred_close *deferred_close, uint32_t count,
                                         struct inf_error *err)
{
    while (deferred_close->spare_count < deferred_close->reserved + count) {
        struct inf_close_task *task = calloc(1, sizeof *task);
        if (task == NULL)
            return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                                   "no memory to close %u descriptors later", count);
        push_spare(deferred_close, task);
    }
    deferred_close->reserved += count;
    return INF_OK;
}

void inf_deferred_close_cancel(struct inf_deferred_close *deferred_close, uint32_t count)
{
    assert(deferred_close->reserved >= count);
    deferred_close->reserved -= count;
}

struct inf_close_task *inf_deferred_close_take(struct inf_deferred_close *deferred_close,
                                               struct inf_quota_user *user)
{
    struct inf_close_task *task = deferred_close->spares;
    assert(task != NULL && deferred_close->reserved > 0 && "a close that was not reserved");
    deferred_close->spares = task->next;
    deferred_close->spare_count--;
    deferred_close->reserved--;
    *task = (struct inf_close_task){.deferred_close = deferred_close,
                                    .user = user != NULL ? inf_quota_ref(user) : NULL,
                                    .fd = -1};
    return task;
}

// --- queueing tasks for the threads ---

void inf_close_task_submit(struct inf_close_task *task, int fd)
{
    struct inf_deferred_close *deferred_close = task->deferred_close;
    assert(fd >= 0);
    task->fd = fd;
    inf_mutex_lock(&deferred_close->mutex);
    append_close(deferred_close, task);
    deferred_close->waiting++;
    start_if_all_busy(deferred_close);
    inf_cond_signal(&deferred_close->closer_wanted);
    inf_mutex_unlock(&deferred_close->mutex);
}

void inf_deferred_close_fd(struct inf_deferred_close *deferred_close, int fd,
                           struct inf_quota_user *user)
{
    inf_close_task_submit(inf_deferred_close_take(deferred_close, user), fd);
}

void inf_deferred_close_unmap(struct inf_deferred_close *deferred_close, void *memory,
                              size_t size_bytes, struct inf_mapping **mapping)
{
    struct inf_close_task *task = inf_deferred_close_take(deferred_close, NULL);
    task->memory = memory;
    task->size_bytes = size_bytes;
    task->mapping = *mapping;
    *mapping = NULL;
    inf_mutex_lock(&deferred_close->mutex);
    append_unmap(deferred_close, task);
    deferred_close->waiting++;
    inf_cond_signal(&deferred_close->unmapper_wanted);
    inf_mutex_unlock(&deferred_close->mutex);
}

void inf_deferred_close_settle(struct inf_deferred_close *deferred_close)
{
    if (!atomic_exchange(&deferred_close->any_finished, false))
        return;
    inf_mutex_lock(&deferred_close->mutex);
    struct inf_close_task *task = deferred_close->finished;
    deferred_close->finished = NULL;
    inf_mutex_unlock(&deferred_close->mutex);
    while (task != NULL) {
        struct inf_close_task *next = task->next;
        if (task->user != NULL)
            inf_quota_refund(task->user, INF_QUOTA_FDS, 1);
        inf_quota_unref(&task->user);
        if (deferred_close->spare_count < deferred_close->reserved + SPARES_KEPT)
            push_spare(deferred_close, task);
        else
            free(task);
        task = next;
    }
}
