// SPDX-License-Identifier: Apache-2.0
#include "client/lib/background_thread.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct inf_service {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;  // with mutex: an answer, credit, the end
    _Atomic uintptr_t owner; // the thread that holds the mutex; 0: none
    int wake_fd;             // an eventfd: ends the thread's poll()

    // under the mutex
    unsigned depth;     // how often its owner has taken it
    unsigned inside;    // other threads that are in the library
    unsigned waiting;   // of those, that wait for `changed`
    unsigned callbacks; // of the caller's, that run
    bool closed_within; // by a callback: the thread destroys the client
    bool asleep;        // in poll(), which waits for the three below
    struct pollfd socket;
    uint64_t until_ns; // 0: for ever
};

static uintptr_t self(void)
{
    return (uintptr_t)pthread_self();
}

static bool is_own_thread(const struct inf_service *service)
{
    return pthread_equal(pthread_self(), service->thread) != 0;
}

static void take(struct inf_service *service, unsigned depth)
{
    pthread_mutex_lock(&service->mutex);
    atomic_store_explicit(&service->owner, self(), memory_order_relaxed);
    service->depth = depth;
}

static unsigned let_go(struct inf_service *service)
{
    unsigned depth = service->depth;
    service->depth = 0;
    atomic_store_explicit(&service->owner, 0, memory_order_relaxed);
    pthread_mutex_unlock(&service->mutex);
    return depth;
}

// Waits for `changed`, until `until_ns` at the latest (0: no limit). The mutex is let go of meanwhile.
static void sleep_on(struct inf_service *service, uint64_t until_ns)
{
    unsigned depth = service->depth;
    const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000),
                                   .tv_nsec = (long)(until_ns % 1000000000)};
    atomic_store_explicit(&service->owner, 0, memory_order_relaxed);
    if (until_ns == 0)
        pthread_cond_wait(&service->changed, &service->mutex);
    else
        pthread_cond_timedwait(&service->changed, &service->mutex, &until);
    atomic_store_explicit(&service->owner, self(), memory_order_relaxed);
    service->depth = depth;
}

// Whether the library's thread sleeps for longer, or for something else, than there is to do now.
static bool oversleeps(inferd_client *client)
{
    const struct inf_service *service = client->service;
    const struct pollfd now = inf_client_pollfd(client);
    uint64_t wake_ns = inf_client_wake_ns(client);
    if (!service->asleep)
        return false;
    // A greeting goes over another socket, which may have the number of the one that is gone.
    return client->closing || !client->greeted || client->ended_head != NULL ||
           now.fd != service->socket.fd || (now.events & ~service->socket.events) != 0 ||
           (wake_ns != 0 && (service->until_ns == 0 || wake_ns < service->until_ns));
}

static void wake(inferd_client *client)
{
    if (oversleeps(client))
        (void)!eventfd_write(client->service->wake_fd, 1);
}

void inf_service_enter(inferd_client *client)
{
    struct inf_service *service = client->service;
    if (service == NULL)
        return;
    // Only this thread writes its own number there, so that it cannot be seen by mistake.
    if (atomic_load_explicit(&service->owner, memory_order_relaxed) == self()) {
        service->depth++;
        return;
    }
    take(service, 1);
    if (!is_own_thread(service))
        service->inside++;
}

void inf_service_leave(inferd_client *client)
{
    struct inf_service *service = client->service;
    if (service == NULL || --service->depth > 0)
        return;
    if (!is_own_thread(service)) {
        service->inside--;
        if (client->closing)
            pthread_cond_broadcast(&service->changed);
        wake(client);
    }
    (void)let_go(service);
}

unsigned inf_service_pause(inferd_client *client)
{
    return client->service == NULL ? 0 : let_go(client->service);
}

void inf_service_resume(inferd_client *client, unsigned depth)
{
    if (client->service != NULL)
        take(client->service, depth);
}

unsigned inf_service_callback_begin(inferd_client *client)
{
    if (client->service == NULL)
        return 0;
    inf_service_changed(client);
    client->service->callbacks++;
    return let_go(client->service);
}

void inf_service_callback_end(inferd_client *client, unsigned depth)
{
    if (client->service == NULL)
        return;
    take(client->service, depth);
    client->service->callbacks--;
}

bool inf_service_is_elsewhere(const inferd_client *client)
{
    return client->service != NULL && !is_own_thread(client->service);
}

