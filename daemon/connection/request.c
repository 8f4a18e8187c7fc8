// SPDX-License-Identifier: Apache-2.0
// The path of a request from the frame to the service. First credit and quota are checked. Then the
// data is attached: either from the frame, or from DATA frames that arrived earlier. The service
// either answers at once or makes a call.
#include "daemon/connection/request.h"

#include <inttypes.h>
#include <string.h>

#include "backends/base/clock.h"
#include "daemon/connection/call.h"
#include "daemon/connection/close.h"
#include "daemon/connection/end_call.h"
#include "daemon/connection/fail.h"
#include "daemon/connection/hello.h"
#include "daemon/connection/kept.h"
#include "daemon/connection/order.h"
#include "daemon/connection/reply.h"
#include "daemon/connection/upload.h"

// Fails if descriptors came with a request for which there is no use: only the load of a model has
// one, that of the model's directory. Whether the client may load models is checked later.
static enum inf_code check_fds(const struct inf_frame *frame, struct inf_error *err)
{
    bool is_load = frame->header.method == INF_METHOD_REPOSITORY_MODEL_LOAD;
    if (frame->fd_count <= (is_load ? 1u : 0u))
        return INF_OK;
    return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                           "%s: %" PRIu32 " file descriptors came, wanted %s",
                           inf_method_name(frame->header.method), frame->fd_count,
                           is_load ? "at most 1" : "none");
}

