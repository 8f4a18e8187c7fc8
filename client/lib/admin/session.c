// SPDX-License-Identifier: Apache-2.0
// Opens, forks, rewinds and closes sessions (public functions).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/inferd.h"
#include "client/lib/admin/question.h"
#include "client/lib/client.h"
#include "client/lib/error.h"
#include "proto/core/span.h"

static enum inf_code fill_states(struct inf_session_message *message,
                                 const inferd_session_state *states, size_t count,
                                 struct inf_error *err)
{
    if (count > INF_LIMIT_SESSION_TENSORS)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "%zu states, wanted at most %u", count, INF_LIMIT_SESSION_TENSORS);
    message->state_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        const inferd_session_state *state = &states[i];
        if (state->output == NULL || state->input == NULL)
            return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                                   "state %zu has no %s", i,
                                   state->output == NULL ? "output" : "input");
        if (strnlen(state->output, INF_LIMIT_TENSOR_NAME + 1) > INF_LIMIT_TENSOR_NAME ||
            strnlen(state->input, INF_LIMIT_TENSOR_NAME + 1) > INF_LIMIT_TENSOR_NAME)
            return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                                   "state %zu has a name of more than %u bytes", i,
                                   INF_LIMIT_TENSOR_NAME);
        if (state->rank < -1 || state->rank > INF_LIMIT_RANK)
            return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                                   "state '%s': rank %d, wanted -1 to %d", state->input,
                                   state->rank, INF_LIMIT_RANK);
        message->states[i] = (struct inf_session_state){
            .output = state->output, .input = state->input, .shaped = state->rank >= 0};
        message->states[i].shape.rank = INF_MAX(state->rank, 0);
        for (int k = 0; k < state->rank; k++)
            message->states[i].shape.dims[k] = state->shape[k];
    }
    return INF_OK;
}

static int send_order(inferd_client *client, uint16_t method, enum inf_message_kind kind,
                      const struct inf_session_message *message, struct inferd_error *err)
{
    return inf_client_question_ask(client,
                                   &(struct inf_client_question){.method = method,
                                                                 .kind = kind,
                                                                 .session = message,
                                                                 .reply_kind = INF_MESSAGE_EMPTY,
                                                                 .limit_ns = client->answer_ns},
                                   err);
}

static int create_session(inferd_client *client, struct inf_session_message *message,
                          inferd_session **session, struct inferd_error *err)
{
    struct inf_error error;
    inferd_session *created = calloc(1, sizeof *created);
    if (created == NULL) {
        inf_fail_reason(&error, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for a session");
        return inf_client_report_error(err, &error);
    }
    created->client = client;
    inf_client_enter(client);
    created->id = message->session_id = ++client->sessions.last_id;
    int code = send_order(client, INF_METHOD_SESSION_OPEN, INF_MESSAGE_SESSION_OPEN, message, err);
    if (code == INFERD_OK) {
        created->next = client->sessions.head;
        client->sessions.head = created;
        *session = created;
    } else {
        free(created);
    }
    inf_client_leave(client);
    return code;
}

// Opens a session with these options, or with those of the session `fork_of` if it is not 0.
static int open_session(inferd_client *client, const inferd_session_options *options,
                        uint64_t fork_of, inferd_session **session, struct inferd_error *err)
{
    struct inf_error error = {.code = INF_OK};
    struct inf_session_message *message = calloc(1, sizeof *message);
    int code;
    *session = NULL;
    if (message == NULL)
        inf_fail_reason(&error, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for a session");
    else
        (void)!fill_states(message, options->states, options->count, &error);
    if (error.code == INF_OK) {
        message->model_name = options->model;
        message->model_version = options->version;
        message->max_length = options->max_length;
        message->fork_of = fork_of;
        code = create_session(client, message, session, err);
    } else {
        code = inf_client_report_error(err, &error);
    }
    free(message);
    return code;
}

int inferd_session_open(inferd_client *client, const inferd_session_state *states, size_t count,
                        inferd_session **session, struct inferd_error *err)
{
    return open_session(client, &(inferd_session_options){.states = states, .count = count}, 0,
                        session, err);
}

int inferd_session_open_model(inferd_client *client, const char *model, const char *version,
                              inferd_session **session, struct inferd_error *err)
{
    if (model == NULL) {
        *session = NULL;
        return inf_client_question_refuse_name(err, model);
    }
    return inferd_session_open_with(
        client, &(inferd_session_options){.model = model, .version = version}, session, err);
}

int inferd_session_open_with(inferd_client *client, const inferd_session_options *options,
                             inferd_session **session, struct inferd_error *err)
{
    *session = NULL;
    if (options->model != NULL && !inf_model_reference_valid(options->model))
        return inf_client_question_refuse_name(err, options->model);
    return open_session(client, options, 0, session, err);
}

int inferd_session_fork(inferd_session *session, inferd_session **fork, struct inferd_error *err)
{
    return open_session(session->client, &(inferd_session_options){0}, session->id, fork, err);
}

static int rewind_session(inferd_session *session, uint64_t length, bool release,
                          struct inferd_error *err)
{
    inferd_client *client = session->client;
    const struct inf_session_message message = {
        .session_id = session->id, .length = length, .release = release};
    inf_client_enter(client);
    int code =
        send_order(client, INF_METHOD_SESSION_REWIND, INF_MESSAGE_SESSION_REWIND, &message, err);
    inf_client_leave(client);
    return code;
}

int inferd_session_rewind(inferd_session *session, uint64_t length, struct inferd_error *err)
{
    return rewind_session(session, length, false, err);
}

int inferd_session_truncate(inferd_session *session, uint64_t length, struct inferd_error *err)
{
    return rewind_session(session, length, true, err);
}

void inferd_session_close(inferd_session *session)
{
    if (session == NULL)
        return;
    inferd_client *client = session->client;
    const struct inf_session_message message = {.session_id = session->id};
    inf_client_enter(client);
    inferd_session **link = &client->sessions.head;
    while (*link != session)
        link = &(*link)->next;
    *link = session->next;
    free(session);
    (void)send_order(client, INF_METHOD_SESSION_CLOSE, INF_MESSAGE_SESSION_CLOSE, &message, NULL);
    inf_client_leave(client);
}
