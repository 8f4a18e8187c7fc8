// SPDX-License-Identifier: Apache-2.0
// Tests of a client whose daemon refuses requests, breaks the protocol, hangs, drains or vanishes.
#include <criterion/criterion.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/daemon/client_case.h"

// --- requests that the daemon refuses ---

static bool refuse_requests(struct fake_daemon *daemon, const struct fake_frame *frame,
                            void *context)
{
    if (frame->header.type != INF_FRAME_REQUEST)
        return false;
    fake_refuse(daemon, frame->header.stream_id, context);
    return true;
}

Test(client_refusal, tells_code_reason_text_and_when_to_try_again)
{
    struct inf_status status = {.code = INF_EXHAUSTED,
                                .reason = INF_REASON_QUEUE_FULL,
                                .message = "the queue of cpu0 is full (64 requests)",
                                .retry_after_ms = 40};
    struct fake_daemon *daemon =
        fake_daemon_start(&(struct fake_options){.on_frame = refuse_requests, .context = &status});
    inferd_client *client = client_case_connect(daemon);
    struct inferd_error err;
    cr_assert_eq(client_case_ask(client, 0, &err), INFERD_RESOURCE_EXHAUSTED);
    cr_assert_eq(err.code, INFERD_RESOURCE_EXHAUSTED);
    cr_assert_str_eq(err.reason, "QUEUE_FULL");
    cr_assert_str_eq(err.text, "the queue of cpu0 is full (64 requests)");
    cr_assert_eq(err.retry_after_ms, 40u);
    cr_assert_eq(fake_daemon_counts(daemon)->requests, 1u, "the library does not try again");
    inferd_close(client);
    fake_daemon_stop(daemon);
}

Test(client_refusal, of_outputs_ends_although_more_room_never_helps)
{
    struct inf_status status = {.code = INF_RANGE,
                                .reason = INF_REASON_OUTPUT_TOO_SMALL,
                                .message = "too small",
                                .tensor = "big"};
    struct fake_daemon *daemon =
        fake_daemon_start(&(struct fake_options){.on_frame = refuse_requests, .context = &status});
    inferd_client *client = client_case_connect(daemon);
    int32_t count = 7;
    inferd_tensor in = client_case_tensor(&count);
    inferd_tensor wanted = {.name = "big"};
    inferd_request request = {
        .model = "grow", .inputs = &in, .input_count = 1, .outputs = &wanted, .output_count = 1};
    inferd_result *result = NULL;
    struct inferd_error err;
    cr_assert_eq(inferd_infer(client, &request, &result, &err), INFERD_OUT_OF_RANGE);
    cr_assert_lt(fake_daemon_counts(daemon)->requests, 80u);
    inferd_close(client);
    fake_daemon_stop(daemon);
}

static bool refuse_regions(struct fake_daemon *daemon, const struct fake_frame *frame,
                           void *context)
{
    (void)context;
    struct inf_status status = {.code = INF_PRECONDITION,
                                .reason = INF_REASON_SEALS_MISSING,
                                .message = "region 1: seals are 0x0, wanted 0x7"};
    struct inf_frame_header header = {.type = INF_FRAME_MEM_REGISTERED,
                                      .stream_id = frame->header.stream_id,
                                      .flags = INF_FRAME_FLAG_ERROR};
    if (frame->header.type == INF_FRAME_MEM_REGISTER) {
        fake_send(daemon, header, &(union inf_message){.status = status}, INF_MESSAGE_STATUS, NULL,
                  0);
        return true;
    }
    status = (struct inf_status){.code = INF_NOT_FOUND,
                                 .reason = INF_REASON_REGION_NOT_FOUND,
                                 .message = "there is no region 1"};
    fake_refuse(daemon, frame->header.stream_id, &status);
    return true;
}

