// SPDX-License-Identifier: Apache-2.0
// The methods ModelPlacement (shows where a model runs and why), ModelPlace (places it again) and
// ModelPrecompile (compiles it for more shapes).
#include <stdio.h>

#include "daemon/service/device.h"
#include "daemon/service/handlers.h"
#include "daemon/service/load_call.h"
#include "proto/core/utf8.h"

// --- the ModelPlacement method ---

// Returns why a candidate was not chosen, for candidates for which the race recorded no reason.
static const char *explain_candidate(const struct inf_placement *placement,
                                     const struct inf_race_entry *entry)
{
    static const char *const reasons[] = {
        [INF_PLACE_PINNED] = "another one was named",
        [INF_PLACE_RULE] = "not measured: the rule stands",
    };
    if (entry->why[0] != '\0' || entry->verdict != INF_RACE_LEFT_OUT)
        return entry->why;
    return (size_t)placement->source < INF_ARRAY_LENGTH(reasons) ? reasons[placement->source] : "";
}

static void describe_candidate(struct inf_candidate_entry *to,
                               const struct inf_placement *placement, uint32_t index)
{
    const struct inf_race_entry *entry = &placement->race.entries[index];
    const struct inf_device_info *info = inf_device_info(entry->device);
    *to = (struct inf_candidate_entry){
        .device = info->name,
        .backend = info->backend,
        .kind = inf_service_device_kind(info),
        .precision = inf_precision_name(entry->options.precision),
        .threads = entry->options.threads > 0 ? entry->options.threads : info->threads,
        .verdict = index == placement->race.chosen ? inf_race_verdict_name(INF_RACE_CHOSEN)
                                                   : inf_race_verdict_name(entry->verdict),
        .reason = index == placement->race.chosen ? "" : explain_candidate(placement, entry),
        .runs = entry->runs,
        .prior_ns = placement->prior_ns[index],
        .first_ns = entry->first_ns,
        .median_ns = entry->median_ns,
        .memory_bytes = entry->memory_bytes,
    };
}

static bool is_listed(const struct inf_placement *placement, const struct inf_device *device)
{
    for (uint32_t i = 0; i < placement->race.count; i++)
        if (placement->race.entries[i].device == device)
            return true;
    return false;
}

// Lists the candidates, ordered by predicted run time with the fastest first, and then the devices
// that could not be candidates.
static uint32_t describe_candidates(struct inf_service *service, const struct inf_served *served)
{
    const struct inf_placement *placement = &served->placement;
    uint32_t count = 0;
    for (uint32_t i = 0; i < placement->race.count; i++) {
        // Report the present memory use of the chosen candidate, because it is more accurate than
        // the value from the race.
        const struct inf_race_entry *entry = &placement->race.entries[i];
        uint64_t bytes = inf_model_device_bytes(served->model, entry->device);
        bool as_is = i == placement->race.chosen ||
                     (entry->memory_bytes == 0 && entry->options.precision <= INF_PRECISION_FP32);
        describe_candidate(&service->candidates[count], placement, i);
        if (bytes > 0 && as_is)
            service->candidates[count].memory_bytes = bytes;
        count++;
    }
    for (uint32_t i = 0; i < service->options.devices->count; i++) {
        const struct inf_device *device = service->options.devices->devices[i];
        const struct inf_device_info *info = inf_device_info(device);
        if (is_listed(placement, device) || count == INF_ARRAY_LENGTH(service->candidates))
            continue;
        bool failed = device == placement->failed;
        service->candidates[count++] = (struct inf_candidate_entry){
            .device = info->name,
            .backend = info->backend,
            .kind = inf_service_device_kind(info),
            .precision = inf_precision_name(INF_PRECISION_FP32),
            .threads = info->threads,
            .verdict = failed ? inf_race_verdict_name(INF_RACE_REFUSED) : "not asked",
            .memory_bytes = inf_model_device_bytes(served->model, device),
            .reason = failed ? placement->failed_why
                      : info->kind == INF_DEVICE_SOFTWARE
                          ? "a GPU interface that the CPU computes: only where it is named"
                          : "not among the devices that are allowed",
        };
    }
    return count;
}

static uint32_t describe_declined(struct inf_service *service,
                                  const struct inf_model_profile *facts)
{
    for (uint32_t i = 0; i < facts->declined_count; i++) {
        const struct inf_declined *declined = &facts->declined[i];
        service->declined[i] =
            (struct inf_declined_entry){.op = declined->op,
                                        .nodes = declined->nodes,
                                        .device = inf_device_info(declined->device)->name,
                                        .reason = declined->reason};
    }
    return facts->declined_count;
}

static uint32_t describe_settings(struct inf_service *service,
                                  const struct inf_model_config *config)
{
    for (uint32_t i = 0; i < INF_MODEL_FLAG_COUNT; i++) {
        const struct inf_flag *flag = &inf_model_flags.flags[i];
        enum inf_origin origin = inf_flag_list_origin(&inf_model_flags, config, flag);
        inf_flag_print(config, flag, service->setting_values[i]);
        inf_text_clean(service->setting_values[i]);
        inf_flag_wanted(flag, service->setting_wanted[i]);
        service->settings[i] = (struct inf_setting_entry){.name = flag->name,
                                                          .value = service->setting_values[i],
                                                          .origin = inf_origin_name(origin),
                                                          .default_value = flag->fallback,
                                                          .allowed = service->setting_wanted[i]};
    }
    return INF_MODEL_FLAG_COUNT;
}

