// SPDX-License-Identifier: Apache-2.0
// Sends notifications to systemd without blocking. Changes of state are collected, one per line,
// and sent in order. If several status texts are queued, only the newest is sent.
#include "daemon/system/notify.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "proto/core/limits.h"
#include "proto/core/span.h"

#define NAME_DATA  "inferd"
#define NAME_ADMIN "inferd-admin"
// Size of the buffer for all queued state changes together.
#define CHANGES_BYTES 256
// Delay before a notification is tried again.
#define RETRY_MS 100

struct inf_notify {
    struct inf_notify_options options;
    int fd; // socket to systemd; -1: systemd did not start the daemon
    struct sockaddr_un address;
    socklen_t address_size;
    struct event *watchdog; // timer that pings the watchdog of systemd; NULL: it is off
    struct event *retry;
    // The queued notifications: all state changes, one per line, and only the newest status text.
    char changes[CHANGES_BYTES];
    char status[INF_NOTIFY_STATUS];
};

// --- sending notifications ---

// Sends a notification without blocking. Returns false if the socket has no room. Other errors are
// not retried, because systemd keeps its socket open as long as the daemon runs.
static bool try_send(const struct inf_notify *notify, const char *text)
{
    ssize_t sent =
        sendto(notify->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT,
               (const struct sockaddr *)(const void *)&notify->address, notify->address_size);
    return sent >= 0 || (errno != EAGAIN && errno != EINTR && errno != ENOBUFS);
}

// Sends the queued notifications. Returns false if the socket had no room.
static bool send_waiting(struct inf_notify *notify)
{
    char text[sizeof notify->changes + sizeof notify->status + 16];
    if (notify->status[0] != '\0')
        snprintf(text, sizeof text, "%sSTATUS=%s", notify->changes, notify->status);
    else
        snprintf(text, sizeof text, "%s", notify->changes);
    if (notify->fd < 0 || text[0] == '\0')
        return true;
    if (!try_send(notify, text))
        return false;
    notify->changes[0] = '\0';
    notify->status[0] = '\0';
    return true;
}

static void send_or_retry(struct inf_notify *notify)
{
    const struct timeval delay = {0, RETRY_MS * 1000};
    if (!send_waiting(notify))
        event_add(notify->retry, &delay);
}

void inf_notify_extend_start(struct inf_notify *notify, uint64_t time_ms)
{
    char text[64];
    snprintf(text, sizeof text, "EXTEND_TIMEOUT_USEC=%llu", (unsigned long long)time_ms * 1000);
    // Not queued, so that it takes no room from READY=1. If it is lost, the next one replaces it.
    if (notify->fd >= 0)
        (void)try_send(notify, text);
}

// Queues a state change and a status text. State changes are rare, but `changes` may overflow if
// systemd hangs during many reloads; then the change is lost.
static void queue_change(struct inf_notify *notify, const char *change, const char *status)
{
    size_t used = strlen(notify->changes);
    if (used + strlen(change) < sizeof notify->changes)
        snprintf(notify->changes + used, sizeof notify->changes - used, "%s", change);
    snprintf(notify->status, sizeof notify->status, "%s", status);
    // Replace line breaks in the status, because systemd would read the next line as another
    // assignment.
    for (char *c = notify->status; *c != '\0'; c++) {
        if (*c == '\n')
            *c = ' ';
    }
    send_or_retry(notify);
}

void inf_notify_ready(struct inf_notify *notify, const char *status)
{
    queue_change(notify, "READY=1\n", status);
}

void inf_notify_status(struct inf_notify *notify, const char *status)
{
    queue_change(notify, "", status);
}

void inf_notify_reloading(struct inf_notify *notify)
{
    char text[80];
    snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%llu\n",
             (unsigned long long)(inf_clock_ns() / 1000));
    queue_change(notify, text, "reloading");
}

void inf_notify_stopping(struct inf_notify *notify, const char *status)
{
    queue_change(notify, "STOPPING=1\n", status);
}

// --- functions for the loop ---

static void on_retry(evutil_socket_t fd, short events, void *context)
{
    (void)fd;
    (void)events;
    inf_role_enter_loop();
    struct inf_notify *notify = context;
    send_or_retry(notify);
}

