// SPDX-License-Identifier: Apache-2.0
// The fake daemon that follows a script, and its client.
#include "tests/support/daemon/client_script.h"

#include <assert.h>
#include <criterion/criterion.h>
#include <poll.h>
#include <string.h>

#include "client/lib/error.h"

void client_script_note_arrival(struct client_script *script, const struct fake_frame *frame)
{
    unsigned index = script->arrived;
    assert(index < CLIENT_SCRIPT_ARRIVALS);
    script->times_ns[index] = inf_client_now_ns();
    script->timeouts_ns[index] = frame->message->infer_request.timeout_ns;
    if (frame->header.data_bytes == sizeof(int32_t))
        memcpy(&script->numbers[index], frame->data, sizeof(int32_t));
    script->arrived++;
}

static void go_away(struct fake_daemon *daemon, uint64_t last_stream)
{
    const struct inf_goaway goaway = {.last_stream = last_stream, .reason = "shutdown"};
    fake_send(daemon, (struct inf_frame_header){.type = INF_FRAME_GOAWAY},
              &(union inf_message){.goaway = goaway}, INF_MESSAGE_GOAWAY, NULL, 0);
}

static bool follow_script(struct fake_daemon *daemon, const struct fake_frame *frame, void *context)
{
    struct client_script *script = context;
    if (frame->header.type == INF_FRAME_CANCEL) {
        fake_refuse(daemon, frame->header.stream_id, &script->refusal);
        return true;
    }
    if (frame->header.type != INF_FRAME_REQUEST || frame->header.method != INF_METHOD_MODEL_INFER)
        return false;
    unsigned index = script->arrived;
    enum client_action action =
        index < script->action_count ? script->actions[index] : CLIENT_ANSWER;
    client_script_note_arrival(script, frame);
    switch (action) {
    case CLIENT_REFUSE:
        fake_refuse(daemon, frame->header.stream_id, &script->refusal);
        return true;
    case CLIENT_HOLD:
        return true;
    case CLIENT_HANG_UP:
        fake_hang_up(daemon);
        return true;
    case CLIENT_REFUSE_AND_HANG_UP:
        fake_refuse(daemon, frame->header.stream_id, &script->refusal);
        fake_hang_up(daemon);
        return true;
    case CLIENT_ANSWER_AND_GO_AWAY:
        fake_answer(daemon, frame);
        go_away(daemon, frame->header.stream_id);
        return true;
    case CLIENT_ANSWER:
        break;
    }
    return false;
}

inferd_client *client_script_start(struct client_script *script, uint32_t connections,
                                   uint32_t credit, uint64_t retry_ms,
                                   struct fake_daemon **out_daemon)
{
    *out_daemon = fake_daemon_start(&(struct fake_options){.on_frame = follow_script,
                                                           .context = script,
                                                           .connections = connections,
                                                           .credit = credit});
    inferd_client *client = client_case_connect(*out_daemon);
    inferd_set_retry(client, retry_ms);
    return client;
}

void client_script_stop(inferd_client *client, struct fake_daemon *daemon)
{
    inferd_close(client);
    fake_daemon_stop(daemon);
}

const struct inf_status client_script_queue_full = {.code = INF_EXHAUSTED,
                                                    .reason = INF_REASON_QUEUE_FULL,
                                                    .message = "the queue is full",
                                                    .retry_after_ms = 1};
const struct inf_status client_script_loading = {.code = INF_UNAVAILABLE,
                                                 .reason = INF_REASON_LOADING,
                                                 .message = "the model is loading",
                                                 .retry_after_ms = 10};

uint64_t client_script_send(inferd_client *client, int32_t number, uint64_t timeout_ms,
                            struct client_answers *answers)
{
    inferd_tensor in = client_case_tensor(&number);
    inferd_request request = {
        .model = "grow", .inputs = &in, .input_count = 1, .timeout_ms = timeout_ms};
    uint64_t stream = 0;
    struct inferd_error err;
    int code = inferd_infer_async(client, &request, client_case_count, answers, &stream, &err);
    cr_assert_eq(code, INFERD_OK, "%s", err.text);
    return stream;
}

void client_script_run_until_arrived(inferd_client *client, struct client_script *script,
                                     unsigned count)
{
    struct inferd_error err;
    for (int i = 0; i < 10000 && script->arrived < count; i++) {
        (void)inferd_process(client, &err);
        poll(NULL, 0, 1);
    }
    cr_assert_geq((unsigned)script->arrived, count);
}

void client_script_run_until_answered(inferd_client *client, struct client_answers *answers,
                                      unsigned count)
{
    struct inferd_error err;
    for (int i = 0; i < 10000 && answers->ok + answers->failed < count; i++) {
        (void)inferd_process(client, &err);
        poll(NULL, 0, 1);
    }
    cr_assert_eq(answers->ok + answers->failed, count);
}
