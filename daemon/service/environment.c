// SPDX-License-Identifier: Apache-2.0
// Changes flags while the daemon runs: validates the new value, passes it to the modules that use
// the flag, and stores it in the configuration.
#include "daemon/service/environment.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proto/core/utf8.h"

// --- flag values that depend on the host ---

// Replaces a flag that is 0 (automatic) by the chosen value, and records the host as its origin.
static void derive_value(struct inf_config *config, enum inf_flag_id id, uint32_t *field,
                         uint32_t chosen)
{
    if (*field != 0)
        return;
    *field = chosen;
    config->origins[id] = INF_ORIGIN_HOST;
}

void inf_environment_init(struct inf_environment *environment, const struct inf_config *sources,
                          const struct inf_device_list *devices)
{
    struct inf_config *config = environment->config;
    environment->sources = *sources;
    // A persistent value may be smaller than the configured one, and can be reset.
    environment->queue_requests_most =
        INF_MAX(config->queue_requests_max, sources->queue_requests_max);
    inf_host_info_read(&environment->facts, "");
    for (uint32_t i = 0; i < devices->count; i++) {
        const struct inf_device_info *info = inf_device_info(devices->devices[i]);
        if (info->kind != INF_DEVICE_CPU)
            continue;
        derive_value(config, INF_FLAG_ID_cpu_slots, &config->cpu_slots, info->slots);
        derive_value(config, INF_FLAG_ID_cpu_threads, &config->cpu_threads, info->threads);
    }
}

// --- changing a flag ---

// Passes the changed flag of the configuration `next` on to the modules that keep a copy of this
// flag's value.
static enum inf_code apply_flag(struct inf_environment *environment, enum inf_flag_id id,
                                const struct inf_config *next, struct inf_error *err) INF_ON_LOOP
{
    switch (id) {
    case INF_FLAG_ID_device:
        return inf_model_store_set_device(environment->store, next->device, err);
    case INF_FLAG_ID_power:
    case INF_FLAG_ID_race:
    case INF_FLAG_ID_race_tolerance: {
        struct inf_place_rules rules = {.tolerance = next->race_tolerance};
        // Parsing cannot fail here, because the value was validated when the flag was parsed.
        (void)inf_place_races_parse(next->race, &rules.races);
        (void)inf_power_parse(next->power, &rules.power);
        inf_model_store_set_rules(environment->store, &rules);
        return INF_OK;
    }
    case INF_FLAG_ID_arena_bytes_per_uid_max:
        inf_model_store_set_arena_limit(environment->store, next->arena_bytes_per_uid_max);
        return INF_OK;
    case INF_FLAG_ID_request_memory_max:
        inf_model_store_set_request_limit(environment->store, next->request_memory_max);
        return INF_OK;
    case INF_FLAG_ID_load_limit_ms:
        inf_model_store_set_load_limit(environment->store, next->load_limit_ms);
        return INF_OK;
    case INF_FLAG_ID_log_level:
    case INF_FLAG_ID_log: {
        enum inf_log_level levels[INF_LOG_PARTS];
        inf_config_log_levels(next, levels);
        if (environment->log_writer != NULL)
            inf_log_writer_set_levels(environment->log_writer, levels);
        return INF_OK;
    }
    case INF_FLAG_ID_log_kind_lines:
        if (environment->log_writer != NULL)
            inf_log_writer_set_kind_lines(environment->log_writer, next->log_kind_lines);
        return INF_OK;
    default:
        return INF_OK; // no module keeps a copy; the flag is read each time it is needed
    }
}

uint64_t inf_environment_most(const struct inf_environment *environment,
                              const struct inf_flag *flag)
{
    bool queue = flag == &inf_flags[INF_FLAG_ID_queue_requests_max];
    return queue ? environment->queue_requests_most : (uint64_t)flag->max;
}

// Finds the flag, checks that it may have this value, and sets it in *next, which is a copy of the
// present configuration.
static enum inf_code try_value(const struct inf_environment *environment, const char *name,
                               const char *value, struct inf_config *next,
                               const struct inf_flag **out_flag, struct inf_error *err) INF_ON_LOOP
{
    const char *nearest;
    char wanted[INF_FLAG_WANTED_SIZE];
    *next = *environment->config;
    const struct inf_flag *flag = inf_flag_find(name, &nearest);
    if (flag == NULL || flag->type == INF_FLAG_ASK)
        return inf_fail(err, INF_NOT_FOUND, "flag '%.48s': there is none; did you mean '%s'?", name,
                        nearest);
    if (!inf_flag_parse(next, flag, value, INF_ORIGIN_ADMIN, wanted))
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "flag '%s': '%.64s': wanted %s", flag->name, value, wanted);
    if (!flag->live)
        return inf_fail(err, INF_PRECONDITION,
                        "flag '%s' is read at start: put it into the configuration, and restart",
                        flag->name);
    if (next->queue_requests_max > environment->queue_requests_most)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "flag '%s': '%.64s': wanted a number from 1 to %" PRIu32
                               ", for which room was made at start",
                               flag->name, value, environment->queue_requests_most);
    *out_flag = flag;
    return INF_OK;
}

enum inf_code inf_environment_check(const struct inf_environment *environment, const char *name,
                                    const char *value, struct inf_error *err)
{
    struct inf_config next;
    const struct inf_flag *flag;
    return try_value(environment, name, value, &next, &flag, err);
}

enum inf_code inf_environment_set(struct inf_environment *environment, const char *name,
                                  const char *value, enum inf_origin origin,
                                  const struct inf_flag **out_flag, struct inf_error *err)
{
    char wanted[INF_FLAG_WANTED_SIZE];
    struct inf_config next;
    const struct inf_flag *flag = NULL;
    INF_TRY(try_value(environment, name, value, &next, &flag, err));
    INF_TRY(apply_flag(environment, (enum inf_flag_id)(flag - inf_flags), &next, err));
    // Write only this flag, because other threads may read other flags at the same time.
    if (!inf_flag_parse(environment->config, flag, value, origin, wanted))
        return inf_fail(err, INF_INTERNAL, "flag '%s': read once, but not twice", flag->name);
    if (environment->log_writer != NULL)
        inf_log(&inf_log_writer_logs(environment->log_writer)[INF_LOG_PART_SERVICE], INF_LOG_NOTICE,
                "flag set name=%s value=\"%s\" by=%s", flag->name, inf_quote(value).text,
                inf_origin_name(origin));
    *out_flag = flag;
    return INF_OK;
}
