// SPDX-License-Identifier: Apache-2.0
// Drives libinferd's asynchronous client from the event loop.
//
// The daemon limits the requests in flight on one connection. Further calls wait in the gateway, in
// the order of arrival, until an answer to an earlier request makes room or their own timeout
// passes. If the connection is lost, libinferd re-sends each request that the daemon certainly had
// not started, for at most RETRY_MS, and calls that arrive meanwhile wait for a connection for at
// most RETRY_MS too. A restart of the daemon that takes less time than that fails none of these
// requests. A gateway that failed them at once would also look idle to a load balancer, which would
// then send it more requests.
#include "client/gateway/core/link.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <event2/event.h>

#include "client/gateway/http/clock.h"

// Time in which libinferd re-sends a request that the daemon has not started, and in which a call
// waits for a connection, in milliseconds.
#define RETRY_MS 2000
// Interval between attempts to reconnect, and the longest time for which one attempt blocks the
// loop, in milliseconds.
#define RECONNECT_EVERY_MS 100
#define CONNECT_MS         100
// Interval at which waiting calls are sent or timed out, in milliseconds.
#define WAITING_CHECK_MS 5

static const struct inferd_error no_daemon = {INFERD_UNAVAILABLE, "", "the daemon does not answer",
                                              1000};

struct inf_link_call {
    struct inf_link *link;
    inf_link_callback callback; // NULL: the call was cancelled
    void *context;
    uint64_t stream;
    bool waiting; // the call is in the list `waiting` of the link, else in `sent`
    uint64_t begin_ms;
    inferd_request request; // valid while `waiting` is true
    const char *trace_parent;
    TAILQ_ENTRY(inf_link_call) next;
};

struct inf_link {
    struct event_base *base;
    char *path;
    inferd_client *client;
    bool ready;
    bool adopted; // made by inf_link_adopt(): the link does not reconnect
    struct event *socket, *timer, *reconnect, *check;
    int fd;
    short events;
    TAILQ_HEAD(inf_link_calls, inf_link_call) waiting, sent;
    size_t waiting_count;
    LIST_HEAD(inf_link_watchers, inf_link_watcher) watchers;
};

// Sets whether the link is ready, and tells the watchers. A callback may remove any watcher, so the
// list of those that are not told yet is never walked: the first one is taken until none is left.
static void set_ready(struct inf_link *link, bool ready)
{
    struct inf_link_watchers untold = LIST_HEAD_INITIALIZER(untold);
    struct inf_link_watcher *watcher;
    if (link->ready == ready)
        return;
    link->ready = ready;
    while ((watcher = LIST_FIRST(&link->watchers)) != NULL) {
        LIST_REMOVE(watcher, neighbours);
        LIST_INSERT_HEAD(&untold, watcher, neighbours);
    }
    while ((watcher = LIST_FIRST(&untold)) != NULL) {
        LIST_REMOVE(watcher, neighbours);
        LIST_INSERT_HEAD(&link->watchers, watcher, neighbours);
        watcher->callback(watcher->context);
    }
}

static void start_timer(struct event *timer, int ms)
{
    struct timeval time = {ms / 1000, (suseconds_t)(ms % 1000) * 1000};
    event_add(timer, &time);
}

static void handle_socket(evutil_socket_t fd, short events, void *context);

// Makes the event loop wait for the events and the timeout that libinferd's client waits for.
static void update_events(struct inf_link *link)
{
    int fd = link->ready ? inferd_fd(link->client) : -1;
    short polled = link->ready ? inferd_events(link->client) : 0;
    short events = (short)(((polled & POLLIN) ? EV_READ : 0) | ((polled & POLLOUT) ? EV_WRITE : 0));
    if (fd < 0)
        events = 0;
    if (fd != link->fd || events != link->events) {
        if (link->events != 0)
            event_del(link->socket);
        link->fd = fd;
        link->events = events;
        if (events != 0) {
            event_assign(link->socket, link->base, fd, (short)(events | EV_PERSIST), handle_socket,
                         link);
            event_add(link->socket, NULL);
        }
    }
    int timeout_ms = link->ready ? inferd_timeout(link->client) : -1;
    if (timeout_ms >= 0)
        start_timer(link->timer, timeout_ms);
    else
        event_del(link->timer);
}

static void handle_answer(void *context, inferd_result *result, const struct inferd_error *err)
{
    struct inf_link_call *call = context;
    TAILQ_REMOVE(&call->link->sent, call, next);
    if (call->callback != NULL)
        call->callback(call->context, result, err);
    else
        inferd_result_free(result);
    free(call);
}

