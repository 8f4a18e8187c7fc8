// SPDX-License-Identifier: Apache-2.0
// Settings of one model. Flags that an admin sets through the protocol replace those of the
// settings file, until the model is unloaded or an admin loads it again.
#include "daemon/model/config.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/name.h"
#include "daemon/config/file.h"
#include "daemon/model/sequence_lengths.h"
#include "daemon/model/shapes.h"
#include "daemon/model/state_pairs.h"
#include "daemon/model/versions.h"
#include "proto/core/span.h"

static const struct inf_flag flags[INF_MODEL_FLAG_COUNT] = {
#define INF_MODEL_FLAG(field, kind, initial, least, most, checker, help_text, word_list)           \
    [INF_MODEL_FLAG_ID_##field] = {                                                                \
        .name = #field,                                                                            \
        .type = INF_FLAG_##kind,                                                                   \
        .offset = offsetof(struct inf_model_config, field),                                        \
        .fallback = (initial),                                                                     \
        .min = (double)(least),                                                                    \
        .max = (double)(most),                                                                     \
        .help = (help_text),                                                                       \
        .words = (word_list),                                                                      \
        .check = (checker),                                                                        \
    },
#include "daemon/model/flags.def"
};

const struct inf_flag_list inf_model_flags = {
    .flags = flags,
    .count = INF_MODEL_FLAG_COUNT,
    .origins_offset = offsetof(struct inf_model_config, origins),
};

bool inf_run_mode_parse(const char *text, enum inf_run_mode *mode)
{
    static const char *const names[] = {
        [INF_RUN_NORMAL] = "normal", [INF_RUN_DEBUG] = "debug", [INF_RUN_PROD] = "prod"};
    size_t index = inf_name_find(names, INF_ARRAY_LENGTH(names), text);
    if (index < INF_ARRAY_LENGTH(names))
        *mode = (enum inf_run_mode)index;
    return index < INF_ARRAY_LENGTH(names);
}

void inf_model_config_init(struct inf_model_config *config)
{
    *config = (struct inf_model_config){0};
    inf_flag_list_reset(&inf_model_flags, config);
}

enum inf_code inf_model_config_read(struct inf_model_config *config, int fd, const char *name,
                                    struct inf_error *err)
{
    FILE *stream = fdopen(fd, "r");
    if (stream == NULL) {
        close(fd);
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "%s: %s", name,
                               strerror(errno));
    }
    const struct inf_setting_place place = {.origin = INF_ORIGIN_MODEL, .file = name};
    enum inf_code code = inf_settings_read(&inf_model_flags, config, stream, place, err);
    fclose(stream);
    return code;
}

enum inf_code inf_model_config_ask(struct inf_model_config *config, enum inf_model_flag_id id,
                                   const char *value, struct inf_error *err)
{
    char wanted[INF_FLAG_WANTED_SIZE];
    // Forget where the old value came from, so that a list that an admin sets replaces the old list
    // instead of extending it.
    config->origins[id] = INF_ORIGIN_DEFAULT;
    if (inf_flag_list_set(&inf_model_flags, config, &flags[id], value, INF_ORIGIN_ADMIN, wanted))
        return INF_OK;
    return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER, "%s '%.32s': wanted %s",
                           flags[id].name, value, wanted);
}

void inf_model_config_take_persisted(struct inf_model_config *config,
                                     const struct inf_persisted *persisted, const char *name)
{
    const struct inf_persisted_setting *setting;
    for (uint32_t i = 0; (setting = inf_persisted_get(persisted, i)) != NULL; i++) {
        char wanted[INF_FLAG_WANTED_SIZE];
        const char *nearest;
        if (strcmp(setting->model, name) != 0)
            continue;
        const struct inf_flag *flag = inf_flag_list_find(&inf_model_flags, setting->name, &nearest);
        if (flag == NULL)
            continue;
        // A list replaces that of the settings file.
        const struct inf_model_config before = *config;
        config->origins[flag - flags] = INF_ORIGIN_DEFAULT;
        if (!inf_flag_list_set(&inf_model_flags, config, flag, setting->value, INF_ORIGIN_PERSISTED,
                               wanted))
            *config = before;
    }
}

