// SPDX-License-Identifier: Apache-2.0
// Functions that report where a model runs and why, and that move a model to another device (public
// functions).
#include <stdio.h>
#include <stdlib.h>

#include "client/inferd.h"
#include "client/lib/admin/progress.h"
#include "client/lib/admin/question.h"
#include "client/lib/client.h"
#include "proto/core/span.h"

static void copy_candidate(inferd_candidate *to, const struct inf_candidate_entry *from)
{
    INF_COPY_TEXT(to->device, from->device);
    INF_COPY_TEXT(to->backend, from->backend);
    INF_COPY_TEXT(to->kind, from->kind);
    INF_COPY_TEXT(to->precision, from->precision);
    INF_COPY_TEXT(to->verdict, from->verdict);
    INF_COPY_TEXT(to->reason, from->reason);
    to->runs = from->runs;
    to->prior_ns = from->prior_ns;
    to->first_ns = from->first_ns;
    to->median_ns = from->median_ns;
    to->memory_bytes = from->memory_bytes;
    to->threads = from->threads;
}

static void copy_declined(inferd_declined *to, const struct inf_declined_entry *from)
{
    INF_COPY_TEXT(to->op, from->op);
    INF_COPY_TEXT(to->device, from->device);
    INF_COPY_TEXT(to->reason, from->reason);
    to->nodes = from->nodes;
}

static void copy_setting(inferd_setting *to, const struct inf_setting_entry *from)
{
    INF_COPY_TEXT(to->name, from->name);
    INF_COPY_TEXT(to->value, from->value);
    INF_COPY_TEXT(to->origin, from->origin);
    INF_COPY_TEXT(to->default_value, from->default_value);
    INF_COPY_TEXT(to->allowed, from->allowed);
}

static void copy_placement(inferd_placement *to, const struct inf_placement_reply *from)
{
    INF_COPY_TEXT(to->name, from->name);
    INF_COPY_TEXT(to->version, from->version);
    INF_COPY_TEXT(to->device, from->device);
    INF_COPY_TEXT(to->backend, from->backend);
    INF_COPY_TEXT(to->precision, from->precision);
    INF_COPY_TEXT(to->precision_reason, from->precision_reason);
    INF_COPY_TEXT(to->policy, from->policy);
    INF_COPY_TEXT(to->source, from->source);
    INF_COPY_TEXT(to->reason, from->reason);
    INF_COPY_TEXT(to->rule_device, from->rule_device);
    INF_COPY_TEXT(to->rule_reason, from->rule_reason);
    INF_COPY_TEXT(to->shadow_alarm, from->shadow_alarm);
    INF_COPY_TEXT(to->joined_steps, from->joined_steps);
    to->shadow_checked = from->shadow_checked;
    to->shadow_drifted = from->shadow_drifted;
    to->shadow_dropped = from->shadow_dropped;
    to->recomputed = from->recomputed;
    to->macs = from->macs;
    to->const_bytes = from->const_bytes;
    to->steps = from->steps;
    to->interpreted = from->interpreted;
    to->small_ops_webgl = from->small_ops_webgl;
    to->small_ops_webgpu = from->small_ops_webgpu;
    to->candidate_count = from->candidate_count;
    to->declined_count = from->declined_count;
    to->setting_count = from->setting_count;
}

static enum inf_code handle_placement(void *context, const union inf_message *message, bool final,
                                      struct inf_error *err)
{
    (void) final;
    inferd_placement **out_placement = context;
    const struct inf_placement_reply *from = &message->placement_reply;
    // One allocation holds the placement and its three lists.
    inferd_placement *placement =
        calloc(1, sizeof *placement + from->candidate_count * sizeof(inferd_candidate) +
                      from->declined_count * sizeof(inferd_declined) +
                      from->setting_count * sizeof(inferd_setting));
    if (placement == NULL)
        return inf_client_question_fail_memory(err);
    placement->candidates = (inferd_candidate *)(placement + 1);
    placement->declined = (inferd_declined *)(placement->candidates + from->candidate_count);
    placement->settings = (inferd_setting *)(placement->declined + from->declined_count);
    copy_placement(placement, from);
    for (uint32_t i = 0; i < from->candidate_count; i++)
        copy_candidate(&placement->candidates[i], &from->candidates[i]);
    for (uint32_t i = 0; i < from->declined_count; i++)
        copy_declined(&placement->declined[i], &from->declined[i]);
    for (uint32_t i = 0; i < from->setting_count; i++)
        copy_setting(&placement->settings[i], &from->settings[i]);
    *out_placement = placement;
    return INF_OK;
}

