// SPDX-License-Identifier: Apache-2.0
// Watches the listening sockets. If no descriptor is left for a client, they pause. A timerfd ends
// the pause (daemon/system/timer_fd.h), because the server must be able to accept clients again
// even if memory is exhausted.
#include "daemon/listeners.h"

#include <errno.h>
#include <event2/event.h>
#include <grp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/system/listener.h"
#include "daemon/system/timer_fd.h"

#define LISTENERS_MAX 8 // the most listening sockets of one server
// How long the server stops accepting clients after it ran out of descriptors.
#define ACCEPT_PAUSE_MS 100

// A listening socket and its libevent event.
struct watched_listener {
    struct inf_listeners *listeners;
    struct inf_listener listener;
    struct event *event;
    bool admin;
};

struct inf_listeners {
    struct inf_listeners_options options;
    gid_t admin_group; // members of this group may use the admin socket; (gid_t)-1: none
    uint32_t count;
    struct watched_listener all[LISTENERS_MAX];
    int pause_fd;              // timerfd that pause_event watches
    struct event *pause_event; // fires when the server may accept clients again
    bool paused;               // no client is accepted until pause_event fires
};

// --- accepting clients ---

// Accepts on all listeners again after a pause. If libevent cannot watch a listener, starts another
// pause and retries then.
static void on_pause_over(evutil_socket_t fd, short what, void *context)
{
    (void)what;
    inf_role_enter_loop();
    inf_timer_fd_clear(fd);
    struct inf_listeners *listeners = context;
    bool failed = false;
    for (uint32_t i = 0; i < listeners->count; i++)
        failed |= event_add(listeners->all[i].event, NULL) != 0;
    listeners->paused = failed;
    if (failed)
        inf_timer_fd_set(listeners->pause_fd, ACCEPT_PAUSE_MS);
}

// Stops accepting for a while, because no descriptor is left. Meanwhile clients wait in the backlog
// of the socket, and the loop does not spin on the readable listener.
static void pause_accepting(struct inf_listeners *listeners, int error)
{
    if (!listeners->paused)
        inf_log(listeners->options.log, INF_LOG_WARNING, "no client can be accepted error=\"%s\"",
                strerror(error));
    for (uint32_t i = 0; i < listeners->count; i++)
        event_del(listeners->all[i].event);
    listeners->paused = true;
    inf_timer_fd_set(listeners->pause_fd, ACCEPT_PAUSE_MS);
}

static void on_acceptable(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    inf_role_enter_loop();
    const struct watched_listener *listener = context;
    const struct inf_listeners *listeners = listener->listeners;
    listeners->options.ready(listeners->options.context, (uint32_t)(listener - listeners->all));
}

int inf_listeners_accept(struct inf_listeners *listeners, uint32_t listener)
{
    int client =
        accept4(listeners->all[listener].listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client >= 0)
        return client;
    // After EINTR and ECONNABORTED the socket is still readable if a client waits.
    if (errno != EINTR && errno != ECONNABORTED && errno != EAGAIN && errno != EWOULDBLOCK)
        pause_accepting(listeners, errno);
    return -1;
}

// --- who a client is ---

enum inf_code inf_listeners_identify(const struct inf_listeners *listeners, uint32_t listener,
                                     struct inf_peer *peer, struct inf_error *err)
{
    struct inf_credentials who;
    INF_TRY(inf_peer_credentials(peer->fd, listeners->admin_group, &who, err));
    bool trusted = who.uid == 0 || who.uid == geteuid() || who.in_group;
    peer->uid = who.uid;
    peer->pid = who.pid;
    peer->admin = listeners->all[listener].admin && trusted;
    return INF_OK;
}

// Returns true if both sockets have the same local address. An accepted socket has that of the
// socket that accepted it.
static bool has_same_address(int a, int b)
{
    struct sockaddr_un first = {0}, second = {0};
    socklen_t first_size = sizeof first, second_size = sizeof second;
    return getsockname(a, (struct sockaddr *)(void *)&first, &first_size) == 0 &&
           getsockname(b, (struct sockaddr *)(void *)&second, &second_size) == 0 &&
           first.sun_family == AF_UNIX && first_size == second_size &&
           first_size > offsetof(struct sockaddr_un, sun_path) &&
           memcmp(&first, &second, first_size) == 0;
}

bool inf_listeners_find(const struct inf_listeners *listeners, int fd, uint32_t *out_listener)
{
    for (uint32_t i = 0; i < listeners->count; i++)
        if (has_same_address(fd, listeners->all[i].listener.fd)) {
            *out_listener = i;
            return true;
        }
    return false;
}

// --- opening and closing ---

