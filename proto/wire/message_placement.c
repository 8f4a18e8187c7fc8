// SPDX-License-Identifier: Apache-2.0
// ModelPlacement, ModelPlace and ModelPrecompile: messages that report and change where a model
// runs.
#include "proto/wire/message_codec.h"

typedef Inference__ModelPlacementResponse wire_placement;
typedef Inference__ModelPlacementResponse__Candidate wire_candidate;
typedef Inference__ModelPlacementResponse__Declined wire_declined;
typedef Inference__ModelPlacementResponse__Setting wire_setting;

// Lists of fields that have the same name and type in inferd's struct and in the struct of
// protobuf-c, so that a macro can copy them.
#define REQUEST_TEXTS(X)     X(device) X(policy) X(precision) X(mode)
#define CANDIDATE_TEXTS(X)   X(device) X(backend) X(kind) X(precision) X(verdict) X(reason)
#define CANDIDATE_NUMBERS(X) X(runs) X(prior_ns) X(first_ns) X(median_ns) X(memory_bytes) X(threads)
#define DECLINED_TEXTS(X)    X(op) X(device) X(reason)
#define SETTING_TEXTS(X)     X(name) X(value) X(origin) X(default_value) X(allowed)
#define PLACEMENT_TEXTS(X)   PLACEMENT_NAMES(X) PLACEMENT_REASONS(X)
// clang-format off
#define PLACEMENT_NAMES(X) \
    X(name) X(version) X(device) X(backend) X(precision) X(policy) X(source)
// clang-format on
#define PLACEMENT_REASONS(X)                                                                       \
    X(reason) X(rule_device) X(rule_reason) X(precision_reason) X(shadow_alarm) X(joined_steps)
#define PLACEMENT_NUMBERS(X)                                                                       \
    X(macs)                                                                                        \
    X(const_bytes)                                                                                 \
    X(steps)                                                                                       \
    X(interpreted)                                                                                 \
    X(small_ops_webgl)                                                                             \
    X(small_ops_webgpu)                                                                            \
    X(shadow_checked)                                                                              \
    X(shadow_drifted)                                                                              \
    X(shadow_dropped)                                                                              \
    X(recomputed)

#define TAKE(field) to->field = from->field;
#define GIVE(field) to->field = inf_wire_text(from->field);

static enum inf_code decode_request(union inf_message *message, const void *wire,
                                    struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    const Inference__ModelPlacementRequest *from = wire;
    struct inf_placement_request *to = &message->placement_request;
    to->name = from->name;
    to->version = from->version;
    INF_TRY(inf_decode_model("name", from->name, "version", &to->version, err));
#define CHECK(field) INF_TRY(inf_check_text(#field, from->field, INF_TEXT_LIMIT, err));
    REQUEST_TEXTS(CHECK)
    REQUEST_TEXTS(TAKE)
    INF_TRY(inf_wire_check_persistence(from->persist, err));
    to->persistence = (enum inf_persistence)from->persist;
    return INF_OK;
}

static enum inf_code encode_request(const union inf_message *message, void *wire,
                                    struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    (void)err;
    const struct inf_placement_request *from = &message->placement_request;
    Inference__ModelPlacementRequest *to = wire;
    GIVE(name) GIVE(version) REQUEST_TEXTS(GIVE) to->persist = from->persistence;
    return INF_OK;
}

const struct inf_message_codec inf_codec_placement_request = {
    .descriptor = &inference__model_placement_request__descriptor,
    .decode = decode_request,
    .encode = encode_request,
};

static enum inf_code decode_precompile(union inf_message *message, const void *wire,
                                       struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    const Inference__ModelPrecompileRequest *from = wire;
    struct inf_precompile_message *to = &message->precompile;
    to->name = from->name;
    to->version = from->version;
    to->device = from->device;
    to->shapes = from->shapes;
    INF_TRY(inf_check_text("device", from->device, INF_TEXT_LIMIT, err));
    INF_TRY(inf_check_text("shapes", from->shapes, INF_TEXT_LIMIT, err));
    return inf_decode_model("name", from->name, "version", &to->version, err);
}

static enum inf_code encode_precompile(const union inf_message *message, void *wire,
                                       struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    (void)err;
    const struct inf_precompile_message *from = &message->precompile;
    Inference__ModelPrecompileRequest *to = wire;
    GIVE(name) GIVE(version) GIVE(device) GIVE(shapes) return INF_OK;
}

const struct inf_message_codec inf_codec_precompile = {
    .descriptor = &inference__model_precompile_request__descriptor,
    .decode = decode_precompile,
    .encode = encode_precompile,
};