Test(client_refusal, of_shared_memory_is_explained)
{
    struct fake_daemon *daemon =
        fake_daemon_start(&(struct fake_options){.on_frame = refuse_regions});
    inferd_client *client = client_case_connect(daemon);
    uint8_t *bytes = calloc(1, 100000);
    inferd_tensor in = {.name = "in",
                        .dtype = INFERD_UINT8,
                        .rank = 1,
                        .shape = {100000},
                        .data = bytes,
                        .size = 100000};
    // A request with an order key fails if shared memory is refused, because the library must not
    // send it again. The tests libinferd_fallback cover requests that are sent again.
    inferd_request request = {.model = "echo", .inputs = &in, .input_count = 1, .order_key = 1};
    inferd_result *result = NULL;
    struct inferd_error err;
    cr_assert_eq(inferd_infer(client, &request, &result, &err), INFERD_RESOURCE_EXHAUSTED);
    cr_assert_str_eq(err.text,
                     "the daemon refused the shared memory: region 1: seals are 0x0, "
                     "wanted 0x7");
    free(bytes);
    inferd_close(client);
    fake_daemon_stop(daemon);
}

// --- a daemon that drains or disconnects ---

static bool hang_up_at_fifth(struct fake_daemon *daemon, const struct fake_frame *frame,
                             void *context)
{
    unsigned *count = context;
    if (frame->header.type == INF_FRAME_REQUEST && ++*count == 5)
        fake_hang_up(daemon);
    return true;
}

Test(client_disconnect, answers_every_request_once_with_unavailable)
{
    unsigned count = 0;
    struct fake_daemon *daemon =
        fake_daemon_start(&(struct fake_options){.on_frame = hang_up_at_fifth, .context = &count});
    inferd_client *client = client_case_connect(daemon);
    struct client_answers answers = {0};
    for (int i = 0; i < 5; i++)
        client_case_start(client, &answers);
    struct inferd_error err;
    cr_assert_eq(inferd_wait(client, &err), INFERD_UNAVAILABLE);
    cr_assert_eq(answers.failed, 5u);
    cr_assert_eq(answers.ok, 0u);
    cr_assert_eq(answers.last.code, INFERD_UNAVAILABLE);
    cr_assert_str_eq(answers.last.reason, "DISCONNECT");
    cr_assert_str_eq(err.text, "the daemon closed the connection");
    cr_assert_eq(client_case_ask(client, 0, &err), INFERD_UNAVAILABLE);
    cr_assert_eq(inferd_process(client, &err), INFERD_UNAVAILABLE);
    inferd_memory *memory = NULL;
    cr_assert_eq(inferd_memory_alloc(client, 10, &memory, &err), INFERD_UNAVAILABLE);
    cr_assert_eq(inferd_cancel(client, 3, &err), INFERD_NOT_FOUND);
    cr_assert_eq(answers.failed, 5u);
    inferd_close(client);
    fake_daemon_stop(daemon);
}

// The requests that the fake daemon has received. It expects three: it sends GOAWAY after the
// second, answers the first two, and refuses the third, which it did not start.
struct farewell {
    unsigned count;
    uint64_t streams[3];
};

static bool say_goodbye(struct fake_daemon *daemon, const struct fake_frame *frame, void *context)
{
    struct farewell *farewell = context;
    if (frame->header.type != INF_FRAME_REQUEST)
        return false;
    farewell->streams[farewell->count++] = frame->header.stream_id;
    if (farewell->count == 2) {
        struct inf_goaway goaway = {.last_stream = frame->header.stream_id, .reason = "shutdown"};
        fake_send(daemon, (struct inf_frame_header){.type = INF_FRAME_GOAWAY},
                  &(union inf_message){.goaway = goaway}, INF_MESSAGE_GOAWAY, NULL, 0);
    }
    if (farewell->count < 3)
        return false; // the fake daemon answers the first two requests as usual
    fake_refuse(daemon, frame->header.stream_id,
                &(struct inf_status){.code = INF_UNAVAILABLE,
                                     .reason = INF_REASON_DRAINING,
                                     .message = "shutting down"});
    return true;
}

