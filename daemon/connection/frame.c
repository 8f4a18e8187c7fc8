// SPDX-License-Identifier: Apache-2.0
// What comes in: a connection's state machine, one function a frame type.
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "daemon/connection/connection_private.h"

static enum inf_code bad_frame(struct inf_error *err, const struct inf_frame *frame,
                               const char *wanted)
{
    return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_FRAME, "%s frame: %s",
                           inf_frame_type_name(frame->header.type), wanted);
}

// The smaller of what is wanted and what there is; what is wanted may be 0 for "as you like".
static uint32_t grant(uint32_t wanted, uint32_t usual, uint32_t most)
{
    if (wanted == 0)
        return usual;
    return INF_MIN(wanted, most);
}

// What this server can do beyond the protocol's first version.
static const char *const features[] = {
    "model_repository", "inferd.memfd", "inferd.deadline", "inferd.cancel", "inferd.session",
    "inferd.order",     "inferd.alloc", "inferd.credit",   "inferd.data",   "inferd.queue_timeout"};

// How many requests may be in flight on a connection: what was granted, or less by an admin's will.
static uint32_t credit_of(const struct inf_connection *connection)
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
        uint32_t credit = credit_of(connection);
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

static void greet(struct inf_connection *connection) INF_ON_LOOP
{
    struct inf_connections *set = connection->set;
    const struct inf_limits_message *wanted = &set->message.hello.limits;
    bool takes_pieces = has_feature(&set->message.hello, "inferd.data");
    connection->streams_granted = grant(wanted->streams, INF_CONNECTION_STREAMS, INF_LIMIT_STREAMS);
    connection->limits = (struct inf_limits_message){
        .meta_bytes = INF_LIMIT_META_BYTES,
        .data_bytes = grant(wanted->data_bytes, INF_LIMIT_DATA_BYTES, INF_LIMIT_DATA_BYTES),
        .streams = credit_of(connection),
        .regions = INF_LIMIT_REGIONS,
        .region_bytes = INF_LIMIT_REGION_BYTES,
        .frame_fds = INF_LIMIT_FRAME_FDS,
        .stream_bytes = INF_LIMIT_STREAM_DATA_BYTES,
    };
    connection->credit_bytes = set->options.config->request_bytes_per_connection_max;
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
        .role = connection->admin ? "admin" : "client",
        .clock = "CLOCK_MONOTONIC",
    };
    memcpy(set->message.hello_ack.features, features, sizeof features);
    const struct inf_reply reply = {.type = INF_FRAME_HELLO_ACK};
    connection->state = INF_CONNECTION_OPEN;
    inf_connection_send(connection, &reply, INF_MESSAGE_HELLO_ACK, &set->message);
}

static void take_hello(struct inf_connection *connection, struct inf_frame *frame) INF_ON_LOOP
{
    struct inf_connections *set = connection->set;
    struct inf_error err;
    enum inf_code code;
    if (frame->header.type != INF_FRAME_HELLO)
        code = bad_frame(&err, frame, "came first, wanted HELLO");
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
        greet(connection);
    else
        inf_connection_fail(connection, &err);
}

enum inf_code inf_connection_check_credit(const struct inf_connection *connection, uint64_t bytes,
                                          struct inf_fault *fault)
{
    uint32_t in_flight = connection->in_flight + connection->stashed + connection->upload_count;
    fault->retry_after_ms = INF_CONNECTION_RETRY_MS;
    if (in_flight >= connection->limits.streams)
        return inf_fail_reason(&fault->err, INF_EXHAUSTED, INF_REASON_QUOTA_REQUESTS,
                               "%" PRIu32 " requests are in flight already, which is the credit",
                               in_flight);
    if (bytes > 0 && !inf_range_ok(connection->bytes_in_flight, bytes, connection->credit_bytes))
        return inf_fail_reason(&fault->err, INF_EXHAUSTED, INF_REASON_QUOTA_BYTES,
                               "%" PRIu64 " bytes of data beside %" PRIu64
                               " in flight, the credit is %" PRIu64,
                               bytes, connection->bytes_in_flight, connection->credit_bytes);
    fault->retry_after_ms = 0;
    return INF_OK;
}

