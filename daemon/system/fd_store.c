// SPDX-License-Identifier: Apache-2.0
// Sends FDSTORE=1 and FDSTOREREMOVE=1 to the service manager. A message that the manager has no
// room for waits in a list, with a duplicate of its descriptor, until the socket is writable. The
// list is bounded, because clients decide how often descriptors are added and removed: nothing is
// added while as many messages wait as the store has room for, and a removal follows an addition.
#include "daemon/system/fd_store.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "backends/base/log.h"
#include "daemon/system/notify.h"
#include "proto/core/send_fd.h"

#define NAME_BYTES 64
// How long the destruction waits for the service manager.
#define FLUSH_MS 1000

// A message that waits to be sent.
struct message {
    struct message *next;
    int fd; // a descriptor to be added; -1: the name is to be removed
    char name[NAME_BYTES];
};

struct inf_fd_store {
    int socket;
    uint32_t room; // most descriptors in the store
    uint32_t held; // descriptors that are in it when all messages are sent
    struct message *first, *last;
    uint32_t waiting; // number of messages in the list
    uint64_t lost;    // descriptors that were accepted and not sent
    const struct inf_log *log;
    struct event *writable;
};

enum send_result {
    SEND_DONE,
    SEND_BLOCKED, // the manager has no room for the message at present
    SEND_FAILED,  // any other error, such as too many descriptors on their way (ETOOMANYREFS)
};

// Sends one message.
static enum send_result try_send(const struct inf_fd_store *store, const char *name, int fd)
{
    char text[NAME_BYTES + 32];
    union inf_send_fd_control control;
    snprintf(text, sizeof text, "%s=1\nFDNAME=%s\n", fd >= 0 ? "FDSTORE" : "FDSTOREREMOVE", name);
    struct iovec part = {.iov_base = text, .iov_len = strlen(text)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0)
        inf_send_fd_attach(&message, &control, fd);
    ssize_t sent = sendmsg(store->socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0)
        return SEND_DONE;
    return errno == EAGAIN || errno == EINTR || errno == ENOBUFS ? SEND_BLOCKED : SEND_FAILED;
}

// Reports the first message, which is not sent, if it has a descriptor. The name counts as held
// until its owner removes it.
static void report_lost(struct inf_fd_store *store, const char *reason)
{
    if (store->first->fd < 0)
        return;
    store->lost++;
    inf_log(store->log, INF_LOG_WARNING,
            "descriptor not stored for the next process name=%s reason=\"%s\"", store->first->name,
            reason);
}

static void drop_first(struct inf_fd_store *store)
{
    struct message *gone = store->first;
    store->first = gone->next;
    if (store->first == NULL)
        store->last = NULL;
    store->waiting--;
    if (gone->fd >= 0)
        close(gone->fd);
    free(gone);
}

// Sends the messages that wait. One that fails is dropped, so that those behind it are sent and the
// loop does not spin on a writable socket. A descriptor that is lost in this way is missing in the
// next process: the connection ends, or a request that names the region fails.
static void send_waiting(struct inf_fd_store *store)
{
    enum send_result result;
    while (store->first != NULL &&
           (result = try_send(store, store->first->name, store->first->fd)) != SEND_BLOCKED) {
        if (result == SEND_FAILED)
            report_lost(store, strerror(errno));
        drop_first(store);
    }
}

static void on_writable(evutil_socket_t fd, short events, void *context)
{
    (void)fd;
    (void)events;
    inf_role_enter_loop();
    struct inf_fd_store *store = context;
    send_waiting(store);
    if (store->first == NULL)
        (void)event_del(store->writable);
}

// Sends a message, or lets it wait. Returns false if it cannot be sent, or if memory is exhausted.
static bool send_or_queue(struct inf_fd_store *store, const char *name, int fd)
{
    enum send_result result = store->first == NULL ? try_send(store, name, fd) : SEND_BLOCKED;
    if (result != SEND_BLOCKED)
        return result == SEND_DONE;
    struct message *message = calloc(1, sizeof *message);
    int copy = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (message == NULL || (fd >= 0 && copy < 0)) {
        free(message);
        if (copy >= 0)
            close(copy);
        return false;
    }
    message->fd = copy;
    snprintf(message->name, sizeof message->name, "%s", name);
    if (store->last != NULL)
        store->last->next = message;
    else
        store->first = message;
    store->last = message;
    store->waiting++;
    // If libevent cannot watch the socket, the message is sent with the next one or at the end.
    (void)event_add(store->writable, NULL);
    return true;
}

bool inf_fd_store_add(struct inf_fd_store *store, const char *name, int fd)
{
    if (store->held >= store->room || store->waiting >= store->room ||
        !send_or_queue(store, name, fd))
        return false;
    store->held++;
    return true;
}

void inf_fd_store_remove(struct inf_fd_store *store, const char *name)
{
    // After a failure the descriptor stays in the store until the service stops, or until the
    // manager notices that the other end of the socket is closed.
    if (send_or_queue(store, name, -1) && store->held > 0)
        store->held--;
}

static enum inf_code init_store(struct inf_fd_store *store, struct event_base *base,
                                struct inf_error *err)
{
    struct sockaddr_un address;
    socklen_t size = 0;
    INF_TRY(inf_notify_address(&address, &size, err));
    store->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (store->socket < 0)
        return inf_fail(err, INF_EXHAUSTED, "no socket for the store: %s", strerror(errno));
    // A connected socket becomes writable when the manager has room.
    if (connect(store->socket, (const struct sockaddr *)(const void *)&address, size) < 0)
        return inf_fail(err, INF_INVALID, "NOTIFY_SOCKET: %s", strerror(errno));
    store->writable = event_new(base, store->socket, EV_WRITE | EV_PERSIST, on_writable, store);
    if (store->writable == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no event for the store");
    return INF_OK;
}

enum inf_code inf_fd_store_create(struct inf_fd_store **out_store, struct event_base *base,
                                  uint32_t room, uint32_t held, const struct inf_log *log,
                                  struct inf_error *err)
{
    struct inf_fd_store *store = calloc(1, sizeof *store);
    if (store == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for the store");
    store->socket = -1;
    store->room = room;
    store->held = held;
    store->log = log;
    enum inf_code code = init_store(store, base, err);
    if (code == INF_OK)
        *out_store = store;
    else
        inf_fd_store_destroy(&store);
    return code;
}

uint64_t inf_fd_store_lost(const struct inf_fd_store *store)
{
    return store->lost;
}

void inf_fd_store_destroy(struct inf_fd_store **store)
{
    struct inf_fd_store *gone = *store;
    if (gone == NULL)
        return;
    for (int waited_ms = 0; gone->first != NULL && waited_ms < FLUSH_MS; waited_ms += 10) {
        struct pollfd writable = {.fd = gone->socket, .events = POLLOUT};
        (void)poll(&writable, 1, 10);
        send_waiting(gone);
    }
    while (gone->first != NULL) {
        report_lost(gone, "the service manager has no room");
        drop_first(gone);
    }
    if (gone->writable != NULL)
        event_free(gone->writable);
    if (gone->socket >= 0)
        close(gone->socket);
    free(gone);
    *store = NULL;
}