Test(client_disconnect, tells_which_requests_a_draining_daemon_has_not_begun)
{
    struct farewell farewell = {0};
    struct fake_daemon *daemon =
        fake_daemon_start(&(struct fake_options){.on_frame = say_goodbye, .context = &farewell});
    inferd_client *client = client_case_connect(daemon);
    struct client_answers answers = {0};
    for (int i = 0; i < 3; i++)
        client_case_start(client, &answers);
    struct inferd_error err;
    cr_assert_eq(inferd_wait(client, &err), INFERD_OK, "%s", err.text);
    cr_assert_eq(answers.ok, 2u);
    cr_assert_eq(answers.failed, 1u);
    // A refusal of a request that the client has given up does not break the protocol.
    for (int i = 0; i < 20; i++) {
        poll(NULL, 0, 1);
        cr_assert_eq(inferd_process(client, &err), INFERD_OK, "%s", err.text);
    }
    cr_assert_eq(client_case_ask(client, 0, &err), INFERD_UNAVAILABLE);
    cr_assert_str_eq(err.reason, "DRAINING");
    inferd_close(client);
    fake_daemon_stop(daemon);
}

// --- a daemon that breaks the protocol ---

enum breach {
    ANSWER_TO_NOBODY,
    PARTIAL_INFERENCE,
    SECOND_ACK,
    CLIENTS_FRAME,
    UNKNOWN_FLAGS,
    NO_PROTOBUF,
    OUTSIDE_DATA,
    FOREIGN_REGION,
    WRONG_LENGTH,
    UNKNOWN_REGION,
    BREACH_COUNT
};

static void reply_with(struct fake_daemon *daemon, uint64_t stream,
                       const struct inf_location *location, uint16_t flags, size_t data_size)
{
    static const uint8_t data[64];
    union inf_message reply = {
        .infer_reply = {.model_name = "grow", .output_count = 1, .credit_return = 1}};
    reply.infer_reply.outputs[0] = (struct inf_tensor_entry){.name = "x", .dtype = INF_DTYPE_I32};
    reply.infer_reply.outputs[0].shape = INF_SHAPE(4);
    reply.infer_reply.outputs[0].location = *location;
    struct inf_frame_header header = {
        .type = INF_FRAME_RESPONSE, .stream_id = stream, .flags = flags};
    fake_send(daemon, header, &reply, INF_MESSAGE_INFER_REPLY, data, data_size);
}

static bool breach_it(struct fake_daemon *daemon, const struct fake_frame *frame, void *context)
{
    uint64_t stream = frame->header.stream_id;
    struct inf_location inside = {true, 0, 0, 16};
    struct inf_frame_header header = {.type = INF_FRAME_REQUEST, .stream_id = stream, .method = 6};
    uint8_t bytes[64] = {0};
    if (frame->header.type != INF_FRAME_REQUEST)
        return false;
    switch (*(enum breach *)context) {
    case ANSWER_TO_NOBODY:
        reply_with(daemon, stream + 100, &inside, INF_FRAME_FINAL, 16);
        break;
    case PARTIAL_INFERENCE:
        reply_with(daemon, stream, &inside, 0, 16);
        break;
    case SECOND_ACK:
        header = (struct inf_frame_header){.type = INF_FRAME_HELLO_ACK};
        fake_send(daemon, header, &(union inf_message){.hello_ack = {.major = 1}},
                  INF_MESSAGE_HELLO_ACK, NULL, 0);
        break;
    case CLIENTS_FRAME:
        fake_send(daemon, header, NULL, INF_MESSAGE_EMPTY, NULL, 0);
        break;
    case UNKNOWN_FLAGS:
        header.flags = 0x80;
        fake_send(daemon, header, NULL, INF_MESSAGE_EMPTY, NULL, 0);
        break;
    case NO_PROTOBUF:
        header = (struct inf_frame_header){.meta_bytes = 20,
                                           .type = INF_FRAME_RESPONSE,
                                           .stream_id = stream,
                                           .flags = INF_FRAME_FINAL};
        memset(bytes, 0xff, sizeof bytes);
        inf_frame_header_encode(&header, bytes);
        fake_send_bytes(daemon, bytes, INF_FRAME_HEADER_BYTES + 20);
        break;
    case OUTSIDE_DATA:
        inside.offset = 64;
        reply_with(daemon, stream, &inside, INF_FRAME_FINAL, 16);
        break;
    case FOREIGN_REGION:
        inside.region_id = 12345;
        reply_with(daemon, stream, &inside, INF_FRAME_FINAL, 0);
        break;
    case WRONG_LENGTH:
        inside.length = 12;
        reply_with(daemon, stream, &inside, INF_FRAME_FINAL, 16);
        break;
    case UNKNOWN_REGION:
        header = (struct inf_frame_header){.type = INF_FRAME_MEM_RELEASED, .stream_id = 9999};
        fake_send(daemon, header, &(union inf_message){.region = {.region_id = 77}},
                  INF_MESSAGE_REGION_RELEASED, NULL, 0);
        break;
    case BREACH_COUNT:
        break;
    }
    return true;
}