// Whether the request may be handled at all; `fault` says why not. What was uploaded for it has been
// let in before.
static enum inf_code admit(struct inf_connection *connection, const struct inf_frame *frame,
                           struct inf_upload *upload, struct inf_fault *fault)
{
    if (frame->rejected.code != INF_OK) {
        fault->err = frame->rejected;
        fault->phase = "frame";
        return fault->err.code;
    }
    if (upload != NULL && upload->refused.err.code != INF_OK) {
        *fault = upload->refused;
        return fault->err.code;
    }
    if (upload != NULL) {
        INF_TRY(inf_connection_add_data(upload, frame, &fault->err));
        if (upload->got_bytes == upload->total_bytes)
            return INF_OK;
        return inf_fail_reason(&fault->err, INF_INVALID, INF_REASON_SIZE_MISMATCH,
                               "%" PRIu64 " bytes of data came, %" PRIu64 " were announced",
                               upload->got_bytes, upload->total_bytes);
    }
    if (connection->set->draining)
        return inf_fail_reason(&fault->err, INF_UNAVAILABLE, INF_REASON_DRAINING,
                               "the daemon shuts down and takes no more requests");
    enum inf_code code = inf_connection_check_credit(connection, frame->header.data_bytes, fault);
    connection->violations = code == INF_OK ? 0 : connection->violations + 1;
    return code;
}

static bool changes_limits(uint16_t method)
{
    return method == INF_METHOD_SERVER_LIMITS || method == INF_METHOD_FLAG_SET;
}

// Whether whoever asks may have device time now.
static enum inf_code check_time(struct inf_connection *connection,
                                struct inf_fault *fault) INF_ON_LOOP
{
    uint64_t wait_ns = 0;
    enum inf_code code = inf_quota_check_time(connection->user, &wait_ns, &fault->err);
    if (code != INF_OK) {
        fault->retry_after_ms = (uint32_t)(wait_ns / INF_NS_PER_MS) + 1;
        fault->phase = "queue";
    }
    return code;
}

// Has the service handle a request. Whoever asked is charged before, and stays charged for what becomes
// a call. `paid` tells that it was charged when its data came.
static enum inf_code handle(struct inf_connection *connection, struct inf_request *request,
                            bool paid, struct inf_answer *answer,
                            struct inf_fault *fault) INF_ON_LOOP
{
    uint64_t bytes = request->data_bytes;
    // Whoever has set a limit too low must be able to raise it.
    if (changes_limits(request->method) && !paid)
        return inf_service_handle(connection->set->options.service, request, answer, fault);
    enum inf_code code = paid ? INF_OK : inf_connection_charge(connection, bytes, &fault->err);
    if (code != INF_OK) {
        fault->retry_after_ms = INF_CONNECTION_RETRY_MS;
        fault->phase = "queue";
        return code;
    }
    if (request->method == INF_METHOD_MODEL_INFER)
        code = check_time(connection, fault);
    if (code == INF_OK)
        code = inf_service_handle(connection->set->options.service, request, answer, fault);
    if (code == INF_OK && answer->call != NULL) {
        answer->call->payer = inf_quota_ref(connection->user);
        answer->call->paid_bytes = bytes;
        connection->bytes_in_flight += bytes;
    } else {
        inf_connection_refund(connection->user, bytes);
    }
    return code;
}

// As handle(), with the data that came ahead of the request; they are gone afterwards.
static enum inf_code handle_uploaded(struct inf_connection *connection, struct inf_request *request,
                                     struct inf_upload *upload, struct inf_answer *answer,
                                     struct inf_fault *fault) INF_ON_LOOP
{
    request->data = upload->data;
    request->data_bytes = (uint32_t)upload->total_bytes;
    upload->data = NULL;
    connection->bytes_in_flight -= upload->total_bytes;
    enum inf_code code = handle(connection, request, true, answer, fault);
    inf_pool_release(connection->set->options.pool, request->data, upload->total_bytes);
    return code;
}

