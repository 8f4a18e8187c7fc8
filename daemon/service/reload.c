// SPDX-License-Identifier: Apache-2.0
// A reload: reads the configuration and the repository again, for SIGHUP or for the method
// RepositoryReload. Only flags whose sources changed are applied, so that a reload for one flag
// does not undo what an admin set for another.
//
// An admin's reload first waits for the configuration, which a thread of its own reads, and then,
// like other calls, for the event of the scan of the repository that carries its token. Its reply
// comes before the models are loaded.
#include <stdio.h>
#include <string.h>

#include "daemon/service/handlers.h"
#include "daemon/service/limits.h"
#include "daemon/service/load_call.h"
#include "proto/core/utf8.h"

// Returns whether a flag has different values in two configurations. Writes the value of the second
// configuration to `value`, in the form of a configuration file.
static bool flag_differs(const struct inf_flag *flag, const struct inf_config *before,
                         const struct inf_config *after, char value[INF_CONFIG_TEXT])
{
    char old[INF_CONFIG_TEXT];
    return strcmp(inf_flag_print(before, flag, old), inf_flag_print(after, flag, value)) != 0;
}

static void append_name(char names[INF_CHANGED_NAMES], const char *name)
{
    size_t length = strlen(names);
    snprintf(names + length, INF_CHANGED_NAMES - length, "%s%s", length > 0 ? "," : "", name);
}

static void apply_config(struct inf_service *service, const struct inf_config *next,
                         struct inf_config_changes *changes) INF_ON_LOOP
{
    struct inf_environment *environment = service->options.environment;
    const struct inf_log *log = service->log;
    char value[INF_CONFIG_TEXT];
    for (size_t i = 0; i < INF_FLAG_COUNT; i++) {
        const struct inf_flag *flag = &inf_flags[i], *changed;
        struct inf_error err = {0};
        if (flag->type == INF_FLAG_ASK || !flag_differs(flag, &environment->sources, next, value))
            continue;
        // It would get its persistent value again at the next start.
        if (inf_flag_origin(environment->config, flag) == INF_ORIGIN_PERSISTED) {
            inf_log(log, INF_LOG_NOTICE, "flag not changed name=%s reason=\"it is persistent\"",
                    flag->name);
            continue;
        }
        if (!flag->live)
            append_name(changes->restart, flag->name);
        else if (inf_service_change_flag(service, flag->name, value, inf_flag_origin(next, flag),
                                         &changed, &err) == INF_OK)
            append_name(changes->live, flag->name);
        else
            inf_log(log, INF_LOG_ERROR, "flag not changed name=%s value=\"%s\" error=\"%s\"",
                    flag->name, inf_quote(value).text, err.text);
    }
    environment->sources = *next;
    inf_log(log, INF_LOG_NOTICE, "configuration read again changed=\"%s\"", changes->live);
    if (changes->restart[0] != '\0')
        inf_log(log, INF_LOG_WARNING, "a restart is needed for changed flags=\"%s\"",
                changes->restart);
}

bool inf_service_finish_reload(struct inf_service *service, const struct inf_config *next,
                               const struct inf_error *why, struct inf_load_event *event,
                               struct inf_call **call)
{
    struct inf_load *load = service->reload;
    struct inf_config_changes unseen = {0}, *changes = load != NULL ? &load->changes : &unseen;
    service->reload = NULL;
    if (next != NULL) {
        apply_config(service, next, changes);
    } else {
        snprintf(changes->error, sizeof changes->error, "%.*s", INF_CHANGED_NAMES - 1, why->text);
        inf_log(service->log, INF_LOG_ERROR, "configuration not applied error=\"%s\"", why->text);
    }
    *event = (struct inf_load_event){.token = load != NULL ? load->token : 0, .final = true};
    if (inf_model_store_reload(service->options.store, event->token, &event->err) == INF_OK)
        return false;
    inf_log(service->log, INF_LOG_ERROR, "repository not read reason=\"%s\"", event->err.text);
    *call = load != NULL ? &load->call : NULL;
    return load != NULL;
}

static enum inf_code start_reload(struct inf_service *service, uint64_t token,
                                  struct inf_error *err) INF_ON_LOOP
{
    (void)token;
    return service->options.reload(service->options.context, err);
}

enum inf_code inf_service_repository_reload(struct inf_service *service,
                                            struct inf_request *request, struct inf_answer *answer,
                                            struct inf_fault *fault)
{
    (void)request;
    if (service->reload != NULL)
        return inf_fail_reason(&fault->err, INF_UNAVAILABLE, INF_REASON_LOADING,
                               "another reload is reading the configuration");
    INF_TRY(inf_service_begin_load(service, start_reload, answer, fault));
    service->reload = service->loads; // the call that has just begun
    service->reload->is_reload = true;
    return INF_OK;
}