Test(client_breach, ends_the_connection_and_every_request)
{
    for (enum breach breach = 0; breach < BREACH_COUNT; breach++) {
        struct fake_daemon *daemon =
            fake_daemon_start(&(struct fake_options){.on_frame = breach_it, .context = &breach});
        inferd_client *client = client_case_connect(daemon);
        struct client_answers answers = {0};
        for (int i = 0; i < 3; i++)
            client_case_start(client, &answers);
        struct inferd_error err;
        cr_expect_eq(inferd_wait(client, &err), INFERD_UNAVAILABLE, "breach %d", breach);
        cr_expect_eq(answers.failed, 3u, "breach %d: %u", breach, answers.failed);
        cr_expect(strstr(err.text, "the daemon broke the protocol") != NULL, "breach %d: %s",
                  breach, err.text);
        inferd_close(client);
        fake_daemon_stop(daemon);
    }
}

static bool ping_first(struct fake_daemon *daemon, const struct fake_frame *frame, void *context)
{
    (void)context;
    if (frame->header.type == INF_FRAME_REQUEST) {
        fake_send(daemon, (struct inf_frame_header){.type = INF_FRAME_PING}, NULL,
                  INF_MESSAGE_EMPTY, NULL, 0);
        // A frame type that no version defines, and that is not critical.
        fake_send(daemon, (struct inf_frame_header){.type = 200}, NULL, INF_MESSAGE_EMPTY, NULL, 0);
    }
    return false;
}

Test(client_breach, is_none_in_pings_and_unknown_frames)
{
    struct fake_daemon *daemon = fake_daemon_start(&(struct fake_options){.on_frame = ping_first});
    inferd_client *client = client_case_connect(daemon);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(client_case_ask(client, 0, NULL), INFERD_OK);
    struct fake_counts *counts = fake_daemon_counts(daemon);
    for (int i = 0; i < 1000 && counts->pongs < 3; i++)
        poll(NULL, 0, 1);
    cr_assert_eq(counts->pongs, 3u);
    inferd_close(client);
    fake_daemon_stop(daemon);
}

// --- answers in several DATA frames ---

// Describes an answer in several DATA frames: the total that the frames announce (`second_total`
// for the second frame), and the bytes of each frame. The answer is the one of "grow" for 7 bytes:
// 71 bytes with padding.
struct pieces {
    uint64_t total, second_total;
    size_t first, second, last;
    uint64_t stream_offset; // added to the stream number of the request; 0: the correct stream
    const char *problem;    // the expected error; NULL: the client accepts the answer
};

static bool answer_in_pieces(struct fake_daemon *daemon, const struct fake_frame *frame,
                             void *context)
{
    static uint8_t data[256] = {[0] = 7};
    const struct pieces *pieces = context;
    if (frame->header.type != INF_FRAME_REQUEST)
        return false;
    for (size_t i = 0; i < 7; i++)
        data[64 + i] = fake_big_byte(i);
    struct inf_frame_header header = {.type = INF_FRAME_DATA,
                                      .stream_id = frame->header.stream_id + pieces->stream_offset};
    union inf_message message = {.data = {.total_bytes = pieces->total}};
    fake_send(daemon, header, &message, INF_MESSAGE_DATA, data, pieces->first);
    message.data.total_bytes = pieces->second_total != 0 ? pieces->second_total : pieces->total;
    fake_send(daemon, header, &message, INF_MESSAGE_DATA, data + pieces->first, pieces->second);
    static union inf_message reply; // static because it is too large for the stack
    reply.infer_reply = (struct inf_infer_reply){.model_name = "grow", .output_count = 2};
    reply.infer_reply.outputs[0] =
        (struct inf_tensor_entry){.name = "small", .dtype = INF_DTYPE_I32, .shape = INF_SHAPE(1)};
    reply.infer_reply.outputs[1] =
        (struct inf_tensor_entry){.name = "big", .dtype = INF_DTYPE_U8, .shape = INF_SHAPE(7)};
    reply.infer_reply.credit_return = 1;
    header = (struct inf_frame_header){.type = INF_FRAME_RESPONSE,
                                       .flags = INF_FRAME_FINAL,
                                       .method = INF_METHOD_MODEL_INFER,
                                       .stream_id = frame->header.stream_id};
    fake_send(daemon, header, &reply, INF_MESSAGE_INFER_REPLY,
              data + pieces->first + pieces->second, pieces->last);
    return true;
}

