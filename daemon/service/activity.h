// SPDX-License-Identifier: Apache-2.0
// Lists the requests in flight and the connections, and ends single ones. Requests and connections
// belong to the code in daemon/connection, on which the service does not depend. That code
// therefore gives the service a table of functions, struct inf_client_directory, which the handlers
// of RequestList, ClientList, RequestCancel and ClientDisconnect call.
#ifndef INF_DAEMON_SERVICE_ACTIVITY_H
#define INF_DAEMON_SERVICE_ACTIVITY_H

#include "daemon/service/service.h"
#include "proto/core/utf8.h"

// The rows of the answer to RequestList or ClientList, oldest first.
struct inf_activity {
    uint32_t count;    // number of rows in `requests` or in `clients`
    uint32_t left_out; // number of requests or connections that have no row
    struct inf_request_entry requests[INF_ACTIVITY_ROWS];
    struct inf_client_entry clients[INF_ACTIVITY_ROWS];
    struct inf_quoted texts[INF_ACTIVITY_ROWS]; // copies of texts from clients; rows point to them
};

// Functions that daemon/connection implements. `request` is the request that asks: if its client is
// an admin, it sees all connections, otherwise only the connections of its own user.
struct inf_client_directory {
    // Fill activity->requests or activity->clients, and the members count and left_out of
    // *activity.
    void (*list_requests)(void *context, const struct inf_request *request,
                          struct inf_activity *activity);
    void (*list_clients)(void *context, const struct inf_request *request,
                         struct inf_activity *activity);
    // Ends a request as if its own client had sent a CANCEL frame.
    //
    // INF_NOT_FOUND  the client that asks sees no such request.
    enum inf_code (*cancel)(void *context, const struct inf_request *request,
                            const struct inf_client_target *target, struct inf_error *err);
    // Ends a connection: its client gets an ERROR frame, and its requests are cancelled.
    //
    // INF_NOT_FOUND  the client that asks sees no such connection.
    // INF_INVALID    the target is the connection that sent `request`.
    enum inf_code (*disconnect)(void *context, const struct inf_request *request,
                                const struct inf_client_target *target, struct inf_error *err);
};

// Sets the functions that the handlers call. `directory` and `context` must stay valid as long as
// the service handles requests.
void inf_service_set_directory(struct inf_service *service,
                               const struct inf_client_directory *directory, void *context);

// Returns the time at which the daemon accepted the request of a call, on the clock of
// inf_clock_ns().
uint64_t inf_service_accepted_ns(const struct inf_call *call) INF_ON_LOOP;

// Fills the fields of `entry` that the service knows: stream, method, phase, age, data, and for an
// inference also model, version, device, rows and id. `entry` then points into the call and `text`.
void inf_service_describe_call(struct inf_service *service, const struct inf_call *call,
                               struct inf_request_entry *entry,
                               struct inf_quoted *text) INF_ON_LOOP;

#endif
