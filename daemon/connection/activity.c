// SPDX-License-Identifier: Apache-2.0
// Implements struct inf_client_directory (daemon/service/activity.h) for the set of connections.
//
// The lists are made on the loop, which must not be delayed. A list of requests therefore visits at
// most VISITS_MAX requests. It keeps the oldest of them, because a request that is slow is old.
#include "daemon/connection/activity.h"

#include <inttypes.h>
#include <string.h>

#include "backends/base/clock.h"
#include "daemon/connection/end_call.h"
#include "daemon/connection/fail.h"
#include "daemon/connection/watch.h"
#include "daemon/service/activity.h"

// The most requests that one list visits. Visiting this many takes less than a millisecond.
#define VISITS_MAX 4096u

// A request that can become a row of the list: a call or an upload. The list has a row for
// each candidate in `oldest`.
struct candidate {
    const struct inf_connection *connection;
    const struct inf_call *call; // NULL: the candidate is `upload`, not a call
    const struct inf_upload *upload;
    uint64_t since_ns;
};

struct candidates {
    uint32_t count, visits;
    struct candidate oldest[INF_ACTIVITY_ROWS]; // oldest first
};

static bool may_see(const struct inf_request *viewer, const struct inf_connection *connection)
{
    return viewer->caller->admin || viewer->caller->uid == (uint32_t)connection->caller.uid;
}

// Inserts a request into the list, which is sorted by age. If the list is full, the youngest
// request is dropped.
static void add_candidate(struct candidates *list, const struct candidate *candidate)
{
    uint32_t at = list->count;
    list->visits++;
    while (at > 0 && list->oldest[at - 1].since_ns > candidate->since_ns)
        at--;
    if (at == INF_ACTIVITY_ROWS)
        return;
    uint32_t moved = INF_MIN(list->count, INF_ACTIVITY_ROWS - 1) - at;
    memmove(&list->oldest[at + 1], &list->oldest[at], moved * sizeof list->oldest[0]);
    list->oldest[at] = *candidate;
    list->count = at + moved + 1;
}

static void add_requests(struct candidates *list,
                         const struct inf_connection *connection) INF_ON_LOOP
{
    for (const struct inf_call *call = connection->calls; call != NULL && list->visits < VISITS_MAX;
         call = call->next)
        add_candidate(list, &(struct candidate){.connection = connection,
                                                .call = call,
                                                .since_ns = inf_service_accepted_ns(call)});
    for (const struct inf_upload *upload = connection->oldest_upload;
         upload != NULL && list->visits < VISITS_MAX; upload = upload->newer)
        add_candidate(list, &(struct candidate){.connection = connection,
                                                .upload = upload,
                                                .since_ns = upload->since_ns});
}

static void describe_upload(const struct inf_upload *upload, struct inf_request_entry *entry)
{
    entry->stream_id = upload->stream_id;
    entry->phase = "upload";
    entry->age_ns = inf_clock_ns() - upload->since_ns;
    entry->data_bytes = upload->got_bytes;
}

static void list_requests(void *context, const struct inf_request *viewer,
                          struct inf_activity *activity) INF_ON_LOOP
{
    const struct inf_connections *set = context;
    struct candidates list = {.count = 0};
    uint32_t total = 0;
    for (const struct inf_connection *connection = set->all; connection != NULL;
         connection = connection->next) {
        if (!may_see(viewer, connection))
            continue;
        total += connection->call_count + connection->upload_count;
        add_requests(&list, connection);
    }
    for (uint32_t i = 0; i < list.count; i++) {
        const struct candidate *candidate = &list.oldest[i];
        struct inf_request_entry *entry = &activity->requests[i];
        *entry = (struct inf_request_entry){.client_id = candidate->connection->id,
                                            .uid = (uint32_t)candidate->connection->caller.uid,
                                            .pid = (int32_t)candidate->connection->pid};
        if (candidate->call != NULL)
            inf_service_describe_call(set->options.service, candidate->call, entry,
                                      &activity->texts[i]);
        else
            describe_upload(candidate->upload, entry);
    }
    activity->count = list.count;
    activity->left_out = total - list.count;
}