// Returns the precision that the model computes in. This is the precision of its placement if at
// least one node uses it, otherwise fp32.
static enum inf_precision find_precision(const struct inf_served *served)
{
    return served->placement.options.precision > INF_PRECISION_FP32 &&
                   served->warm_precision == served->placement.options.precision
               ? served->placement.options.precision
               : INF_PRECISION_FP32;
}

enum inf_code inf_service_model_placement(struct inf_service *service, struct inf_request *request,
                                          struct inf_answer *answer, struct inf_fault *fault)
{
    struct inf_served *served = NULL;
    const char *name = service->request.placement_request.name;
    const char *version = service->request.placement_request.version;
    inf_fault_model(fault, name, version);
    INF_TRY(inf_model_store_find(service->options.store, request->caller, name, version, &served,
                                 &fault->err));
    // The texts stay valid after the reference is dropped, because the store keeps the model until
    // it handles its next event.
    const struct inf_placement *placement = &served->placement;
    const struct inf_device_info *device = inf_device_info(served->device);
    service->reply.placement_reply = (struct inf_placement_reply){
        .name = served->name,
        .version = served->version,
        .device = device->name,
        .backend = device->backend,
        .precision = inf_precision_name(find_precision(served)),
        .precision_reason = served->precision_reason,
        .policy = inf_place_policy_name(placement->policy),
        .source = inf_place_source_name(placement->source),
        .reason = placement->reason,
        .rule_device = inf_device_info(placement->rule)->name,
        .rule_reason = placement->rule_reason,
        .shadow_checked = atomic_load(&served->shadow.checked),
        .shadow_drifted = atomic_load(&served->shadow.drifted),
        .shadow_dropped = atomic_load(&served->shadow.dropped),
        .shadow_alarm = atomic_load(&served->shadow.drifted) > 0 ? served->shadow.alarm : "",
        .recomputed = atomic_load(&served->recomputed),
        .joined_steps = inf_served_explain_steps(served, service->joined_steps),
        .macs = served->profile.macs,
        .const_bytes = inf_graph_cost(inf_model_graph(served->model)).const_bytes,
        .steps = served->profile.steps,
        .interpreted = served->profile.interpreted,
        .small_ops_webgl = served->profile.small_webgl,
        .small_ops_webgpu = served->profile.small_webgpu,
        .candidate_count = describe_candidates(service, served),
        .candidates = service->candidates,
        .declined_count = describe_declined(service, &served->profile),
        .declined = service->declined,
        .setting_count = describe_settings(service, &served->config),
        .settings = service->settings,
    };
    inf_served_unref(&served);
    answer->kind = INF_MESSAGE_PLACEMENT_REPLY;
    return INF_OK;
}

// --- the ModelPlace method ---

static enum inf_code start_placement(struct inf_service *service, uint64_t token,
                                     struct inf_error *err) INF_ON_LOOP
{
    const struct inf_placement_request *wanted = &service->request.placement_request;
    const struct inf_place_request order = {.name = wanted->name,
                                            .version = wanted->version,
                                            .device = wanted->device,
                                            .policy = wanted->policy,
                                            .precision = wanted->precision,
                                            .mode = wanted->mode,
                                            .persists = wanted->persistence == INF_PERSIST_KEEP,
                                            .token = token};
    if (wanted->persistence == INF_PERSIST_FORGET)
        return inf_model_store_forget_settings(service->options.store, wanted->name, token, err);
    return inf_model_store_place(service->options.store, &order, err);
}

enum inf_code inf_service_model_place(struct inf_service *service, struct inf_request *request,
                                      struct inf_answer *answer, struct inf_fault *fault)
{
    (void)request;
    const struct inf_placement_request *wanted = &service->request.placement_request;
    inf_fault_model(fault, wanted->name, wanted->version);
    return inf_service_begin_load(service, start_placement, answer, fault);
}

// --- the ModelPrecompile method ---

static enum inf_code start_compilation(struct inf_service *service, uint64_t token,
                                       struct inf_error *err) INF_ON_LOOP
{
    const struct inf_precompile_message *wanted = &service->request.precompile;
    const struct inf_precompile_request order = {.name = wanted->name,
                                                 .version = wanted->version,
                                                 .device = wanted->device,
                                                 .shapes = wanted->shapes,
                                                 .token = token};
    return inf_model_store_precompile(service->options.store, &order, err);
}

enum inf_code inf_service_model_precompile(struct inf_service *service, struct inf_request *request,
                                           struct inf_answer *answer, struct inf_fault *fault)
{
    (void)request;
    const struct inf_precompile_message *wanted = &service->request.precompile;
    inf_fault_model(fault, wanted->name, wanted->version);
    return inf_service_begin_load(service, start_compilation, answer, fault);
}
