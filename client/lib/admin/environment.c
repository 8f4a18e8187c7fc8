// SPDX-License-Identifier: Apache-2.0
// Reads facts that the daemon found out about the machine, and reads and changes its flags (public
// functions).
#include <stdio.h>
#include <stdlib.h>

#include "client/inferd.h"
#include "client/lib/admin/question.h"
#include "client/lib/client.h"
#include "proto/core/span.h"

static void copy_flag(inferd_flag *to, const struct inf_flag_entry *from)
{
    INF_COPY_TEXT(to->name, from->name);
    INF_COPY_TEXT(to->type, from->type);
    INF_COPY_TEXT(to->value, from->value);
    INF_COPY_TEXT(to->default_value, from->default_value);
    INF_COPY_TEXT(to->origin, from->origin);
    INF_COPY_TEXT(to->stability, from->stability);
    INF_COPY_TEXT(to->allowed, from->allowed);
    INF_COPY_TEXT(to->help, from->help);
    to->live = from->live;
}

static enum inf_code copy_environment(void *context, const union inf_message *message, bool final,
                                      struct inf_error *err)
{
    (void) final;
    inferd_environment **out_environment = context;
    const struct inf_environment_reply *from = &message->environment;
    // One allocation holds the environment, its facts and its flags.
    inferd_environment *environment =
        calloc(1, sizeof *environment + from->fact_count * sizeof(inferd_host_fact) +
                      from->flag_count * sizeof(inferd_flag));
    if (environment == NULL)
        return inf_client_question_fail_memory(err);
    environment->fact_count = from->fact_count;
    environment->flag_count = from->flag_count;
    environment->facts = (inferd_host_fact *)(environment + 1);
    environment->flags = (inferd_flag *)(environment->facts + from->fact_count);
    for (uint32_t i = 0; i < from->fact_count; i++) {
        INF_COPY_TEXT(environment->facts[i].name, from->facts[i].name);
        INF_COPY_TEXT(environment->facts[i].value, from->facts[i].value);
    }
    for (uint32_t i = 0; i < from->flag_count; i++)
        copy_flag(&environment->flags[i], &from->flags[i]);
    *out_environment = environment;
    return INF_OK;
}

int inferd_environment_read(inferd_client *client, inferd_environment **environment,
                            struct inferd_error *err)
{
    *environment = NULL;
    return inf_client_question_ask(
        client,
        &(struct inf_client_question){.method = INF_METHOD_ENVIRONMENT,
                                      .kind = INF_MESSAGE_EMPTY,
                                      .reply_kind = INF_MESSAGE_ENVIRONMENT,
                                      .limit_ns = client->answer_ns,
                                      .on_reply = copy_environment,
                                      .context = environment},
        err);
}

void inferd_environment_free(inferd_environment *environment)
{
    free(environment);
}

int inferd_flag_set(inferd_client *client, const char *name, const char *value,
                    struct inferd_error *err)
{
    inferd_environment *changed = NULL;
    int code = inf_client_question_ask(
        client,
        &(struct inf_client_question){.method = INF_METHOD_FLAG_SET,
                                      .kind = INF_MESSAGE_FLAG_SET,
                                      .body.flag_set = {.name = name, .value = value},
                                      .reply_kind = INF_MESSAGE_ENVIRONMENT,
                                      .limit_ns = client->answer_ns,
                                      .on_reply = copy_environment,
                                      .context = &changed},
        err);
    inferd_environment_free(changed);
    return code;
}

int inferd_flag_persist(inferd_client *client, const char *name, const char *value,
                        struct inferd_error *err)
{
    return inf_client_question_ask(
        client,
        &(struct inf_client_question){
            .method = INF_METHOD_FLAG_PERSIST,
            .kind = INF_MESSAGE_FLAG_SET,
            .body.flag_set = {.name = name,
                              .value = value,
                              .persistence = value != NULL ? INF_PERSIST_KEEP : INF_PERSIST_FORGET},
            .reply_kind = INF_MESSAGE_EMPTY},
        err);
}