// Answers a request that did not become a call.
static void answer_now(struct inf_connection *connection, const struct inf_frame *frame,
                       const struct inf_answer *answer, const struct inf_fault *fault) INF_ON_LOOP
{
    const struct inf_reply reply = {.stream_id = frame->header.stream_id,
                                    .method = frame->header.method,
                                    .order_key = answer->order_key};
    inf_connection_answer(connection, &reply, answer, fault);
    inf_connection_report_released(connection);
}

// Whether a worker is to write the answer. Where more requests of the client are in flight, the loop writes
// several answers with one call.
static bool answers_directly(const struct inf_connection *connection)
{
    return connection->in_flight == 0 && connection->set->options.config->direct_reply_bytes > 0;
}

// Admits and handles a request; its data, where the service took them, are gone from the frame.
static enum inf_code try_request(struct inf_connection *connection, struct inf_frame *frame,
                                 struct inf_upload *upload, struct inf_answer *answer,
                                 struct inf_fault *fault) INF_ON_LOOP
{
    struct inf_request request = {.method = frame->header.method,
                                  .meta = frame->meta,
                                  .data = frame->data,
                                  .data_bytes = frame->header.data_bytes,
                                  .regions = &connection->regions,
                                  .sessions = &connection->sessions,
                                  .uid = connection->uid,
                                  .admin = connection->admin,
                                  .reply_bytes_max = (uint32_t)connection->reply_bytes_max,
                                  .writer =
                                      answers_directly(connection) ? connection->writer : NULL,
                                  .stream_id = frame->header.stream_id,
                                  .frame_bytes_max = connection->limits.data_bytes};
    INF_TRY(admit(connection, frame, upload, fault));
    if (upload != NULL)
        return handle_uploaded(connection, &request, upload, answer, fault);
    enum inf_code code = handle(connection, &request, false, answer, fault);
    frame->data = request.data;
    return code;
}

// Whoever goes on beyond his credit, however often he is refused, is a burden to the others.
static void check_violations(struct inf_connection *connection) INF_ON_LOOP
{
    struct inf_error err;
    if (connection->violations <= INF_CONNECTION_VIOLATIONS)
        return;
    inf_fail_reason(&err, INF_EXHAUSTED, INF_REASON_QUOTA_REQUESTS,
                    "%u requests in a row were beyond the credit of %" PRIu32,
                    connection->violations, connection->limits.streams);
    inf_connection_fail(connection, &err);
}

static void take_request(struct inf_connection *connection, struct inf_frame *frame) INF_ON_LOOP
{
    struct inf_connections *set = connection->set;
    struct inf_counters *counters = set->options.counters;
    struct inf_error err;
    struct inf_upload *upload = NULL;
    if (connection->uploads != NULL)
        upload = inf_connection_take_upload(connection, frame->header.stream_id);
    if (upload == NULL && frame->header.stream_id <= connection->last_stream) {
        inf_fail_reason(&err, INF_INVALID, INF_REASON_BAD_FRAME,
                        "REQUEST frame: stream id %" PRIu64 ", wanted one above the last, %" PRIu64,
                        frame->header.stream_id, connection->last_stream);
        inf_connection_fail(connection, &err);
        return;
    }
    connection->last_stream = INF_MAX(connection->last_stream, frame->header.stream_id);
    counters->requests_accepted++;
    counters->requests_in_flight++;

    struct inf_answer answer = {.call = NULL};
    inf_fault_init(&set->fault);
    enum inf_code code = try_request(connection, frame, upload, &answer, &set->fault);
    if (upload != NULL)
        inf_connection_free_upload(connection, upload);
    bool in_order =
        answer.order_key == 0 ||
        inf_connection_order_begin(connection, frame->header.stream_id, answer.order_key);
    if (!in_order)
        answer.order_key = 0;
    if (code == INF_OK && answer.call != NULL) {
        answer.call->order_key = answer.order_key;
        answer.call->stream_id = frame->header.stream_id;
        answer.call->method = frame->header.method;
        connection->in_flight++;
        inf_connection_link_call(connection, answer.call);
    } else {
        answer_now(connection, frame, &answer, code == INF_OK ? NULL : &set->fault);
        if (code == INF_OK && changes_limits(frame->header.method))
            inf_connections_adjust_credit(set);
    }
    if (!in_order) // without memory to keep the order, there is no going on
        inf_connection_close(connection);
    else
        check_violations(connection);
}