int inferd_explain(inferd_client *client, const char *name, const char *version,
                   inferd_placement **placement, struct inferd_error *err)
{
    *placement = NULL;
    if (name == NULL || !inf_model_reference_valid(name))
        return inf_client_question_refuse_name(err, name);
    const struct inf_client_question question = {
        .method = INF_METHOD_MODEL_PLACEMENT,
        .kind = INF_MESSAGE_PLACEMENT_REQUEST,
        .body.placement_request = {.name = name, .version = version},
        .reply_kind = INF_MESSAGE_PLACEMENT_REPLY,
        .limit_ns = client->answer_ns,
        .on_reply = handle_placement,
        .context = placement,
    };
    return inf_client_question_ask(client, &question, err);
}

void inferd_placement_free(inferd_placement *placement)
{
    free(placement);
}

static int place_model(inferd_client *client, const inferd_place_request *order,
                       enum inf_persistence persistence, struct inf_client_progress *progress,
                       struct inferd_error *err)
{
    if (order->model == NULL || !inf_model_reference_valid(order->model))
        return inf_client_question_refuse_name(err, order->model);
    const struct inf_client_question question = {
        .method = INF_METHOD_MODEL_PLACE,
        .kind = INF_MESSAGE_PLACEMENT_REQUEST,
        .body.placement_request = {.name = order->model,
                                   .version = order->version,
                                   .device = order->device,
                                   .policy = order->policy,
                                   .precision = order->precision,
                                   .mode = order->mode,
                                   .persistence = persistence},
        .reply_kind = INF_MESSAGE_EMPTY,
        .on_reply = inf_client_progress_handle,
        .context = progress,
    };
    return inf_client_question_ask(client, &question, err);
}

int inferd_place(inferd_client *client, const inferd_place_request *order, inferd_progress progress,
                 void *context, struct inferd_error *err)
{
    struct inf_client_progress state = {.client = client, .callback = progress, .context = context};
    return place_model(client, order, INF_PERSIST_NOT, &state, err);
}

int inferd_place_persist(inferd_client *client, const inferd_place_request *order,
                         inferd_progress progress, void *context, struct inferd_error *err)
{
    struct inf_client_progress state = {.client = client, .callback = progress, .context = context};
    return place_model(client, order, INF_PERSIST_KEEP, &state, err);
}

int inferd_place_forget(inferd_client *client, const char *model, inferd_progress progress,
                        void *context, struct inferd_error *err)
{
    struct inf_client_progress state = {.client = client, .callback = progress, .context = context};
    return place_model(client, &(inferd_place_request){.model = model}, INF_PERSIST_FORGET, &state,
                       err);
}

int inferd_precompile(inferd_client *client, const char *name, const char *version,
                      const char *device, const char *shapes, inferd_progress progress,
                      void *context, struct inferd_error *err)
{
    struct inf_client_progress progress_state = {
        .client = client, .callback = progress, .context = context};
    if (name == NULL || !inf_model_reference_valid(name))
        return inf_client_question_refuse_name(err, name);
    const struct inf_client_question question = {
        .method = INF_METHOD_MODEL_PRECOMPILE,
        .kind = INF_MESSAGE_PRECOMPILE,
        .body.precompile = {.name = name, .version = version, .device = device, .shapes = shapes},
        .reply_kind = INF_MESSAGE_EMPTY,
        .on_reply = inf_client_progress_handle,
        .context = &progress_state,
    };
    return inf_client_question_ask(client, &question, err);
}