// Checks that a request may be handled; if not, `fault` gives the reason. For a request whose data
// was uploaded in advance, the credit was already checked when the upload began.
static enum inf_code admit_request(struct inf_connection *connection, const struct inf_frame *frame,
                                   struct inf_upload *upload, struct inf_fault *fault)
{
    if (frame->rejected.code != INF_OK) {
        fault->err = frame->rejected;
        fault->phase = "frame";
        return fault->err.code;
    }
    if (upload != NULL && upload->refusal != NULL) {
        inf_fail_reason(&fault->err, upload->refusal->code, upload->refusal->reason, "%s",
                        upload->refusal->text);
        fault->retry_after_ms = upload->refusal->retry_after_ms;
        fault->phase = "frame";
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
    INF_TRY(check_fds(frame, &fault->err));
    if (connection->set->draining && !inf_connection_is_kept(connection))
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

// Fails if the user has used up the device time that the rate limit grants.
static enum inf_code check_device_time(struct inf_connection *connection,
                                       struct inf_fault *fault) INF_ON_LOOP
{
    uint64_t wait_ns = 0;
    enum inf_code code = inf_quota_check_device_time(connection->user, &wait_ns, &fault->err);
    if (code != INF_OK) {
        fault->retry_after_ms = (uint32_t)(wait_ns / INF_NS_PER_MS) + 1;
        fault->phase = "queue";
    }
    return code;
}

// Charges the user for a request and passes it to the service. If the request becomes a call, it
// stays charged until its reply; otherwise it is refunded here. `paid` means that the user was
// already charged when the data was uploaded.
static enum inf_code handle_charged(struct inf_connection *connection, struct inf_request *request,
                                    bool paid, struct inf_answer *answer,
                                    struct inf_fault *fault) INF_ON_LOOP
{
    uint64_t bytes = request->data_bytes;
    // Do not charge for requests that change limits, so that an admin can raise a limit that is too
    // low.
    if (connection->caller.admin && changes_limits(request->method) && !paid)
        return inf_service_handle(connection->set->options.service, request, answer, fault);
    enum inf_code code = paid ? INF_OK : inf_connection_charge(connection, bytes, &fault->err);
    if (code != INF_OK) {
        fault->retry_after_ms = INF_CONNECTION_RETRY_MS;
        fault->phase = "queue";
        return code;
    }
    if (request->method == INF_METHOD_MODEL_INFER)
        code = check_device_time(connection, fault);
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

// Passes a request whose data was uploaded in DATA frames to the service, and then releases the
// upload. The user was charged for the data when the upload began.
static enum inf_code handle_uploaded(struct inf_connection *connection, struct inf_request *request,
                                     struct inf_upload *upload, struct inf_answer *answer,
                                     struct inf_fault *fault) INF_ON_LOOP
{
    request->data = upload->data;
    request->data_bytes = (uint32_t)upload->total_bytes;
    upload->data = NULL;
    connection->bytes_in_flight -= upload->total_bytes;
    enum inf_code code = handle_charged(connection, request, true, answer, fault);
    inf_pool_release(connection->set->options.pool, request->data, upload->total_bytes);
    return code;
}

// Answers a request that did not become a call, because it failed or the service answered it at
// once.
static void answer_at_once(struct inf_connection *connection, const struct inf_frame *frame,
                           const struct inf_answer *answer,
                           const struct inf_fault *fault) INF_ON_LOOP
{
    const struct inf_reply reply = {.stream_id = frame->header.stream_id,
                                    .method = frame->header.method,
                                    .order_key = answer->order_key,
                                    .pending_plus_1 = connection->frame_pending_plus_1};
    inf_connection_answer(connection, &reply, answer, fault);
    inf_connection_report_released(connection);
}

// Returns true if a worker may write the reply itself. If other requests of the client are in
// flight, the loop writes the replies instead, because it can write several with one system call.
static bool answers_directly(const struct inf_connection *connection)
{
    bool recorded = !inf_connection_is_kept(connection) ||
                    (connection->frame_pending_plus_1 > 0 &&
                     connection->frame_pending_plus_1 <= INF_SEND_LOG_DIRECT);
    return connection->in_flight == 0 && recorded &&
           connection->set->options.config->direct_reply_bytes > 0;
}

// Admits and handles a request. If the service takes the data, frame->data becomes NULL.
static enum inf_code try_request(struct inf_connection *connection, struct inf_frame *frame,
                                 struct inf_upload *upload, struct inf_answer *answer,
                                 struct inf_fault *fault) INF_ON_LOOP
{
    struct inf_request request = {.method = frame->header.method,
                                  .meta = frame->meta,
                                  .data = frame->data,
                                  .data_bytes = frame->header.data_bytes,
                                  .directory_fd = frame->fd_count > 0 ? frame->fds[0] : -1,
                                  .regions = &connection->regions,
                                  .sessions = &connection->sessions,
                                  .pid = connection->pid,
                                  .caller = &connection->caller,
                                  .reply_bytes_max = (uint32_t)connection->reply_bytes_max,
                                  .writer =
                                      answers_directly(connection) ? connection->writer : NULL,
                                  .waiting = &connection->waiting,
                                  .client_id = connection->id,
                                  .stream_id = frame->header.stream_id,
                                  .frame_bytes_max = connection->limits.data_bytes,
                                  .pending = inf_connection_frame_pending(connection),
                                  .pending_plus_1 = connection->frame_pending_plus_1};
    INF_TRY(admit_request(connection, frame, upload, fault));
    // A worker notes when it begins an inference. Other requests have their effect at once.
    if (frame->header.method != INF_METHOD_MODEL_INFER)
        inf_pending_begin(request.pending);
    if (upload != NULL)
        return handle_uploaded(connection, &request, upload, answer, fault);
    enum inf_code code = handle_charged(connection, &request, false, answer, fault);
    frame->data = request.data;
    return code;
}

// Closes the connection of a client that repeatedly exceeds its credit.
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

void inf_connection_take_request(struct inf_connection *connection, struct inf_frame *frame)
{
    struct inf_connections *set = connection->set;
    struct inf_counters *counters = set->options.counters;
    struct inf_error err;
    struct inf_upload *upload = NULL;
    if (connection->upload_count > 0)
        upload = inf_connection_take_upload(connection, frame->header.stream_id);
    if (upload == NULL && frame->header.stream_id <= connection->last_stream) {
        inf_fail_reason(&err, INF_INVALID, INF_REASON_BAD_FRAME,
                        "REQUEST frame: stream id %" PRIu64 ", wanted one above the last, %" PRIu64,
                        frame->header.stream_id, connection->last_stream);
        inf_connection_fail(connection, &err);
        return;
    }
    connection->last_stream = INF_MAX(connection->last_stream, frame->header.stream_id);
    inf_connection_note_stream(connection);
    counters->requests_accepted++;
    counters->requests_in_flight++;
    connection->requests++;
    connection->data_bytes += frame->header.data_bytes;

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
        answer.call->pending_plus_1 = connection->frame_pending_plus_1;
        connection->in_flight++;
        inf_connection_link_call(connection, answer.call);
    } else {
        if (code != INF_OK)
            inf_service_count_refusal(set->options.service, frame->header.method,
                                      connection->caller.uid, &set->fault);
        answer_at_once(connection, frame, &answer, code == INF_OK ? NULL : &set->fault);
        if (code == INF_OK && changes_limits(frame->header.method))
            inf_connections_adjust_credit(set);
    }
    // If there is no memory to record the order key, replies could leave in the wrong order.
    if (!in_order)
        inf_connection_close(connection);
    else
        check_violations(connection);
}

void inf_connection_take_cancel(struct inf_connection *connection, const struct inf_frame *frame)
{
    struct inf_call *call = connection->calls;
    struct inf_upload *upload = inf_connection_take_upload(connection, frame->header.stream_id);
    // The client cancels an upload whose REQUEST frame has not arrived, so no reply is due.
    if (upload != NULL) {
        inf_connection_free_upload(connection, upload);
        return;
    }
    while (call != NULL && call->stream_id != frame->header.stream_id)
        call = call->next;
    if (call != NULL && !call->answered)
        inf_connection_end_call(connection, call, INF_CALL_END_CANCEL);
}

// Adds the data of a DATA frame to an upload. If `err` holds an error or the data cannot be added,
// refuses the upload instead. If this function fails, the caller must end the connection.
static enum inf_code add_or_refuse(struct inf_connection *connection, const struct inf_frame *frame,
                                   struct inf_upload *upload, uint64_t total_bytes,
                                   struct inf_error *err) INF_ON_LOOP
{
    struct inf_error refusal = *err;
    if (err->code == INF_OK && total_bytes != upload->total_bytes)
        inf_fail_reason(&refusal, INF_INVALID, INF_REASON_SIZE_MISMATCH,
                        "DATA frame: %" PRIu64 " bytes in all, the first one said %" PRIu64,
                        total_bytes, upload->total_bytes);
    if (refusal.code == INF_OK)
        (void)!inf_connection_add_data(upload, frame, &refusal);
    if (refusal.code == INF_OK)
        return INF_OK;
    return inf_connection_refuse_upload(connection, upload, &refusal, 0, err);
}

void inf_connection_take_data(struct inf_connection *connection, struct inf_frame *frame)
{
    struct inf_connections *set = connection->set;
    struct inf_error err = frame->rejected;
    uint64_t total_bytes = 0;
    if (err.code == INF_OK && inf_message_decode(&set->message, INF_MESSAGE_DATA, frame->meta,
                                                 set->scratch, &err) == INF_OK)
        total_bytes = set->message.data.total_bytes;
    // UNAVAILABLE: an earlier process received a part of the frame.
    if (err.code != INF_OK && err.code != INF_EXHAUSTED && err.code != INF_UNAVAILABLE) {
        inf_connection_fail(connection, &err);
        return;
    }
    struct inf_upload *upload = inf_connection_find_upload(connection, frame->header.stream_id);
    connection->data_bytes += frame->header.data_bytes;
    // Ignore data of a stream that was cancelled or answered: the client sent this frame before it
    // learnt that.
    if (upload == NULL && frame->header.stream_id <= connection->last_stream)
        return;
    enum inf_code code = INF_OK;
    if (upload == NULL)
        code = inf_connection_start_upload(connection, frame, total_bytes, &upload, &err);
    else
        inf_connection_touch_upload(connection, upload);
    if (code == INF_OK && upload->refusal == NULL)
        code = add_or_refuse(connection, frame, upload, total_bytes, &err);
    if (code != INF_OK)
        inf_connection_fail(connection, &err);
}
