// SPDX-License-Identifier: Apache-2.0
// HELLO negotiates version, limits and features. Later, CREDIT frames announce limits that an admin
// changes.
#include "daemon/connection/hello.h"

#include <string.h>

#include "daemon/connection/fail.h"
#include "daemon/connection/reply.h"

enum inf_code inf_connection_refuse_frame(const struct inf_frame *frame, const char *wanted,
                                          struct inf_error *err)
{
    return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_FRAME, "%s frame: %s",
                           inf_frame_type_name(frame->header.type), wanted);
}

// Returns the limit to grant to a client: `wanted`, the value in its HELLO frame, but at most
// `most`. If HELLO asks for no value (0), returns the default `usual`.
static uint32_t choose_limit(uint32_t wanted, uint32_t usual, uint32_t most)
{
    if (wanted == 0)
        return usual;
    return INF_MIN(wanted, most);
}

// Features that the daemon offers beyond the first version of the protocol.
static const char *const features[] = {
    "model_repository", "inferd.memfd", "inferd.deadline", "inferd.cancel", "inferd.session",
    "inferd.order",     "inferd.alloc", "inferd.credit",   "inferd.data",   "inferd.queue_timeout"};

// Returns how many requests may be in flight on a connection: the number granted at HELLO, or fewer
// if an admin lowered the limit.
static uint32_t find_credit(const struct inf_connection *connection)
{
    return INF_MIN(connection->streams_granted,
                   connection->set->options.config->requests_per_connection_max);
}

void inf_connections_adjust_credit(struct inf_connections *connections)
{
    struct inf_connection *next;
    for (struct inf_connection *connection = connections->all; connection != NULL;
         connection = next) {
        next = connection->next;
        uint32_t credit = find_credit(connection);
        uint64_t bytes = connections->options.config->request_bytes_per_connection_max;
        if (connection->state != INF_CONNECTION_OPEN ||
            (credit == connection->limits.streams && bytes == connection->credit_bytes))
            continue;
        const struct inf_reply reply = {.type = INF_FRAME_CREDIT};
        const union inf_message message = {.credit = {.requests = credit, .bytes = bytes}};
        connection->limits.streams = credit;
        connection->credit_bytes = bytes;
        inf_connection_send(connection, &reply, INF_MESSAGE_CREDIT, &message);
    }
}

static bool has_feature(const struct inf_hello *hello, const char *feature)
{
    for (uint32_t i = 0; i < hello->feature_count; i++)
        if (strcmp(hello->features[i], feature) == 0)
            return true;
    return false;
}

static void accept_hello(struct inf_connection *connection) INF_ON_LOOP
{
    struct inf_connections *set = connection->set;
    const struct inf_limits_message *wanted = &set->message.hello.limits;
    bool takes_pieces = has_feature(&set->message.hello, "inferd.data");
    connection->streams_granted =
        choose_limit(wanted->streams, INF_CONNECTION_STREAMS, INF_LIMIT_STREAMS);
    connection->limits = (struct inf_limits_message){
        .meta_bytes = INF_LIMIT_META_BYTES,
        .data_bytes = choose_limit(wanted->data_bytes, INF_LIMIT_DATA_BYTES, INF_LIMIT_DATA_BYTES),
        .streams = find_credit(connection),
        .regions = INF_LIMIT_REGIONS,
        .region_bytes = INF_LIMIT_REGION_BYTES,
        .frame_fds = INF_LIMIT_FRAME_FDS,
        .stream_bytes = INF_LIMIT_STREAM_DATA_BYTES,
    };
    connection->credit_bytes = set->options.config->request_bytes_per_connection_max;
    connection->name = inf_quote(set->message.hello.client_name);
    connection->reply_bytes_max = connection->limits.data_bytes;
    if (takes_pieces)
        connection->reply_bytes_max =
            wanted->stream_bytes == 0 ? INF_LIMIT_STREAM_DATA_BYTES
                                      : INF_MIN(wanted->stream_bytes, INF_LIMIT_STREAM_DATA_BYTES);
    set->message.hello_ack = (struct inf_hello_ack){
        .major = INF_PROTOCOL_MAJOR,
        .minor = INF_PROTOCOL_MINOR,
        .server_name = "inferd",
        .server_version = set->options.version,
        .limits = connection->limits,
        .feature_count = INF_ARRAY_LENGTH(features),
        .credit_requests = connection->limits.streams,
        .credit_bytes = connection->credit_bytes,
        .epoch = {set->epoch[0], set->epoch[1]},
        .role = connection->caller.admin ? "admin" : "client",
        .clock = "CLOCK_MONOTONIC",
    };
    memcpy(set->message.hello_ack.features, features, sizeof features);
    const struct inf_reply reply = {.type = INF_FRAME_HELLO_ACK};
    connection->state = INF_CONNECTION_OPEN;
    inf_connection_send(connection, &reply, INF_MESSAGE_HELLO_ACK, &set->message);
}

void inf_connection_take_hello(struct inf_connection *connection, struct inf_frame *frame)
{
    struct inf_connections *set = connection->set;
    struct inf_error err;
    enum inf_code code;
    if (frame->header.type != INF_FRAME_HELLO)
        code = inf_connection_refuse_frame(frame, "came first, wanted HELLO", &err);
    else if (frame->rejected.code != INF_OK)
        code = (err = frame->rejected).code;
    else
        code =
            inf_message_decode(&set->message, INF_MESSAGE_HELLO, frame->meta, set->scratch, &err);
    if (code == INF_OK && set->message.hello.major != INF_PROTOCOL_MAJOR)
        code = inf_fail_reason(&err, INF_UNSUPPORTED, INF_REASON_FEATURE,
                               "protocol version %u.%u is not spoken here, wanted %d.0 to %d.%d",
                               set->message.hello.major, set->message.hello.minor,
                               INF_PROTOCOL_MAJOR, INF_PROTOCOL_MAJOR, INF_PROTOCOL_MINOR);
    if (code == INF_OK)
        accept_hello(connection);
    else
        inf_connection_fail(connection, &err);
}