// Advisory, and fine for streams that are over or never were.
static void take_cancel(struct inf_connection *connection,
                        const struct inf_frame *frame) INF_ON_LOOP
{
    struct inf_call *call = connection->calls;
    struct inf_upload *upload = inf_connection_take_upload(connection, frame->header.stream_id);
    if (upload != NULL) { // nothing was asked yet: there is nothing to answer
        inf_connection_free_upload(connection, upload);
        return;
    }
    while (call != NULL && call->stream_id != frame->header.stream_id)
        call = call->next;
    if (call != NULL && !call->answered)
        inf_connection_end_call(connection, call, INF_CALL_END_CANCEL);
}

static enum inf_code register_region(struct inf_connection *connection, struct inf_frame *frame,
                                     struct inf_error *err) INF_ON_LOOP
{
    struct inf_connections *set = connection->set;
    if (frame->rejected.code != INF_OK)
        return (*err = frame->rejected).code;
    INF_TRY(inf_message_decode(&set->message, INF_MESSAGE_REGION_REGISTER, frame->meta,
                               set->scratch, err));
    if (frame->fd_count != 1)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "MEM_REGISTER frame: %" PRIu32 " file descriptors, wanted 1",
                               frame->fd_count);
    const struct inf_region_options options = {.id = set->message.region.region_id,
                                               .size_bytes = set->message.region.size,
                                               .writable = set->message.region.writable,
                                               .fd = frame->fds[0]};
    frame->fd_count = 0;
    return inf_region_register(&connection->regions, &options, err);
}

static void take_register(struct inf_connection *connection, struct inf_frame *frame) INF_ON_LOOP
{
    struct inf_connections *set = connection->set;
    const struct inf_reply reply = {.type = INF_FRAME_MEM_REGISTERED,
                                    .flags = INF_FRAME_FINAL,
                                    .stream_id = frame->header.stream_id};
    inf_fault_init(&set->fault);
    if (register_region(connection, frame, &set->fault.err) == INF_OK)
        inf_connection_send(connection, &reply, INF_MESSAGE_REGION_REGISTERED, &set->message);
    else
        inf_connection_send_fault(connection, &reply, &set->fault);
}

static enum inf_code allocate_region(struct inf_connection *connection,
                                     const struct inf_frame *frame, int *out_fd,
                                     struct inf_error *err) INF_ON_LOOP
{
    struct inf_connections *set = connection->set;
    if (frame->rejected.code != INF_OK)
        return (*err = frame->rejected).code;
    INF_TRY(inf_message_decode(&set->message, INF_MESSAGE_REGION_ALLOC, frame->meta, set->scratch,
                               err));
    return inf_region_allocate(&connection->regions, set->message.region.region_id,
                               set->message.region.size, out_fd, err);
}

static void take_alloc(struct inf_connection *connection, struct inf_frame *frame) INF_ON_LOOP
{
    struct inf_connections *set = connection->set;
    struct inf_reply reply = {.type = INF_FRAME_MEM_REGISTERED,
                              .flags = INF_FRAME_FINAL,
                              .stream_id = frame->header.stream_id};
    int fd = -1;
    inf_fault_init(&set->fault);
    if (allocate_region(connection, frame, &fd, &set->fault.err) == INF_OK) {
        reply.fd_plus_1 = fd + 1;
        inf_connection_send(connection, &reply, INF_MESSAGE_REGION_REGISTERED, &set->message);
    } else {
        inf_connection_send_fault(connection, &reply, &set->fault);
    }
}