static void on_watchdog(evutil_socket_t fd, short events, void *context)
{
    (void)fd;
    (void)events;
    inf_role_enter_loop();
    struct inf_notify *notify = context;
    // Also send queued notifications here, because the retry timer may have failed to start.
    (void)send_waiting(notify);
    // Ping the watchdog. If the socket has no room, the ping is dropped: the next one replaces it.
    if (notify->options.healthy == NULL || notify->options.healthy(notify->options.context))
        (void)try_send(notify, "WATCHDOG=1");
}

// --- a failed start ---

// How long a process that cannot start waits before it ends. systemd stops a socket that triggers
// more than 20 starts in 2 s.
#define FAILED_START_WAIT_S 5

void inf_notify_failed_start(const char *reason)
{
    sigset_t ending;
    if (getenv("NOTIFY_SOCKET") == NULL)
        return;
    (void)sd_notifyf(0, "STATUS=not started: %s", reason);
    sigemptyset(&ending);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGINT);
    sigprocmask(SIG_BLOCK, &ending, NULL);
    (void)sigtimedwait(&ending, NULL, &(struct timespec){.tv_sec = FAILED_START_WAIT_S});
}

// --- creating and destroying a notifier ---

// Fills the address of the socket to systemd from NOTIFY_SOCKET, which is a path, or an abstract
// name after '@'.
static enum inf_code fill_address(struct sockaddr_un *address, socklen_t *size, const char *name,
                                  struct inf_error *err)
{
    size_t length = strlen(name);
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if ((name[0] != '/' && name[0] != '@') || length < 2 || length >= sizeof address->sun_path)
        return inf_fail(err, INF_INVALID,
                        "NOTIFY_SOCKET: wanted an absolute path or '@' and a name, at most %zu "
                        "characters",
                        sizeof address->sun_path - 1);
    memcpy(address->sun_path, name, length);
    // The length of a path includes its NUL byte. An abstract name begins with a NUL byte and does
    // not end with one.
    if (name[0] == '@')
        address->sun_path[0] = '\0';
    *size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + (name[0] == '/' ? 1 : 0));
    return INF_OK;
}

enum inf_code inf_notify_address(struct sockaddr_un *address, socklen_t *size,
                                 struct inf_error *err)
{
    const char *name = getenv("NOTIFY_SOCKET");
    return fill_address(address, size, name != NULL ? name : "", err);
}

static enum inf_code start_watchdog(struct inf_notify *notify, struct inf_error *err)
{
    uint64_t period_us = 0;
    int wanted = sd_watchdog_enabled(0, &period_us);
    if (wanted < 0)
        return inf_fail(err, INF_INVALID, "WATCHDOG_USEC: %s", strerror(-wanted));
    if (wanted == 0)
        return INF_OK;
    notify->watchdog = event_new(notify->options.base, -1, EV_PERSIST, on_watchdog, notify);
    uint64_t ping_us = INF_MAX(period_us / 2, 1000);
    const struct timeval period = {(time_t)(ping_us / 1000000), (suseconds_t)(ping_us % 1000000)};
    if (notify->watchdog == NULL || event_add(notify->watchdog, &period) != 0)
        return inf_fail(err, INF_EXHAUSTED, "no timer for the watchdog");
    return INF_OK;
}