static enum inf_code find_admin_group(struct inf_listeners *listeners, struct inf_error *err)
{
    const char *name = listeners->options.config->admin_group;
    listeners->admin_group = (gid_t)-1;
    if (name[0] == '\0')
        return INF_OK;
    char buffer[4096];
    struct group entry;
    struct group *found = NULL;
    if (getgrnam_r(name, &entry, buffer, sizeof buffer, &found) != 0 || found == NULL)
        return inf_fail(err, INF_INVALID, "admin_group = %s: there is no such group", name);
    listeners->admin_group = found->gr_gid;
    return INF_OK;
}

static enum inf_code open_listener(struct inf_listeners *listeners, struct inf_listener *listener,
                                   bool admin, struct inf_error *err)
{
    const struct inf_config *config = listeners->options.config;
    bool grouped = admin && listeners->admin_group != (gid_t)-1;
    const struct inf_listener_options options = {
        .path = admin ? config->admin_socket : config->socket,
        .mode = admin && !grouped ? 0600 : 0660,
        .group = grouped ? listeners->admin_group : (gid_t)-1};
    return inf_listener_open(listener, &options, err);
}

// `inherited` is -1: opens the socket.
static enum inf_code add_listener(struct inf_listeners *listeners, bool admin, int inherited,
                                  struct inf_error *err)
{
    if (listeners->count == LISTENERS_MAX)
        return inf_fail(err, INF_EXHAUSTED, "more than %d listening sockets", LISTENERS_MAX);
    struct watched_listener *added = &listeners->all[listeners->count++];
    added->listeners = listeners;
    added->admin = admin;
    inf_listener_init(&added->listener);
    if (inherited >= 0)
        inf_listener_adopt(&added->listener, inherited);
    else
        INF_TRY(open_listener(listeners, &added->listener, admin, err));
    added->event = event_new(listeners->options.base, added->listener.fd, EV_READ | EV_PERSIST,
                             on_acceptable, added);
    return added->event != NULL ? INF_OK : inf_fail(err, INF_EXHAUSTED, "no memory for events");
}

static enum inf_code init_listeners(struct inf_listeners *listeners, struct inf_error *err)
{
    const struct inf_listeners_options *options = &listeners->options;
    INF_TRY(find_admin_group(listeners, err));
    for (uint32_t i = 0; i < options->data_fd_count; i++)
        INF_TRY(add_listener(listeners, false, options->data_fds[i], err));
    for (uint32_t i = 0; i < options->admin_fd_count; i++)
        INF_TRY(add_listener(listeners, true, options->admin_fds[i], err));
    if (options->data_fd_count == 0)
        INF_TRY(add_listener(listeners, false, -1, err));
    if (options->admin_fd_count == 0)
        INF_TRY(add_listener(listeners, true, -1, err));
    INF_TRY(inf_timer_fd_create(&listeners->pause_fd, err));
    listeners->pause_event = event_new(options->base, listeners->pause_fd, EV_READ | EV_PERSIST,
                                       on_pause_over, listeners);
    return listeners->pause_event != NULL ? INF_OK
                                          : inf_fail(err, INF_EXHAUSTED, "no memory for events");
}

enum inf_code inf_listeners_create(struct inf_listeners **out_listeners,
                                   const struct inf_listeners_options *options,
                                   struct inf_error *err)
{
    struct inf_listeners *listeners = calloc(1, sizeof *listeners);
    if (listeners == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for listening sockets");
    listeners->options = *options;
    listeners->pause_fd = -1;
    enum inf_code code = init_listeners(listeners, err);
    if (code == INF_OK)
        *out_listeners = listeners;
    else
        inf_listeners_destroy(&listeners);
    return code;
}

enum inf_code inf_listeners_start(struct inf_listeners *listeners, struct inf_error *err)
{
    int failed = event_add(listeners->pause_event, NULL);
    for (uint32_t i = 0; i < listeners->count; i++)
        failed |= event_add(listeners->all[i].event, NULL);
    return failed == 0 ? INF_OK : inf_fail(err, INF_EXHAUSTED, "no memory for events");
}

void inf_listeners_close(struct inf_listeners *listeners)
{
    if (listeners->pause_event != NULL)
        event_del(listeners->pause_event);
    for (uint32_t i = 0; i < listeners->count; i++) {
        if (listeners->all[i].event != NULL)
            event_del(listeners->all[i].event);
        inf_listener_close(&listeners->all[i].listener);
    }
}

void inf_listeners_destroy(struct inf_listeners **listeners)
{
    struct inf_listeners *gone = *listeners;
    if (gone == NULL)
        return;
    inf_listeners_close(gone);
    for (uint32_t i = 0; i < gone->count; i++)
        if (gone->all[i].event != NULL)
            event_free(gone->all[i].event);
    if (gone->pause_event != NULL)
        event_free(gone->pause_event);
    if (gone->pause_fd >= 0)
        close(gone->pause_fd);
    free(gone);
    *listeners = NULL;
}
