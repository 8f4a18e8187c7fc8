// SPDX-License-Identifier: Apache-2.0
// Applies a configuration that was read again. Only flags whose sources changed are applied, so
// that a reload for one flag does not undo what an admin set for another.
#include <stdio.h>
#include <string.h>

#include "daemon/service/limits.h"
#include "proto/core/utf8.h"

// Room for the names of changed flags in a log line.
#define NAMES_SIZE 256

// Returns whether a flag has different values in two configurations. Writes the value of the second
// configuration to `value`, in the form of a configuration file.
static bool flag_differs(const struct inf_flag *flag, const struct inf_config *before,
                         const struct inf_config *after, char value[INF_CONFIG_TEXT])
{
    char old[INF_CONFIG_TEXT];
    return strcmp(inf_flag_print(before, flag, old), inf_flag_print(after, flag, value)) != 0;
}

static void append_name(char names[NAMES_SIZE], const char *name)
{
    size_t length = strlen(names);
    snprintf(names + length, NAMES_SIZE - length, "%s%s", length > 0 ? "," : "", name);
}

void inf_service_apply_config(struct inf_service *service, const struct inf_config *next)
{
    struct inf_environment *environment = service->options.environment;
    const struct inf_log *log = service->log;
    char value[INF_CONFIG_TEXT], restart[NAMES_SIZE] = "", live[NAMES_SIZE] = "";
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
            append_name(restart, flag->name);
        else if (inf_service_change_flag(service, flag->name, value, inf_flag_origin(next, flag),
                                         &changed, &err) == INF_OK)
            append_name(live, flag->name);
        else
            inf_log(log, INF_LOG_ERROR, "flag not changed name=%s value=\"%s\" error=\"%s\"",
                    flag->name, inf_quote(value).text, err.text);
    }
    environment->sources = *next;
    inf_log(log, INF_LOG_NOTICE, "configuration read again changed=\"%s\"", live);
    if (restart[0] != '\0')
        inf_log(log, INF_LOG_WARNING, "a restart is needed for changed flags=\"%s\"", restart);
}
