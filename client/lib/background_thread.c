// SPDX-License-Identifier: Apache-2.0
// The background thread of a client: it runs rounds of the event loop until the client is closed.
//
// inferd_close() may be called by a thread of the caller, which then waits until the background
// thread has ended, or by a callback. A callback runs on the background thread itself, so in that
// case the background thread finishes its round, waits until no other thread is in the library, and
// destroys the client.
#include "client/lib/background_thread.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "client/lib/client.h"
#include "client/lib/client_lock.h"
#include "client/lib/error.h"
#include "client/lib/event_loop.h"
#include "client/lib/io/poll_state.h"

static void *run_thread(void *context)
{
    inferd_client *client = context;
    struct inf_client_lock *lock = client->lock;
    inf_client_lock_enter(client);
    while (!client->closing) {
        inf_client_event_loop_run_once(client);
        if (!client->closing)
            inf_client_lock_poll(client, inf_client_poll_state_timeout_ms(client, 0));
    }
    if (!lock->closed_by_callback) {
        inf_client_lock_leave(client);
        return NULL;
    }
    pthread_cond_broadcast(&lock->changed);
    while (lock->inside > 0)
        inf_client_lock_sleep(lock, 0);
    inf_client_lock_leave(client);
    pthread_detach(pthread_self());
    inf_client_destroy(client);
    return NULL;
}

static enum inf_code fail_start(struct inf_error *err, int error)
{
    return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                           "cannot start a thread for the client: %s", strerror(error));
}

static enum inf_code start_thread(inferd_client *client, struct inf_error *err)
{
    sigset_t all, before;
    int error = inf_client_lock_create(client);
    if (error != 0)
        return fail_start(err, error);
    struct inf_client_lock *lock = client->lock;
    // The thread blocks all signals, so that signal handlers of the application run on the
    // application's threads.
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    // Hold the lock while the thread starts, so that the new thread, which takes the lock first,
    // waits until lock->thread is set.
    inf_client_lock_reacquire(lock, 1);
    error = pthread_create(&lock->thread, NULL, run_thread, client);
    (void)inf_client_lock_release(lock);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error == 0 ? INF_OK : fail_start(err, error);
}

int inferd_start_thread(inferd_client *client, struct inferd_error *err)
{
    struct inf_error error = {.code = INF_OK};
    if (client->lock != NULL || client->depth > 0) {
        inf_fail(&error, INF_PRECONDITION,
                 client->lock != NULL ? "a thread serves this client already"
                                      : "a callback cannot start the client's thread");
    } else if (start_thread(client, &error) != INF_OK) {
        inf_client_lock_destroy(client);
    }
    return error.code == INF_OK ? INFERD_OK : inf_client_report_error(err, &error);
}

void inf_client_background_thread_close(inferd_client *client)
{
    struct inf_client_lock *lock = client->lock;
    inf_client_lock_enter(client);
    client->closing = true;
    if (inf_client_lock_is_background(lock)) {
        lock->closed_by_callback = true;
        inf_client_lock_leave(client);
        return;
    }
    inf_client_lock_wake(client);
    pthread_cond_broadcast(&lock->changed);
    while (lock->inside > 1)
        inf_client_lock_sleep(lock, 0);
    inf_client_lock_leave(client);
    pthread_join(lock->thread, NULL);
    inf_client_destroy(client);
}