Test(client_failure, in_the_pieces_of_an_answer_ends_the_connection)
{
    struct pieces cases[] = {
        {.total = 71, .first = 10, .second = 60, .last = 1},
        {.total = 71, .first = 71, .second = 0, .last = 0},
        {.total = 71, .first = 1, .second = 0, .last = 70},
        {.total = 71, .first = 10, .second = 62, .last = 0, .problem = "no answer has room for"},
        {.total = 71, .first = 10, .second = 60, .last = 2, .problem = "71 were announced"},
        {.total = 71, .first = 10, .second = 60, .last = 0, .problem = "71 were announced"},
        {.total = 71, .second_total = 72, .first = 10, .second = 1, .problem = "no answer has"},
        {.total = 0, .first = 0, .problem = "no answer has room for"},
        {.total = (uint64_t)1 << 40, .first = 10, .problem = "no answer has room for"},
        {.total = 71, .first = 10, .stream_offset = 7, .problem = "no answer has room for"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fake_daemon *daemon = fake_daemon_start(
            &(struct fake_options){.on_frame = answer_in_pieces, .context = &cases[i]});
        inferd_client *client = client_case_connect(daemon);
        struct inferd_error err;
        int code = client_case_ask(client, 0, &err);
        if (cases[i].problem == NULL) {
            cr_assert_eq(code, INFERD_OK, "case %zu: %s", i, err.text);
        } else {
            cr_assert_eq(code, INFERD_UNAVAILABLE, "case %zu", i);
            cr_assert_not_null(strstr(err.text, cases[i].problem), "case %zu: %s", i, err.text);
        }
        inferd_close(client);
        fake_daemon_stop(daemon);
    }
}

// Sends a part of an answer in a DATA frame, and then a refusal or nothing.
static bool answer_by_halves(struct fake_daemon *daemon, const struct fake_frame *frame,
                             void *context)
{
    static const uint8_t data[10];
    const struct inf_status status = {
        .code = INF_EXHAUSTED, .reason = INF_REASON_HOST_OOM, .message = "no memory"};
    if (frame->header.type != INF_FRAME_REQUEST)
        return false;
    const struct inf_frame_header header = {.type = INF_FRAME_DATA,
                                            .stream_id = frame->header.stream_id};
    const union inf_message message = {.data = {.total_bytes = 2 << 20}};
    fake_send(daemon, header, &message, INF_MESSAGE_DATA, data, sizeof data);
    if (*(const bool *)context)
        fake_refuse(daemon, frame->header.stream_id, &status);
    else
        fake_hang_up(daemon);
    return true;
}

Test(client_failure, amid_the_pieces_of_an_answer_leaves_nothing)
{
    for (int refuse = 0; refuse < 2; refuse++) {
        bool context = refuse != 0;
        struct fake_daemon *daemon = fake_daemon_start(
            &(struct fake_options){.on_frame = answer_by_halves, .context = &context});
        inferd_client *client = client_case_connect(daemon);
        struct inferd_error err;
        cr_assert_eq(client_case_ask(client, 0, &err),
                     refuse ? INFERD_RESOURCE_EXHAUSTED : INFERD_UNAVAILABLE);
        inferd_close(client);
        fake_daemon_stop(daemon);
    }
}