bool inf_service_is_calling(const inferd_client *client)
{
    return client->service != NULL && client->service->callbacks > 0;
}

bool inf_service_wait(inferd_client *client, uint64_t until_ns)
{
    struct inf_service *service = client->service;
    bool over = client->failure.code != INF_OK && client->parked == NULL &&
                client->ended_head == NULL && service->callbacks == 0;
    if (client->closing || over || (until_ns != 0 && inf_client_now_ns() >= until_ns))
        return false;
    wake(client);
    service->waiting++;
    sleep_on(service, until_ns);
    service->waiting--;
    return true;
}

void inf_service_changed(inferd_client *client)
{
    if (client->service != NULL && client->service->waiting > 0)
        pthread_cond_broadcast(&client->service->changed);
}

void inf_service_poll(inferd_client *client, int timeout_ms)
{
    struct inf_service *service = client->service;
    struct pollfd polled[2] = {inf_client_pollfd(client), {.events = POLLIN}};
    if (service == NULL) {
        (void)poll(polled, 1, timeout_ms); // EINTR: just another round
        return;
    }
    polled[1].fd = service->wake_fd;
    service->socket = polled[0];
    service->until_ns = inf_client_wake_ns(client);
    service->asleep = true;
    unsigned depth = let_go(service);
    (void)poll(polled, 2, timeout_ms);
    take(service, depth);
    service->asleep = false;
    eventfd_t count;
    if (polled[1].revents != 0)
        (void)!eventfd_read(service->wake_fd, &count);
}

// --- the thread ---

static void *serve(void *context)
{
    inferd_client *client = context;
    struct inf_service *service = client->service;
    inf_service_enter(client);
    while (!client->closing) {
        inf_client_process(client);
        if (!client->closing)
            inf_service_poll(client, inf_client_poll_ms(client, 0));
    }
    if (!service->closed_within) {
        inf_service_leave(client);
        return NULL;
    }
    pthread_cond_broadcast(&service->changed);
    while (service->inside > 0)
        sleep_on(service, 0);
    inf_service_leave(client);
    pthread_detach(pthread_self());
    inf_client_destroy(client);
    return NULL;
}

static enum inf_code fail_start(struct inf_error *err, int error)
{
    return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                           "cannot start a thread for the client: %s", strerror(error));
}

static void init_locks(struct inf_service *service)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC); // as inf_client_now_ns()
    pthread_mutex_init(&service->mutex, NULL);
    pthread_cond_init(&service->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

void inf_service_destroy(struct inf_service **service_place)
{
    struct inf_service *service = *service_place;
    *service_place = NULL;
    if (service == NULL)
        return;
    if (service->wake_fd >= 0)
        close(service->wake_fd);
    pthread_cond_destroy(&service->changed);
    pthread_mutex_destroy(&service->mutex);
    free(service);
}

static enum inf_code start(inferd_client *client, struct inf_error *err)
{
    sigset_t all, before;
    struct inf_service *service = calloc(1, sizeof *service);
    if (service == NULL)
        return fail_start(err, ENOMEM);
    init_locks(service);
    client->service = service;
    service->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (service->wake_fd < 0)
        return fail_start(err, errno);
    // The caller's handlers of signals are for the caller's threads.
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    take(service, 1); // the thread waits until its number is written
    int error = pthread_create(&service->thread, NULL, serve, client);
    (void)let_go(service);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error == 0 ? INF_OK : fail_start(err, error);
}

int inferd_start_thread(inferd_client *client, struct inferd_error *err)
{
    struct inf_error error = {.code = INF_OK};
    if (client->service != NULL || client->depth > 0) {
        inf_fail(&error, INF_PRECONDITION,
                 client->service != NULL ? "a thread serves this client already"
                                         : "a callback cannot start the client's thread");
    } else if (start(client, &error) != INF_OK) {
        inf_service_destroy(&client->service);
    }
    return error.code == INF_OK ? INFERD_OK : inf_client_report(err, &error);
}

void inf_service_close(inferd_client *client)
{
    struct inf_service *service = client->service;
    inf_service_enter(client);
    client->closing = true;
    if (is_own_thread(service)) {
        service->closed_within = true;
        inf_service_leave(client);
        return;
    }
    wake(client);
    pthread_cond_broadcast(&service->changed);
    while (service->inside > 1)
        sleep_on(service, 0);
    inf_service_leave(client);
    pthread_join(service->thread, NULL);
    inf_client_destroy(client);
}
