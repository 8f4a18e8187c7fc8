// SPDX-License-Identifier: Apache-2.0
// The lock of a client with a background thread.
//
// One mutex guards the client and everything that belongs to it. A thread holds it while it is in
// the library, except while it waits and while a callback of the caller runs. The lock is
// recursive, because callbacks and public functions call public functions; `owner` and `depth`
// count the nesting. The mutex itself is not recursive, because a condition variable cannot be used
// with a recursive mutex.
//
// Only the background thread reads the socket, checks timeouts and calls callbacks. Other threads
// queue frames, write as much as the socket accepts, and wait for `changed` until the background
// thread has received their answer. While the background thread is in poll(), the events and the
// time that it waits for are in `socket` and `until_ns`. A thread that leaves the library compares
// these two fields with the client's state, and writes to `wake_fd` only if poll() would miss an
// event. So most requests cost no wake-up.
#include "client/lib/client_lock.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "client/lib/client.h"
#include "client/lib/error.h"
#include "client/lib/io/poll_state.h"

static uintptr_t find_self(void)
{
    return (uintptr_t)pthread_self();
}

bool inf_client_lock_is_background(const struct inf_client_lock *lock)
{
    return pthread_equal(pthread_self(), lock->thread) != 0;
}

void inf_client_lock_reacquire(struct inf_client_lock *lock, unsigned depth)
{
    pthread_mutex_lock(&lock->mutex);
    atomic_store_explicit(&lock->owner, find_self(), memory_order_relaxed);
    lock->depth = depth;
}

unsigned inf_client_lock_release(struct inf_client_lock *lock)
{
    unsigned depth = lock->depth;
    lock->depth = 0;
    atomic_store_explicit(&lock->owner, 0, memory_order_relaxed);
    pthread_mutex_unlock(&lock->mutex);
    return depth;
}

void inf_client_lock_sleep(struct inf_client_lock *lock, uint64_t until_ns)
{
    unsigned depth = lock->depth;
    const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000),
                                   .tv_nsec = (long)(until_ns % 1000000000)};
    atomic_store_explicit(&lock->owner, 0, memory_order_relaxed);
    if (until_ns == 0)
        pthread_cond_wait(&lock->changed, &lock->mutex);
    else
        pthread_cond_timedwait(&lock->changed, &lock->mutex, &until);
    atomic_store_explicit(&lock->owner, find_self(), memory_order_relaxed);
    lock->depth = depth;
}

// Returns whether the background thread must be woken, because it sleeps longer or waits for other
// events than the client's state requires.
static bool must_wake(inferd_client *client)
{
    const struct inf_client_lock *lock = client->lock;
    const struct pollfd now = inf_client_poll_state_socket(client);
    uint64_t wake_ns = inf_client_poll_state_wake_ns(client);
    if (!lock->asleep)
        return false;
    // Compare more than the descriptor's number: while the daemon has not answered the greeting,
    // the connection may have a new socket with the same number as the one that poll() waits for.
    return client->closing || !client->connection.greeted || client->calls.ended_head != NULL ||
           now.fd != lock->socket.fd || (now.events & ~lock->socket.events) != 0 ||
           (wake_ns != 0 && (lock->until_ns == 0 || wake_ns < lock->until_ns));
}

void inf_client_lock_wake(inferd_client *client)
{
    if (must_wake(client))
        (void)!eventfd_write(client->lock->wake_fd, 1);
}

void inf_client_lock_enter(inferd_client *client)
{
    struct inf_client_lock *lock = client->lock;
    if (lock == NULL)
        return;
    // Relaxed order is enough, because only this thread writes its own id to `owner`. So if this
    // thread reads an outdated value, the value is never its own id.
    if (atomic_load_explicit(&lock->owner, memory_order_relaxed) == find_self()) {
        lock->depth++;
        return;
    }
    inf_client_lock_reacquire(lock, 1);
    if (!inf_client_lock_is_background(lock))
        lock->inside++;
}

void inf_client_lock_leave(inferd_client *client)
{
    struct inf_client_lock *lock = client->lock;
    if (lock == NULL || --lock->depth > 0)
        return;
    if (!inf_client_lock_is_background(lock)) {
        lock->inside--;
        if (client->closing)
            pthread_cond_broadcast(&lock->changed);
        inf_client_lock_wake(client);
    }
    (void)inf_client_lock_release(lock);
}

unsigned inf_client_lock_begin_callback(inferd_client *client)
{
    if (client->lock == NULL)
        return 0;
    inf_client_lock_notify(client);
    client->lock->callbacks++;
    return inf_client_lock_release(client->lock);
}

void inf_client_lock_end_callback(inferd_client *client, unsigned depth)
{
    if (client->lock == NULL)
        return;
    inf_client_lock_reacquire(client->lock, depth);
    client->lock->callbacks--;
}

bool inf_client_lock_is_served_elsewhere(const inferd_client *client)
{
    return client->lock != NULL && !inf_client_lock_is_background(client->lock);
}

bool inf_client_lock_has_callback(const inferd_client *client)
{
    return client->lock != NULL && client->lock->callbacks > 0;
}

bool inf_client_lock_wait(inferd_client *client, uint64_t until_ns)
{
    struct inf_client_lock *lock = client->lock;
    bool over = client->connection.failure.code != INF_OK && client->retry.head == NULL &&
                client->calls.ended_head == NULL && lock->callbacks == 0;
    if (client->closing || over || (until_ns != 0 && inf_client_now_ns() >= until_ns))
        return false;
    inf_client_lock_wake(client);
    lock->waiting++;
    inf_client_lock_sleep(lock, until_ns);
    lock->waiting--;
    return true;
}

void inf_client_lock_notify(inferd_client *client)
{
    if (client->lock != NULL && client->lock->waiting > 0)
        pthread_cond_broadcast(&client->lock->changed);
}

void inf_client_lock_poll(inferd_client *client, int timeout_ms)
{
    struct inf_client_lock *lock = client->lock;
    struct pollfd polled[2] = {inf_client_poll_state_socket(client), {.events = POLLIN}};
    if (lock == NULL) {
        // Ignore errors. The caller runs a round of the event loop in any case, also after EINTR.
        (void)poll(polled, 1, timeout_ms);
        return;
    }
    polled[1].fd = lock->wake_fd;
    lock->socket = polled[0];
    lock->until_ns = inf_client_poll_state_wake_ns(client);
    lock->asleep = true;
    unsigned depth = inf_client_lock_release(lock);
    (void)poll(polled, 2, timeout_ms);
    inf_client_lock_reacquire(lock, depth);
    lock->asleep = false;
    eventfd_t count;
    if (polled[1].revents != 0)
        (void)!eventfd_read(lock->wake_fd, &count);
}

static void init_mutex(struct inf_client_lock *lock)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    // Use the same clock as inf_client_now_ns(), because the timeouts are computed from its times.
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&lock->mutex, NULL);
    pthread_cond_init(&lock->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

int inf_client_lock_create(inferd_client *client)
{
    struct inf_client_lock *lock = calloc(1, sizeof *lock);
    if (lock == NULL)
        return ENOMEM;
    init_mutex(lock);
    client->lock = lock;
    lock->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return lock->wake_fd < 0 ? errno : 0;
}

void inf_client_lock_destroy(inferd_client *client)
{
    struct inf_client_lock *lock = client->lock;
    client->lock = NULL;
    if (lock == NULL)
        return;
    if (lock->wake_fd >= 0)
        close(lock->wake_fd);
    pthread_cond_destroy(&lock->changed);
    pthread_mutex_destroy(&lock->mutex);
    free(lock);
}
