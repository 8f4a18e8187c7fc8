// SPDX-License-Identifier: Apache-2.0
// Questions and orders to the daemon: a function encodes the message, sends it as soon as there is
// credit, and blocks until the final answer arrives.
#include "client/lib/admin/question.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "client/lib/client.h"
#include "client/lib/error.h"
#include "client/lib/event_loop.h"
#include "client/lib/infer/retry_wait.h"
#include "client/lib/io/connection.h"
#include "client/lib/io/credit.h"
#include "proto/core/span.h"

struct waiter {
    bool done;
    struct inferd_error *err;
    int code;
};

static void store_code(void *context, inferd_result *result, const struct inferd_error *err)
{
    (void)result;
    struct waiter *waiter = context;
    waiter->done = true;
    waiter->code = err->code;
    if (waiter->err != NULL)
        *waiter->err = *err;
}

static enum inf_code send_question(inferd_client *client,
                                   const struct inf_client_question *question,
                                   struct waiter *waiter, struct inf_client_call **out_call,
                                   struct inf_error *err)
{
    struct inf_client_outgoing *outgoing = NULL;
    INF_TRY(inf_client_credit_check_request(client, err));
    bool large = question->session != NULL || question->limits != NULL || question->infer != NULL;
    size_t meta_bytes = large ? INF_LIMIT_META_BYTES : 2 * PATH_MAX;
    INF_TRY(inf_client_outgoing_acquire(
        client, INF_FRAME_HEADER_BYTES + meta_bytes + question->data_bytes, &outgoing, err));
    if (question->session != NULL)
        client->control.session = *question->session;
    else if (question->limits != NULL)
        client->control.limit_list = *question->limits;
    else if (question->infer != NULL)
        client->control.infer_request = *question->infer;
    else
        memcpy(&client->control, &question->body, sizeof question->body);
    enum inf_code code =
        inf_client_outgoing_encode(client, outgoing, &client->control, question->kind, err);
    if (code == INF_OK && question->data_bytes > 0) {
        memcpy(outgoing->bytes + INF_FRAME_HEADER_BYTES + outgoing->meta_size, question->data,
               question->data_bytes);
        outgoing->size += question->data_bytes;
    }
    if (code == INF_OK && question->fd != NULL) {
        outgoing->fd = fcntl(*question->fd, F_DUPFD_CLOEXEC, 0);
        if (outgoing->fd < 0)
            code =
                inf_fail(err, INF_EXHAUSTED, "no descriptor for a question: %s", strerror(errno));
    }
    struct inf_client_call *call = code == INF_OK ? inf_client_call_acquire(client, err) : NULL;
    if (call == NULL) {
        inf_client_outgoing_release(client, &outgoing);
        return code == INF_OK ? INF_EXHAUSTED : code;
    }
    call->phase = INF_CLIENT_CALL_CONTROL;
    call->start_ns = inf_client_now_ns();
    call->give_up_ns = question->limit_ns == 0 ? 0 : call->start_ns + question->limit_ns;
    call->callback = store_code;
    call->internal_callback = true;
    call->context = waiter;
    call->reply_kind = question->reply_kind;
    call->on_reply = question->on_reply;
    call->reply_context = question->context;
    inf_client_call_send(client, call, outgoing, question->method);
    inf_client_outgoing_release(client, &outgoing);
    *out_call = call;
    return INF_OK;
}

// Sends a question to the daemon once, without a retry, and blocks until the answer arrives.
static int ask_once(inferd_client *client, const struct inf_client_question *question,
                    struct inferd_error *err)
{
    struct inf_error error = {.code = INF_OK};
    struct waiter waiter = {.err = err, .code = INFERD_CANCELLED};
    struct inf_client_call *call = NULL;
    uint64_t until_ns = question->limit_ns == 0 ? 0 : inf_client_now_ns() + question->limit_ns;
    while (inf_client_credit_check_request(client, &error) == INF_EXHAUSTED &&
           client->calls.open_count > 0 && inf_client_event_loop_wait(client, until_ns))
        ;
    if (send_question(client, question, &waiter, &call, &error) != INF_OK)
        return inf_client_report_error(err, &error);
    while (!waiter.done && inf_client_event_loop_wait(client, 0))
        ;
    if (!waiter.done) // no answer has arrived, because a callback has closed the client
        inf_client_report_error(err,
                                &(struct inf_error){.code = INF_CANCELLED,
                                                    .reason = INF_REASON_BY_CLIENT,
                                                    .text = "the client was closed meanwhile"});
    return waiter.code;
}

int inf_client_question_ask(inferd_client *client, const struct inf_client_question *question,
                            struct inferd_error *err)
{
    struct inferd_error last = {.code = INFERD_OK};
    int code;
    inf_client_enter(client);
    struct inf_client_retry_wait wait = {.start_ns = inf_client_now_ns()};
    uint64_t answer_ns = question->limit_ns != 0 ? question->limit_ns : client->answer_ns;
    wait.deadline_ns = wait.start_ns + INF_MAX(answer_ns, client->retry.limit_ns);
    do {
        wait.unsent = client->connection.failure.code != INF_OK;
        code = ask_once(client, question, &last);
    } while (code != INFERD_OK && inf_client_retry_wait(client, &wait, &last));
    inf_client_leave(client);
    if (err != NULL)
        *err = last;
    return code == INFERD_OK ? INFERD_OK : last.code;
}

int inf_client_question_refuse_name(struct inferd_error *err, const char *name)
{
    struct inf_error error;
    inf_fail_reason(&error, INF_INVALID, INF_REASON_BAD_PARAMETER,
                    "'%.80s' is no model's name, wanted 1 to %u of A-Z a-z 0-9 . _ - without a "
                    "leading dot, and perhaps @VERSION",
                    name == NULL ? "" : name, INF_LIMIT_MODEL_NAME);
    return inf_client_report_error(err, &error);
}

bool inf_client_question_is_model_name(const char *name)
{
    return name != NULL && inf_model_reference_valid(name);
}

enum inf_code inf_client_question_fail_memory(struct inf_error *err)
{
    return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for the answer");
}
