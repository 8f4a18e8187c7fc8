// SPDX-License-Identifier: Apache-2.0
// Environment and FlagSet: facts about the machine, and flags of the daemon.
#include "proto/wire/message_codec.h"

typedef Inference__EnvironmentResponse wire_environment;
typedef Inference__EnvironmentResponse__Fact wire_fact;
typedef Inference__EnvironmentResponse__Flag wire_flag;

static enum inf_code decode_set(union inf_message *message, const void *wire,
                                struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    const Inference__FlagSetRequest *from = wire;
    INF_TRY(inf_check_text("name", from->name, INF_TEXT_LIMIT, err));
    INF_TRY(inf_check_text("value", from->value, INF_TEXT_LIMIT, err));
    INF_TRY(inf_wire_check_persistence(from->persist, err));
    message->flag_set =
        (struct inf_flag_set_request){.name = from->name,
                                      .value = from->value,
                                      .persistence = (enum inf_persistence)from->persist};
    return INF_OK;
}

static enum inf_code encode_set(const union inf_message *message, void *wire,
                                struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    (void)err;
    Inference__FlagSetRequest *to = wire;
    to->name = inf_wire_text(message->flag_set.name);
    to->value = inf_wire_text(message->flag_set.value);
    to->persist = message->flag_set.persistence;
    return INF_OK;
}

const struct inf_message_codec inf_codec_flag_set = {
    .descriptor = &inference__flag_set_request__descriptor,
    .decode = decode_set,
    .encode = encode_set,
};

static void decode_flag(struct inf_flag_entry *to, const wire_flag *from)
{
    *to = (struct inf_flag_entry){
        .name = from->name,
        .type = from->type,
        .value = from->value,
        .default_value = from->default_value,
        .origin = from->origin,
        .stability = from->stability,
        .live = from->live != 0,
        .allowed = from->allowed,
        .help = from->help,
    };
}

static enum inf_code decode_environment(union inf_message *message, const void *wire,
                                        struct inf_scratch *scratch, struct inf_error *err)
{
    const wire_environment *from = wire;
    struct inf_environment_reply *to = &message->environment;
    to->fact_count = (uint32_t)from->n_facts;
    to->flag_count = (uint32_t)from->n_flags;
    to->facts = inf_scratch_array(scratch, from->n_facts, sizeof *to->facts, err);
    if (to->facts == NULL)
        return INF_EXHAUSTED;
    to->flags = inf_scratch_array(scratch, from->n_flags, sizeof *to->flags, err);
    if (to->flags == NULL)
        return INF_EXHAUSTED;
    for (size_t i = 0; i < from->n_facts; i++)
        to->facts[i] = (struct inf_fact_entry){from->facts[i]->name, from->facts[i]->value};
    for (size_t i = 0; i < from->n_flags; i++)
        decode_flag(&to->flags[i], from->flags[i]);
    return INF_OK;
}

static void encode_flag(wire_flag *to, const struct inf_flag_entry *from)
{
    to->name = inf_wire_text(from->name);
    to->type = inf_wire_text(from->type);
    to->value = inf_wire_text(from->value);
    to->default_value = inf_wire_text(from->default_value);
    to->origin = inf_wire_text(from->origin);
    to->stability = inf_wire_text(from->stability);
    to->live = from->live;
    to->allowed = inf_wire_text(from->allowed);
    to->help = inf_wire_text(from->help);
}

static enum inf_code encode_environment(const union inf_message *message, void *wire,
                                        struct inf_scratch *scratch, struct inf_error *err)
{
    const struct inf_environment_reply *from = &message->environment;
    wire_environment *to = wire;
    to->n_facts = from->fact_count;
    to->facts = inf_wire_list(&inference__environment_response__fact__descriptor, from->fact_count,
                              scratch, err);
    if (to->facts == NULL)
        return INF_EXHAUSTED;
    to->n_flags = from->flag_count;
    to->flags = inf_wire_list(&inference__environment_response__flag__descriptor, from->flag_count,
                              scratch, err);
    if (to->flags == NULL)
        return INF_EXHAUSTED;
    for (uint32_t i = 0; i < from->fact_count; i++) {
        to->facts[i]->name = inf_wire_text(from->facts[i].name);
        to->facts[i]->value = inf_wire_text(from->facts[i].value);
    }
    for (uint32_t i = 0; i < from->flag_count; i++)
        encode_flag(to->flags[i], &from->flags[i]);
    return INF_OK;
}

const struct inf_message_codec inf_codec_environment = {
    .descriptor = &inference__environment_response__descriptor,
    .decode = decode_environment,
    .encode = encode_environment,
};