static void take_unregister(struct inf_connection *connection, struct inf_frame *frame) INF_ON_LOOP
{
    struct inf_connections *set = connection->set;
    const struct inf_reply reply = {.type = INF_FRAME_MEM_RELEASED,
                                    .flags = INF_FRAME_FINAL,
                                    .stream_id = frame->header.stream_id};
    inf_fault_init(&set->fault);
    struct inf_error *err = &set->fault.err;
    enum inf_code code = frame->rejected.code;
    if (code != INF_OK)
        *err = frame->rejected;
    else
        code = inf_message_decode(&set->message, INF_MESSAGE_REGION_UNREGISTER, frame->meta,
                                  set->scratch, err);
    if (code == INF_OK)
        code = inf_region_unregister(&connection->regions, set->message.region.region_id,
                                     frame->header.stream_id, err);
    if (code == INF_OK)
        inf_connection_report_released(connection);
    else
        inf_connection_send_fault(connection, &reply, &set->fault);
}

static void take_ping(struct inf_connection *connection, const struct inf_frame *frame) INF_ON_LOOP
{
    const struct inf_reply reply = {.type = INF_FRAME_PONG, .stream_id = frame->header.stream_id};
    inf_connection_send(connection, &reply, INF_MESSAGE_EMPTY, NULL);
}

static void take_open(struct inf_connection *connection, struct inf_frame *frame) INF_ON_LOOP
{
    struct inf_error err;
    switch (frame->header.type) {
    case INF_FRAME_REQUEST:
        take_request(connection, frame);
        break;
    case INF_FRAME_DATA:
        inf_connection_take_data(connection, frame);
        break;
    case INF_FRAME_CANCEL:
        take_cancel(connection, frame);
        break;
    case INF_FRAME_MEM_REGISTER:
        take_register(connection, frame);
        break;
    case INF_FRAME_MEM_ALLOC:
        take_alloc(connection, frame);
        break;
    case INF_FRAME_MEM_UNREGISTER:
        take_unregister(connection, frame);
        break;
    case INF_FRAME_PING:
        take_ping(connection, frame);
        break;
    case INF_FRAME_PONG:
        break;
    case INF_FRAME_HELLO:
        bad_frame(&err, frame, "came again, wanted once");
        inf_connection_fail(connection, &err);
        break;
    case INF_FRAME_HELLO_ACK:
    case INF_FRAME_RESPONSE:
    case INF_FRAME_MEM_REGISTERED:
    case INF_FRAME_MEM_RELEASED:
    case INF_FRAME_GOAWAY:
    case INF_FRAME_ERROR:
    case INF_FRAME_CREDIT:
        bad_frame(&err, frame, "only the server sends this type");
        inf_connection_fail(connection, &err);
        break;
    default:
        // A later minor version's: the header said that it may be ignored.
        break;
    }
}

void inf_connection_take_frame(struct inf_connection *connection, struct inf_frame *frame)
{
    struct inf_connections *set = connection->set;
    uint32_t came = frame->fd_count; // a region takes its own over, and has an account of its own
    switch (connection->state) {
    case INF_CONNECTION_GREETING:
        take_hello(connection, frame);
        break;
    case INF_CONNECTION_OPEN:
        take_open(connection, frame);
        break;
    case INF_CONNECTION_CLOSING:
    case INF_CONNECTION_OVER:
        break;
    }
    inf_pool_release(set->options.pool, frame->data, frame->header.data_bytes);
    for (uint32_t i = 0; i < frame->fd_count; i++)
        inf_deferred_close_close(set->options.deferred_close, frame->fds[i]);
    inf_quota_refund(connection->user, INF_QUOTA_FDS, came);
    connection->fds -= came;
}