// Returns true if an inference could not be sent because the daemon's limit of requests or bytes in
// flight is reached. The same inference can be sent later.
static bool is_out_of_credit(const struct inferd_error *err)
{
    return err->code == INFERD_RESOURCE_EXHAUSTED &&
           (strcmp(err->reason, "QUOTA_REQUESTS") == 0 || strcmp(err->reason, "QUOTA_BYTES") == 0);
}

// Removes a call from the waiting list.
static void stop_waiting(struct inf_link_call *call)
{
    TAILQ_REMOVE(&call->link->waiting, call, next);
    call->link->waiting_count--;
    call->waiting = false;
}

static void fail_waiting(struct inf_link_call *call, const struct inferd_error *err)
{
    stop_waiting(call);
    call->callback(call->context, NULL, err);
    free(call);
}

static int send_call(struct inf_link *link, const inferd_request *request,
                     struct inf_link_call *call, struct inferd_error *err)
{
    inferd_set_trace_context(link->client,
                             call->trace_parent[0] != '\0' ? call->trace_parent : NULL, NULL);
    return inferd_infer_async(link->client, request, handle_answer, call, &call->stream, err);
}

// Sends waiting calls until the daemon's limit of requests or bytes in flight is reached, and fails
// each waiting call whose timeout has passed.
static void send_waiting(struct inf_link *link)
{
    static const struct inferd_error late = {INFERD_DEADLINE_EXCEEDED, "IN_QUEUE",
                                             "the request waited longer than its timeout", 0};
    bool credit = link->ready;
    struct inf_link_call *call, *next;
    for (call = TAILQ_FIRST(&link->waiting); call != NULL; call = next) {
        next = TAILQ_NEXT(call, next);
        struct inferd_error err = {0};
        uint64_t waited_ms = inf_http_clock_ms() - call->begin_ms;
        inferd_request request = call->request;
        if (request.timeout_ms != 0 && waited_ms >= request.timeout_ms) {
            fail_waiting(call, &late);
            continue;
        }
        if (!link->ready && waited_ms >= RETRY_MS) {
            fail_waiting(call, &no_daemon);
            continue;
        }
        if (!credit)
            continue;
        if (request.timeout_ms != 0)
            request.timeout_ms -= waited_ms;
        if (send_call(link, &request, call, &err) == INFERD_OK) {
            stop_waiting(call);
            TAILQ_INSERT_TAIL(&link->sent, call, next);
        } else if (is_out_of_credit(&err))
            credit = false;
        else
            fail_waiting(call, &err);
    }
    if (link->waiting_count > 0)
        start_timer(link->check, WAITING_CHECK_MS);
}

static void process_link(struct inf_link *link)
{
    struct inferd_error err;
    if (link->ready && inferd_process(link->client, &err) != INFERD_OK) {
        if (!link->adopted)
            start_timer(link->reconnect, RECONNECT_EVERY_MS);
        set_ready(link, false);
    }
    if (link->waiting_count > 0)
        send_waiting(link);
    update_events(link);
}

static void handle_socket(evutil_socket_t fd, short events, void *context)
{
    (void)fd;
    (void)events;
    process_link(context);
}

static void connect_link(evutil_socket_t fd, short events, void *context)
{
    (void)fd;
    (void)events;
    struct inf_link *link = context;
    inferd_client *client = link->client;
    int code = client != NULL ? inferd_reconnect(client, CONNECT_MS, NULL)
                              : inferd_connect_timeout(&client, link->path, CONNECT_MS, NULL);
    if (code == INFERD_OK)
        link->client = client;
    if (code != INFERD_OK) {
        start_timer(link->reconnect, RECONNECT_EVERY_MS);
        return;
    }
    inferd_set_retry(link->client, RETRY_MS);
    set_ready(link, true);
    process_link(link);
}

// Creates a link that is not connected. Returns NULL if there is no memory.
static struct inf_link *create_link(struct event_base *base)
{
    struct inf_link *made = calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    made->base = base;
    made->fd = -1;
    TAILQ_INIT(&made->waiting);
    TAILQ_INIT(&made->sent);
    LIST_INIT(&made->watchers);
    made->socket = event_new(base, -1, 0, handle_socket, made);
    made->timer = evtimer_new(base, handle_socket, made);
    made->check = evtimer_new(base, handle_socket, made);
    made->reconnect = evtimer_new(base, connect_link, made);
    if (made->socket == NULL || made->timer == NULL || made->check == NULL ||
        made->reconnect == NULL)
        inf_link_destroy(&made);
    return made;
}

