// SPDX-License-Identifier: Apache-2.0
// The lock of a client that has a background thread (inferd_start_thread()), and how threads wait
// with it.
//
// A client without a background thread has no lock: its caller makes sure that one thread at a time
// uses it. All functions of this file accept such a client, and unless they say otherwise they do
// nothing for it.
#ifndef INF_CLIENT_LIB_CLIENT_LOCK_H
#define INF_CLIENT_LIB_CLIENT_LOCK_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/inferd.h"

struct inf_client_lock {
    pthread_t thread;      // the background thread
    pthread_mutex_t mutex; // guards the client and everything that belongs to it
    // Used with `mutex`; signalled when an answer or credit arrives, or the connection ends.
    pthread_cond_t changed;
    _Atomic uintptr_t owner; // the id of the thread that holds the mutex; 0: the mutex is free
    int wake_fd;             // an eventfd that ends the background thread's poll()

    // The fields from `depth` on are protected by the mutex.
    unsigned depth;          // how many times the owner has taken the lock
    unsigned inside;         // number of application threads that are inside the library
    unsigned waiting;        // number of threads among `inside` that wait for `changed`
    unsigned callbacks;      // number of callbacks that are running
    bool closed_by_callback; // a callback closed the client, so the background thread destroys it
    bool asleep;             // the background thread is in poll() with `socket` and `until_ns`
    struct pollfd socket;
    uint64_t until_ns; // when the poll() of the background thread ends without an event; 0: never
};

// Creates the lock: client->lock. The background thread is not started.
//
// Returns 0, or an errno value; after a failure client->lock may be set, and the caller must
// destroy it.
int inf_client_lock_create(inferd_client *client);

// Takes the lock, which the calling thread may hold already. Blocks while another thread holds the
// lock.
void inf_client_lock_enter(inferd_client *client);

// Undoes the last inf_client_lock_enter(). If the background thread has to do something sooner than
// it planned, wakes it.
void inf_client_lock_leave(inferd_client *client);

// Releases the mutex completely, and returns how many times the calling thread had taken it.
unsigned inf_client_lock_release(struct inf_client_lock *lock);

// Takes the mutex again; the second argument is the number that inf_client_lock_release() returned.
void inf_client_lock_reacquire(struct inf_client_lock *lock, unsigned depth);

// Releases the lock while a callback of the caller runs, and takes the lock again afterwards.
// inf_client_lock_end_callback() gets the number that inf_client_lock_begin_callback() returned.
unsigned inf_client_lock_begin_callback(inferd_client *client);
void inf_client_lock_end_callback(inferd_client *client, unsigned depth);

// Returns whether the calling thread is the background thread.
bool inf_client_lock_is_background(const struct inf_client_lock *lock);

// Returns whether the background thread reads answers and the calling thread is another thread.
// Returns false if there is no background thread.
bool inf_client_lock_is_served_elsewhere(const inferd_client *client);

// Returns whether a callback of the caller is running. Returns false if there is no background
// thread.
bool inf_client_lock_has_callback(const inferd_client *client);

// Wakes the background thread if it sleeps longer, or waits for other events, than the client's
// state requires. The client must have a background thread.
void inf_client_lock_wake(inferd_client *client);

// Blocks until `changed` is signalled, or until `until_ns` (0: no limit). The lock is released
// meanwhile.
void inf_client_lock_sleep(struct inf_client_lock *lock, uint64_t until_ns);

// Blocks until the background thread has done something, or until `until_ns` (0: no limit). Returns
// false at once if there is nothing to wait for, because the time is over, the connection has
// failed, or the client is being closed. The calling thread must not be the background thread.
bool inf_client_lock_wait(inferd_client *client, uint64_t until_ns);

// Wakes all threads that wait in inf_client_lock_wait(), so that they check whether their answer
// has arrived.
void inf_client_lock_notify(inferd_client *client);

// Calls poll() for the client's socket with `timeout_ms`. If the client has a background thread,
// the lock is released meanwhile, and inf_client_lock_wake() ends the poll.
void inf_client_lock_poll(inferd_client *client, int timeout_ms);

// Frees the lock. The background thread must have ended, or must be the calling thread.
void inf_client_lock_destroy(inferd_client *client);

#endif
