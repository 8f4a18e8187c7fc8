// SPDX-License-Identifier: Apache-2.0
// Sessions: opening, closing and rewinding them.
#include <assert.h>
#include <string.h>

#include "proto/core/utf8.h"
#include "proto/wire/message_codec.h"
#include "proto/wire/tensor_entry.h"

typedef Inference__SessionOpenRequest__State wire_state;

static enum inf_code check_session_id(uint64_t session_id, struct inf_error *err)
{
    if (session_id == 0)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "session_id is 0, which stands for none");
    return INF_OK;
}

static enum inf_code decode_state(struct inf_session_state *state, const wire_state *wire,
                                  struct inf_error *err)
{
    *state = (struct inf_session_state){
        .output = wire->output, .input = wire->input, .shaped = wire->shaped};
    INF_TRY(inf_tensor_check_name("output", wire->output, err));
    INF_TRY(inf_tensor_check_name("input", wire->input, err));
    const struct inf_wire_tensor tensor = {
        .name = wire->input, .rank = wire->n_shape, .dims = wire->shape};
    return wire->shaped ? inf_shape_decode(&state->shape, "state", &tensor, err) : INF_OK;
}

static enum inf_code check_distinct(const struct inf_session_message *session,
                                    struct inf_error *err)
{
    for (uint32_t i = 1; i < session->state_count; i++)
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(session->states[i].input, session->states[j].input) == 0)
                return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                                       "state '%s' is named twice",
                                       inf_quote(session->states[i].input).text);
    return INF_OK;
}

static enum inf_code decode_open(union inf_message *message, const void *from,
                                 struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    const Inference__SessionOpenRequest *wire = from;
    struct inf_session_message *session = &message->session;
    session->session_id = wire->session_id;
    INF_TRY(check_session_id(wire->session_id, err));
    if (wire->n_states > INF_LIMIT_SESSION_TENSORS)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "%zu states, at most %u are allowed", wire->n_states,
                               INF_LIMIT_SESSION_TENSORS);
    for (size_t i = 0; i < wire->n_states; i++)
        INF_TRY(decode_state(&session->states[i], wire->states[i], err));
    session->state_count = (uint32_t)wire->n_states;
    session->model_name = wire->model_name;
    session->model_version = wire->model_version;
    if (wire->model_name[0] != '\0') {
        INF_TRY(inf_decode_model("model_name", wire->model_name, "model_version",
                                 &session->model_version, err));
        if (wire->n_states != 0)
            return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                                   "states and a model_name, wanted one of them");
    }
    session->max_length = wire->max_length;
    if (session->max_length > INF_LIMIT_HISTORY_ROWS)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "max_length is %u, at most %u", session->max_length,
                               INF_LIMIT_HISTORY_ROWS);
    session->fork_of = wire->fork_of;
    if (wire->fork_of != 0 && (wire->n_states != 0 || wire->model_name[0] != '\0'))
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "fork_of, and states or a model_name, wanted one of them");
    return check_distinct(session, err);
}

static enum inf_code encode_open(const union inf_message *message, void *to,
                                 struct inf_scratch *scratch, struct inf_error *err)
{
    const struct inf_session_message *session = &message->session;
    Inference__SessionOpenRequest *wire = to;
    assert(session->state_count <= INF_LIMIT_SESSION_TENSORS);
    wire->session_id = session->session_id;
    wire->fork_of = session->fork_of;
    wire->max_length = session->max_length;
    wire->model_name = inf_wire_text(session->model_name);
    wire->model_version = inf_wire_text(session->model_version);
    wire->n_states = session->state_count;
    wire->states = inf_wire_list(&inference__session_open_request__state__descriptor,
                                 wire->n_states, scratch, err);
    if (wire->states == NULL)
        return INF_EXHAUSTED;
    for (uint32_t i = 0; i < session->state_count; i++) {
        const struct inf_session_state *state = &session->states[i];
        wire->states[i]->output = inf_wire_text(state->output);
        wire->states[i]->input = inf_wire_text(state->input);
        wire->states[i]->shaped = state->shaped;
        wire->states[i]->n_shape = state->shaped ? (size_t)state->shape.rank : 0;
        wire->states[i]->shape = (int64_t *)state->shape.dims;
    }
    return INF_OK;
}

const struct inf_message_codec inf_codec_session_open = {
    .descriptor = &inference__session_open_request__descriptor,
    .decode = decode_open,
    .encode = encode_open,
};

static enum inf_code decode_close(union inf_message *message, const void *from,
                                  struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    const Inference__SessionCloseRequest *wire = from;
    message->session.session_id = wire->session_id;
    message->session.state_count = 0;
    return check_session_id(wire->session_id, err);
}

static enum inf_code encode_close(const union inf_message *message, void *to,
                                  struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    (void)err;
    Inference__SessionCloseRequest *wire = to;
    wire->session_id = message->session.session_id;
    return INF_OK;
}

const struct inf_message_codec inf_codec_session_close = {
    .descriptor = &inference__session_close_request__descriptor,
    .decode = decode_close,
    .encode = encode_close,
};

static enum inf_code decode_rewind(union inf_message *message, const void *from,
                                   struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    const Inference__SessionRewindRequest *wire = from;
    message->session.session_id = wire->session_id;
    message->session.length = wire->length;
    message->session.release = wire->release;
    message->session.state_count = 0;
    return check_session_id(wire->session_id, err);
}

static enum inf_code encode_rewind(const union inf_message *message, void *to,
                                   struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    (void)err;
    Inference__SessionRewindRequest *wire = to;
    wire->session_id = message->session.session_id;
    wire->length = message->session.length;
    wire->release = message->session.release;
    return INF_OK;
}

const struct inf_message_codec inf_codec_session_rewind = {
    .descriptor = &inference__session_rewind_request__descriptor,
    .decode = decode_rewind,
    .encode = encode_rewind,
};