static enum inf_code decode_lists(struct inf_placement_reply *to, const wire_placement *from,
                                  struct inf_scratch *scratch, struct inf_error *err)
{
    to->candidate_count = (uint32_t)from->n_candidates;
    to->declined_count = (uint32_t)from->n_declined;
    to->candidates = inf_scratch_array(scratch, from->n_candidates, sizeof *to->candidates, err);
    if (to->candidates == NULL)
        return INF_EXHAUSTED;
    to->declined = inf_scratch_array(scratch, from->n_declined, sizeof *to->declined, err);
    if (to->declined == NULL)
        return INF_EXHAUSTED;
    to->setting_count = (uint32_t)from->n_settings;
    to->settings = inf_scratch_array(scratch, from->n_settings, sizeof *to->settings, err);
    return to->settings != NULL ? INF_OK : INF_EXHAUSTED;
}

static void decode_candidate(struct inf_candidate_entry *to, const wire_candidate *from)
{
    CANDIDATE_TEXTS(TAKE)
    CANDIDATE_NUMBERS(TAKE)
}

static void decode_declined(struct inf_declined_entry *to, const wire_declined *from)
{
    DECLINED_TEXTS(TAKE)
    TAKE(nodes)
}

static void decode_setting(struct inf_setting_entry *to, const wire_setting *from)
{
    SETTING_TEXTS(TAKE)
}

static enum inf_code decode_placement(union inf_message *message, const void *wire,
                                      struct inf_scratch *scratch, struct inf_error *err)
{
    const wire_placement *from = wire;
    struct inf_placement_reply *to = &message->placement_reply;
    PLACEMENT_TEXTS(TAKE)
    PLACEMENT_NUMBERS(TAKE)
    INF_TRY(decode_lists(to, from, scratch, err));
    for (size_t i = 0; i < from->n_candidates; i++)
        decode_candidate(&to->candidates[i], from->candidates[i]);
    for (size_t i = 0; i < from->n_declined; i++)
        decode_declined(&to->declined[i], from->declined[i]);
    for (size_t i = 0; i < from->n_settings; i++)
        decode_setting(&to->settings[i], from->settings[i]);
    return INF_OK;
}

static void encode_candidate(wire_candidate *to, const struct inf_candidate_entry *from)
{
    CANDIDATE_TEXTS(GIVE)
    CANDIDATE_NUMBERS(TAKE)
}

static void encode_declined(wire_declined *to, const struct inf_declined_entry *from)
{
    DECLINED_TEXTS(GIVE)
    TAKE(nodes)
}

static void encode_setting(wire_setting *to, const struct inf_setting_entry *from)
{
    SETTING_TEXTS(GIVE)
}

static enum inf_code encode_settings(wire_placement *to, const struct inf_placement_reply *from,
                                     struct inf_scratch *scratch, struct inf_error *err)
{
    to->n_settings = from->setting_count;
    to->settings = inf_wire_list(&inference__model_placement_response__setting__descriptor,
                                 from->setting_count, scratch, err);
    if (to->settings == NULL)
        return INF_EXHAUSTED;
    for (uint32_t i = 0; i < from->setting_count; i++)
        encode_setting(to->settings[i], &from->settings[i]);
    return INF_OK;
}

static enum inf_code encode_placement(const union inf_message *message, void *wire,
                                      struct inf_scratch *scratch, struct inf_error *err)
{
    const struct inf_placement_reply *from = &message->placement_reply;
    wire_placement *to = wire;
    PLACEMENT_TEXTS(GIVE)
    PLACEMENT_NUMBERS(TAKE)
    to->n_candidates = from->candidate_count;
    to->candidates = inf_wire_list(&inference__model_placement_response__candidate__descriptor,
                                   from->candidate_count, scratch, err);
    if (to->candidates == NULL)
        return INF_EXHAUSTED;
    to->n_declined = from->declined_count;
    to->declined = inf_wire_list(&inference__model_placement_response__declined__descriptor,
                                 from->declined_count, scratch, err);
    if (to->declined == NULL)
        return INF_EXHAUSTED;
    for (uint32_t i = 0; i < from->candidate_count; i++)
        encode_candidate(to->candidates[i], &from->candidates[i]);
    for (uint32_t i = 0; i < from->declined_count; i++)
        encode_declined(to->declined[i], &from->declined[i]);
    return encode_settings(to, from, scratch, err);
}

const struct inf_message_codec inf_codec_placement_reply = {
    .descriptor = &inference__model_placement_response__descriptor,
    .decode = decode_placement,
    .encode = encode_placement,
};