static void describe_client(const struct inf_connection *connection, uint64_t now_ns,
                            struct inf_client_entry *entry)
{
    *entry = (struct inf_client_entry){
        .client_id = connection->id,
        .uid = (uint32_t)connection->caller.uid,
        .pid = (int32_t)connection->pid,
        .name = connection->name.text,
        .role = connection->caller.admin ? "admin" : "client",
        .age_ns = now_ns - connection->opened_ns,
        .requests = connection->requests,
        .data_bytes = connection->data_bytes,
        .unread_bytes = inf_connection_waiting_bytes(connection),
        .region_bytes = connection->regions.bytes,
        .in_flight = connection->in_flight,
        .regions = connection->regions.count,
        .sessions = connection->sessions.count,
    };
}

static void list_clients(void *context, const struct inf_request *viewer,
                         struct inf_activity *activity) INF_ON_LOOP
{
    const struct inf_connections *set = context;
    const uint64_t now_ns = inf_clock_ns();
    uint32_t total = 0;
    for (const struct inf_connection *connection = set->all; connection != NULL;
         connection = connection->next)
        total += may_see(viewer, connection);
    activity->count = INF_MIN(total, INF_ACTIVITY_ROWS);
    activity->left_out = total - activity->count;
    // set->all begins with the newest connection, but the rows begin with the oldest connection.
    uint32_t row = total;
    for (const struct inf_connection *connection = set->all; connection != NULL;
         connection = connection->next)
        if (may_see(viewer, connection) && --row < activity->count)
            describe_client(connection, now_ns, &activity->clients[row]);
}

// Finds the connection `client_id`. If `viewer` is not allowed to see it, fails with the same error
// as for a connection that does not exist.
static enum inf_code find_client(struct inf_connections *set, const struct inf_request *viewer,
                                 uint64_t client_id, struct inf_connection **out_connection,
                                 struct inf_error *err)
{
    for (struct inf_connection *connection = set->all; connection != NULL;
         connection = connection->next)
        if (connection->id == client_id && may_see(viewer, connection)) {
            *out_connection = connection;
            return INF_OK;
        }
    return inf_fail(err, INF_NOT_FOUND, "client %" PRIu64 ": %s", client_id,
                    viewer->caller->admin ? "there is none"
                                          : "this user has none with this number");
}

static enum inf_code cancel_request(void *context, const struct inf_request *viewer,
                                    const struct inf_client_target *target,
                                    struct inf_error *err) INF_ON_LOOP
{
    struct inf_connection *connection = NULL;
    INF_TRY(find_client(context, viewer, target->client_id, &connection, err));
    struct inf_call *call = connection->calls;
    while (call != NULL && (call->stream_id != target->stream_id || call->answered))
        call = call->next;
    if (call == NULL)
        return inf_fail(err, INF_NOT_FOUND,
                        "request %" PRIu64 " of client %" PRIu64 " is not in flight",
                        target->stream_id, target->client_id);
    inf_connection_end_call(connection, call,
                            viewer->caller->admin ? INF_CALL_END_ADMIN : INF_CALL_END_USER);
    return INF_OK;
}

static enum inf_code disconnect_client(void *context, const struct inf_request *viewer,
                                       const struct inf_client_target *target,
                                       struct inf_error *err) INF_ON_LOOP
{
    struct inf_connection *connection = NULL;
    struct inf_error reason;
    INF_TRY(find_client(context, viewer, target->client_id, &connection, err));
    if (connection->id == viewer->client_id)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "client %" PRIu64 " is the one that asks: it can disconnect itself",
                               target->client_id);
    inf_fail_reason(&reason, INF_CANCELLED,
                    viewer->caller->admin ? INF_REASON_BY_ADMIN : INF_REASON_BY_CLIENT,
                    "disconnected by %s",
                    viewer->caller->admin ? "an admin" : "another client of the same user");
    inf_connection_fail(connection, &reason);
    return INF_OK;
}

void inf_connections_publish(struct inf_connections *connections)
{
    static const struct inf_client_directory directory = {.list_requests = list_requests,
                                                          .list_clients = list_clients,
                                                          .cancel = cancel_request,
                                                          .disconnect = disconnect_client};
    inf_service_set_directory(connections->options.service, &directory, connections);
}