static enum inf_code init_notify(struct inf_notify *notify,
                                 const struct inf_notify_options *options, struct inf_error *err)
{
    notify->options = *options;
    const char *name = getenv("NOTIFY_SOCKET");
    if (name == NULL || name[0] == '\0')
        return INF_OK;
    INF_TRY(fill_address(&notify->address, &notify->address_size, name, err));
    notify->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (notify->fd < 0)
        return inf_fail(err, INF_EXHAUSTED, "no socket for notifications: %s", strerror(errno));
    notify->retry = event_new(options->base, -1, 0, on_retry, notify);
    if (notify->retry == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no timer for notifications");
    return start_watchdog(notify, err);
}

enum inf_code inf_notify_create(struct inf_notify **out_notify,
                                const struct inf_notify_options *options, struct inf_error *err)
{
    struct inf_notify *notify = calloc(1, sizeof *notify);
    if (notify == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for notifications");
    notify->fd = -1;
    enum inf_code code = init_notify(notify, options, err);
    if (code != INF_OK) {
        inf_notify_destroy(&notify);
        return code;
    }
    *out_notify = notify;
    return INF_OK;
}

void inf_notify_destroy(struct inf_notify **notify)
{
    struct inf_notify *self = *notify;
    if (self == NULL)
        return;
    if (self->fd >= 0)
        (void)send_waiting(self);
    if (self->watchdog != NULL)
        event_free(self->watchdog);
    if (self->retry != NULL)
        event_free(self->retry);
    if (self->fd >= 0)
        close(self->fd);
    free(self);
    *notify = NULL;
}

uint32_t inf_notify_store_room(void)
{
    const char *manager = getenv("NOTIFY_SOCKET");
    const char *text = getenv("FDSTORE");
    if (manager == NULL || manager[0] == '\0' || text == NULL || text[0] < '0' || text[0] > '9')
        return 0;
    char *end;
    unsigned long room = strtoul(text, &end, 10);
    return *end == '\0' ? (uint32_t)INF_MIN(room, (unsigned long)INF_LIMIT_STORED_FDS) : 0;
}

// --- inherited sockets from systemd ---

static enum inf_code check_listener(int fd, struct inf_error *err)
{
    if (sd_is_socket_unix(fd, SOCK_STREAM, 1, NULL, 0) <= 0)
        return inf_fail(err, INF_INVALID,
                        "socket %d from systemd: wanted a listening Unix stream socket", fd);
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return inf_fail(err, INF_INVALID, "socket %d from systemd: %s", fd, strerror(errno));
    return INF_OK;
}

static bool has_name(char **names, int count)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], NAME_DATA) == 0 || strcmp(names[i], NAME_ADMIN) == 0)
            return true;
    }
    return false;
}

// Descriptors that an earlier process stored have names that begin with this and are no sockets to
// listen on.
#define NAME_STORED "inferd-"

static bool is_stored(const char *name)
{
    return strncmp(name, NAME_STORED, strlen(NAME_STORED)) == 0 && strcmp(name, NAME_ADMIN) != 0;
}

// Assigns each of the `count` descriptors to the data or the admin socket, or to those that an
// earlier process stored. Takes the names of the latter.
static enum inf_code place_fds(struct inf_listen_fds *fds, char **names, int count,
                               struct inf_error *err)
{
    bool by_name = has_name(names, count);
    for (int i = 0; i < count; i++) {
        int fd = SD_LISTEN_FDS_START + i;
        if (is_stored(names[i])) {
            fds->stored[fds->stored_count++] = (struct inf_stored_fd){fd, names[i]};
            names[i] = NULL;
            continue;
        }
        bool data = by_name ? strcmp(names[i], NAME_DATA) == 0 : i == 0;
        bool admin = by_name ? strcmp(names[i], NAME_ADMIN) == 0 : i == 1;
        int *place = data ? &fds->data : &fds->admin;
        if ((!data && !admin) || *place >= 0)
            return inf_fail(err, INF_INVALID,
                            "socket %d from systemd is named '%s': wanted one '" NAME_DATA
                            "' and one '" NAME_ADMIN "'",
                            fd, names[i]);
        INF_TRY(check_listener(fd, err));
        *place = fd;
    }
    return INF_OK;
}

enum inf_code inf_listen_fds_take(struct inf_listen_fds *fds, struct inf_error *err)
{
    *fds = (struct inf_listen_fds){.data = -1, .admin = -1};
    char **names = NULL;
    int count = sd_listen_fds_with_names(1, &names);
    if (count < 0)
        return inf_fail(err, INF_INVALID, "LISTEN_FDS: %s", strerror(-count));
    fds->stored = calloc((size_t)count + 1, sizeof *fds->stored);
    enum inf_code code = fds->stored != NULL ? place_fds(fds, names, count, err)
                                             : inf_fail(err, INF_EXHAUSTED, "no memory");
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
    return code;
}

void inf_listen_fds_fini(struct inf_listen_fds *fds)
{
    for (uint32_t i = 0; i < fds->stored_count; i++) {
        if (fds->stored[i].fd >= 0)
            close(fds->stored[i].fd);
        free(fds->stored[i].name);
    }
    free(fds->stored);
    fds->stored = NULL;
    fds->stored_count = 0;
}