enum inf_code inf_link_create(struct inf_link **link, struct event_base *base, const char *path,
                              struct inf_error *err)
{
    *link = create_link(base);
    if (*link != NULL && path != NULL && ((*link)->path = strdup(path)) == NULL)
        inf_link_destroy(link);
    if (*link == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for a link");
    start_timer((*link)->reconnect, 0);
    return INF_OK;
}

bool inf_link_adopt(struct inf_link **link, struct event_base *base, inferd_client *client)
{
    *link = create_link(base);
    if (*link == NULL)
        return false;
    (*link)->adopted = (*link)->ready = true;
    (*link)->client = client;
    update_events(*link);
    return true;
}

void inf_link_destroy(struct inf_link **link)
{
    struct inf_link *dying = *link;
    if (dying == NULL)
        return;
    struct event *events[] = {dying->socket, dying->timer, dying->check, dying->reconnect};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(events); i++)
        if (events[i] != NULL)
            event_free(events[i]);
    inferd_close(dying->client);
    while (!TAILQ_EMPTY(&dying->waiting)) {
        struct inf_link_call *call = TAILQ_FIRST(&dying->waiting);
        stop_waiting(call);
        free(call);
    }
    while (!TAILQ_EMPTY(&dying->sent)) {
        struct inf_link_call *call = TAILQ_FIRST(&dying->sent);
        TAILQ_REMOVE(&dying->sent, call, next);
        free(call);
    }
    free(dying->path);
    free(dying);
    *link = NULL;
}

bool inf_link_is_ready(const struct inf_link *link)
{
    return link->ready;
}

void inf_link_watch(struct inf_link *link, struct inf_link_watcher *watcher)
{
    LIST_INSERT_HEAD(&link->watchers, watcher, neighbours);
}

void inf_link_unwatch(struct inf_link_watcher *watcher)
{
    LIST_REMOVE(watcher, neighbours);
}

inferd_client *inf_link_client(const struct inf_link *link)
{
    return link->client;
}

size_t inf_link_waiting_count(const struct inf_link *link)
{
    return link->waiting_count;
}

// Puts a call that could not be sent into the waiting list and returns INFERD_OK. Returns
// err->code if the call cannot be sent later or the list is full.
static int make_wait(struct inf_link *link, struct inf_link_call *call,
                     const inferd_request *request, const struct inferd_error *err)
{
    if ((link->ready && !is_out_of_credit(err)) || link->waiting_count >= INF_LINK_WAITING_MAX)
        return err->code;
    call->waiting = true;
    call->request = *request;
    TAILQ_INSERT_TAIL(&link->waiting, call, next);
    link->waiting_count++;
    start_timer(link->check, WAITING_CHECK_MS);
    return INFERD_OK;
}

int inf_link_infer(struct inf_link *link, const inferd_request *request, const char *trace_parent,
                   inf_link_callback callback, void *context, struct inf_link_call **call,
                   struct inferd_error *err)
{
    if (!link->ready && link->adopted) {
        *err = no_daemon;
        return err->code;
    }
    struct inf_link_call *made = calloc(1, sizeof *made);
    if (made == NULL) {
        *err = (struct inferd_error){INFERD_RESOURCE_EXHAUSTED, "HOST_OOM", "no memory", 1000};
        return err->code;
    }
    made->link = link;
    made->callback = callback;
    made->context = context;
    made->trace_parent = trace_parent;
    made->begin_ms = inf_http_clock_ms();
    // If other calls wait already, this call waits behind them.
    int code = INFERD_RESOURCE_EXHAUSTED;
    *err = (struct inferd_error){code, "QUOTA_REQUESTS", "too many requests wait", 100};
    if (link->ready && link->waiting_count == 0)
        code = send_call(link, request, made, err);
    if (code == INFERD_OK)
        TAILQ_INSERT_TAIL(&link->sent, made, next);
    else
        code = make_wait(link, made, request, err);
    if (code != INFERD_OK) {
        free(made);
        return code;
    }
    *call = made;
    update_events(link);
    return INFERD_OK;
}

void inf_link_cancel(struct inf_link_call *call)
{
    struct inf_link *link = call->link;
    if (call->waiting) {
        stop_waiting(call);
        free(call);
        return;
    }
    call->callback = NULL;
    (void)inferd_cancel(link->client, call->stream, NULL);
    update_events(link);
}