enum inf_code inf_model_config_persist(struct inf_model_config *config,
                                       struct inf_persisted *persisted, const char *name,
                                       struct inf_error *err)
{
    for (size_t i = 0; i < INF_MODEL_FLAG_COUNT; i++) {
        struct inf_persisted_setting setting;
        if (config->origins[i] != INF_ORIGIN_ADMIN)
            continue;
        snprintf(setting.model, sizeof setting.model, "%s", name);
        snprintf(setting.name, sizeof setting.name, "%s", flags[i].name);
        inf_flag_print(config, &flags[i], setting.value);
        INF_TRY(inf_persisted_set(persisted, &setting, err));
        config->origins[i] = INF_ORIGIN_PERSISTED;
    }
    return INF_OK;
}

void inf_model_config_take_asked(struct inf_model_config *config,
                                 const struct inf_model_config *from)
{
    for (size_t i = 0; i < INF_MODEL_FLAG_COUNT; i++) {
        char text[INF_CONFIG_TEXT];
        char wanted[INF_FLAG_WANTED_SIZE];
        if (from->origins[i] != INF_ORIGIN_ADMIN)
            continue;
        // Forget where the old value came from, so that a list that an admin set replaces the list
        // of the settings file instead of extending it.
        config->origins[i] = INF_ORIGIN_DEFAULT;
        bool sound =
            inf_flag_list_set(&inf_model_flags, config, &flags[i],
                              inf_flag_print(from, &flags[i], text), INF_ORIGIN_ADMIN, wanted);
        assert(sound && "it was set before");
        (void)sound;
    }
}

enum inf_origin inf_model_config_origin(const struct inf_model_config *config,
                                        enum inf_model_flag_id id)
{
    return (enum inf_origin)config->origins[id];
}

static const bool is_live[INF_MODEL_FLAG_COUNT] = {
#define INF_MODEL_FLAG(field, ...)      [INF_MODEL_FLAG_ID_##field] = false,
#define INF_MODEL_LIVE_FLAG(field, ...) [INF_MODEL_FLAG_ID_##field] = true,
#include "daemon/model/flags.def"
};

void inf_model_config_take_live(struct inf_model_config *config,
                                const struct inf_model_config *from)
{
    for (size_t i = 0; i < INF_MODEL_FLAG_COUNT; i++) {
        const struct inf_flag *flag = &flags[i];
        size_t size = flag->type == INF_FLAG_U32   ? sizeof(uint32_t)
                      : flag->type == INF_FLAG_U64 ? sizeof(uint64_t)
                                                   : INF_CONFIG_TEXT;
        if (!is_live[i])
            continue;
        assert(flag->type != INF_FLAG_BOOL && flag->type != INF_FLAG_REAL);
        memcpy((char *)config + flag->offset, (const char *)from + flag->offset, size);
        config->origins[i] = from->origins[i];
    }
}

enum inf_model_priority inf_model_priority_parse(const char *text)
{
    return strcmp(text, "high") == 0  ? INF_MODEL_PRIORITY_HIGH
           : strcmp(text, "low") == 0 ? INF_MODEL_PRIORITY_LOW
                                      : INF_MODEL_PRIORITY_NORMAL;
}

bool inf_model_config_loads_same(const struct inf_model_config *a, const struct inf_model_config *b)
{
    for (size_t i = 0; i < INF_MODEL_FLAG_COUNT; i++) {
        char text[2][INF_CONFIG_TEXT];
        if (is_live[i])
            continue;
        if (strcmp(inf_flag_print(a, &flags[i], text[0]), inf_flag_print(b, &flags[i], text[1])) !=
            0)
            return false;
    }
    return true;
}
