// SPDX-License-Identifier: Apache-2.0
// Chooses a device for a model: lists the allowed candidates, orders them by the prior (a
// prediction from measured device speeds), and looks up whether an earlier race (a timing
// comparison) decided between the same candidates. A candidate is a device in one precision and
// with one number of threads. If no measurement exists, the prior's choice is used, and a
// background race is requested.
#include "daemon/load/placement.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/name.h"
#include "backends/graph/shape/infer.h"
#include "backends/precision/precision_check.h"
#include "proto/core/span.h"

static const char *const races_names[] = {[INF_PLACE_RACES_AUTO] = "auto",
                                          [INF_PLACE_RACES_ALWAYS] = "always",
                                          [INF_PLACE_RACES_NEVER] = "never"};
static const char *const policy_names[] = {[INF_PLACE_LATENCY] = "latency",
                                           [INF_PLACE_THROUGHPUT] = "throughput",
                                           [INF_PLACE_STABILITY] = "stability",
                                           [INF_PLACE_MEMORY] = "memory"};

bool inf_place_races_parse(const char *text, enum inf_place_races *races)
{
    size_t index = inf_name_find(races_names, INF_ARRAY_LENGTH(races_names), text);
    if (index < INF_ARRAY_LENGTH(races_names))
        *races = (enum inf_place_races)index;
    return index < INF_ARRAY_LENGTH(races_names);
}

bool inf_place_policy_parse(const char *text, enum inf_place_policy *policy)
{
    size_t index = inf_name_find(policy_names, INF_PLACE_POLICIES, text);
    if (index < INF_PLACE_POLICIES)
        *policy = (enum inf_place_policy)index;
    return index < INF_PLACE_POLICIES;
}

const char *inf_place_policy_name(enum inf_place_policy policy)
{
    return (size_t)policy < INF_PLACE_POLICIES ? policy_names[policy] : "unknown";
}

const char *inf_place_source_name(enum inf_place_source source)
{
    static const char *const names[] = {[INF_PLACE_PINNED] = "pinned",
                                        [INF_PLACE_RULE] = "rule",
                                        [INF_PLACE_RACE] = "race",
                                        [INF_PLACE_RECALL] = "memory"};
    return (size_t)source < INF_ARRAY_LENGTH(names) ? names[source] : "unknown";
}

static struct inf_device *choose_candidate(struct inf_placement *placement,
                                           enum inf_place_source source, uint32_t chosen,
                                           const char *reason)
{
    placement->source = source;
    placement->race.chosen = chosen;
    placement->options = placement->race.entries[chosen].options;
    snprintf(placement->reason, sizeof placement->reason, "%.159s", reason);
    return placement->race.entries[chosen].device;
}

// --- measuring the speeds of the devices ---

static void learn_speed(const struct inf_place_options *options, uint32_t index) INF_MAY_BLOCK
{
    struct inf_device *device = options->devices->devices[index];
    struct inf_device *host = options->devices->devices[options->devices->count - 1];
    struct inf_speed *speed = &options->speeds->speeds[index];
    struct inf_error err = {0};
    if (inf_speed_load(speed, device, options->version, options->cache_directory))
        return;
    if (inf_speed_measure(speed, device, host, &err) == INF_OK)
        inf_speed_save(speed, device, options->version, options->cache_directory);
    else
        inf_log(options->log, INF_LOG_INFO, "device not measured device=%s reason=\"%s\"",
                inf_device_info(device)->name, err.text);
}

// Measures the speed of each device, once per build.
static void learn_speeds(const struct inf_place_options *options) INF_MAY_BLOCK
{
    if (options->speeds == NULL || atomic_load(&options->speeds->known))
        return;
    for (uint32_t i = 0; i < INF_MIN(options->devices->count, INF_PLACE_DEVICES); i++)
        learn_speed(options, i);
    atomic_store(&options->speeds->known, true);
}

static uint64_t predict_ns(const struct inf_place_options *options, const struct inf_device *device,
                           const struct inf_speed_work *work)
{
    if (options->speeds == NULL)
        return 0;
    for (uint32_t i = 0; i < INF_MIN(options->devices->count, INF_PLACE_DEVICES); i++)
        if (options->devices->devices[i] == device)
            return inf_speed_predict_ns(&options->speeds->speeds[i], work);
    return 0;
}

// --- choosing by the prior, a prediction from measured device speeds ---

// Returns the work of one run of the model at these shapes: multiply-adds, bytes of constants, and
// steps. Multiply-adds are 0 if `shapes` is NULL or does not fit.
static struct inf_speed_work estimate_work(struct inf_model *model, const struct inf_shape *shapes)
{
    INF_CLEANUP(inf_graph_destroy) struct inf_graph *graph = NULL;
    struct inf_error ignored = {0};
    struct inf_speed_work work = {.bytes = inf_model_memory(model).const_bytes,
                                  .steps = inf_model_graph(model)->node_count};
    if (shapes != NULL && inf_graph_clone(&graph, inf_model_graph(model), &ignored) == INF_OK &&
        inf_graph_bind_shapes(graph, shapes, &ignored) == INF_OK &&
        inf_shape_infer(graph, &ignored) == INF_OK)
        work.macs = inf_graph_cost(graph).macs;
    return work;
}

static void add_candidate(struct inf_placement *placement, const struct inf_race_entry *candidate,
                          uint64_t prior_ns)
{
    if (placement->race.count == INF_RACE_ENTRIES)
        return;
    placement->prior_ns[placement->race.count] = prior_ns;
    placement->race.entries[placement->race.count++] = *candidate;
}

// Returns true if the settings allow the model to be tried in this precision.
static bool may_try(const struct inf_place_subject *subject, enum inf_precision precision)
{
    if (subject->policy == INF_PLACE_STABILITY)
        return false;
    return subject->precision == INF_PRECISION_AUTO || subject->precision == precision;
}

// Adds the candidates of one device: one for each precision, and in fp32 one with 1, 2, 4 ...
// threads, because small models gain nothing from more.
static void add_device(struct inf_placement *placement, const struct inf_place_options *options,
                       const struct inf_place_subject *subject, struct inf_device *device,
                       const struct inf_speed_work *work)
{
    const struct inf_device_info *info = inf_device_info(device);
    uint64_t prior_ns = predict_ns(options, device, work);
    struct inf_race_entry candidate = {.device = device,
                                       .options = {.precision = INF_PRECISION_FP32},
                                       .verdict = INF_RACE_LEFT_OUT,
                                       .judges = subject->precision > INF_PRECISION_FP32};
    add_candidate(placement, &candidate, prior_ns);
    bool fewer = info->fewer_threads && subject->policy != INF_PLACE_MEMORY && !candidate.judges;
    for (uint32_t threads = 1; fewer && threads < info->threads; threads *= 2) {
        candidate.options.threads = threads;
        add_candidate(placement, &candidate, 0);
    }
    candidate.options.threads = 0;
    candidate.judges = false;
    for (enum inf_precision p = INF_PRECISION_FP32 + 1; p < INF_PRECISIONS; p++) {
        if ((info->precisions & INF_PRECISION_BIT(p)) == 0 || !may_try(subject, p))
            continue;
        candidate.options.precision = p;
        // If the settings name the precision, the candidate may have the error that is normal for
        // it. If the precision is chosen automatically, the candidate must be as close to fp32 as
        // any device.
        candidate.tolerance = subject->precision == p ? inf_precision_error_max(p) : 0;
        add_candidate(placement, &candidate, 0);
    }
}

// Returns the index of the first candidate that may be chosen; 0 if there is none. A candidate that
// only judges the answers of the others may not be chosen.
static uint32_t find_first_eligible(const struct inf_placement *placement)
{
    for (uint32_t i = 0; i < placement->race.count; i++)
        if (!placement->race.entries[i].judges)
            return i;
    return 0;
}

// Lists the allowed devices that work. If none of them works, lists all allowed ones, so that the
// list is never empty.
static uint32_t list_allowed(struct inf_device *devices[INF_PLACE_DEVICES],
                             const struct inf_place_options *options,
                             const struct inf_place_subject *subject)
{
    const struct inf_device_info *infos[INF_PLACE_DEVICES];
    const char *reasons[INF_PLACE_DEVICES];
    uint32_t all = INF_MIN(options->devices->count, INF_PLACE_DEVICES), count = 0;
    for (uint32_t i = 0; i < all; i++)
        infos[i] = inf_device_info(options->devices->devices[i]);
    (void)inf_allow_check(&subject->allow, infos, all, reasons);
    for (int pass = 0; pass < 2 && count == 0; pass++)
        for (uint32_t i = 0; i < all; i++) {
            struct inf_device *device = options->devices->devices[i];
            bool works = device != subject->avoid && inf_device_health(device) == INF_DEVICE_OK;
            if (reasons[i] == NULL && (works || pass > 0))
                devices[count++] = device;
        }
    assert(count > 0 && "the rules leave a device");
    return count;
}

// Lists the candidates, ordered by predicted run time with the fastest first, and chooses the first
// one. No run is measured.
static void apply_rule(struct inf_placement *placement, const struct inf_place_options *options,
                       const struct inf_place_subject *subject) INF_MAY_BLOCK
{
    struct inf_device *devices[INF_PLACE_DEVICES];
    const struct inf_device_info *infos[INF_PLACE_DEVICES];
    uint32_t count = 0;
    count = list_allowed(devices, options, subject);
    for (uint32_t i = 0; i < count; i++)
        infos[i] = inf_device_info(devices[i]);
    const struct inf_speed_work work = estimate_work(subject->model, subject->shapes);
    const struct inf_prior_input facts = {.macs = work.macs, .const_bytes = work.bytes};
    const struct inf_prior prior = inf_prior_choose(infos, count, &facts);
    for (uint32_t i = 0; i < prior.count; i++)
        add_device(placement, options, subject, devices[prior.order[i]], &work);
    // Skip devices that are never chosen automatically, unless the settings name the device.
    bool listed = subject->pinned == NULL;
    for (uint32_t i = 0; i < placement->race.count; i++)
        listed |= placement->race.entries[i].device == subject->pinned;
    if (!listed)
        add_device(placement, options, subject, subject->pinned, &work);
    placement->rule = placement->race.entries[0].device;
    placement->rule_reason = prior.reason;
    uint32_t first = find_first_eligible(placement);
    placement->race.entries[first].verdict = INF_RACE_CHOSEN;
    choose_candidate(placement, INF_PLACE_RULE, first, prior.reason);
}

// --- choosing a candidate without measuring it ---

static struct inf_device *choose_only(struct inf_placement *placement, enum inf_place_source source,
                                      uint32_t chosen, const char *reason)
{
    for (uint32_t i = 0; i < placement->race.count; i++)
        placement->race.entries[i].verdict = i == chosen ? INF_RACE_CHOSEN : INF_RACE_LEFT_OUT;
    return choose_candidate(placement, source, chosen, reason);
}

static struct inf_device *choose_pinned(struct inf_placement *placement,
                                        const struct inf_device *device)
{
    uint32_t chosen = placement->race.count;
    for (uint32_t i = placement->race.count; i-- > 0;)
        if (placement->race.entries[i].device == device && !placement->race.entries[i].judges)
            chosen = i;
    // No candidate on this device may be chosen: take one that is not eligible. Another function
    // refuses the model or falls back to fp32 if the device does not offer the precision.
    for (uint32_t i = 0; i < placement->race.count && chosen == placement->race.count; i++)
        if (placement->race.entries[i].device == device)
            chosen = i;
    return choose_only(placement, INF_PLACE_PINNED, chosen, "it was named");
}

// Chooses the CPU, or else the reference device. Their arithmetic follows IEEE 754 exactly, while
// GPU drivers may deviate.
static struct inf_device *prefer_stable(struct inf_placement *placement)
{
    static const enum inf_device_kind order[] = {INF_DEVICE_CPU, INF_DEVICE_HOST};
    for (size_t k = 0; k < INF_ARRAY_LENGTH(order); k++)
        for (uint32_t i = 0; i < placement->race.count; i++)
            if (inf_device_info(placement->race.entries[i].device)->kind == order[k])
                return choose_only(placement, INF_PLACE_RULE, i,
                                   "stability: fp32 on the processor, the same everywhere");
    return placement->rule;
}

// --- choosing a candidate by a race ---

// Returns true if a race can change the choice. The reference device `ref` does not count, because
// it only checks results and is never the fastest.
static bool is_race_useful(const struct inf_race *race, enum inf_place_races races)
{
    uint32_t rivals = 0;
    for (uint32_t i = 0; i < race->count; i++)
        rivals += !race->entries[i].judges &&
                  (races == INF_PLACE_RACES_ALWAYS ||
                   inf_device_info(race->entries[i].device)->kind != INF_DEVICE_HOST);
    return rivals >= 2 && races != INF_PLACE_RACES_NEVER;
}

// Restores the result of an earlier race, together with the nodes that it pinned to fp32. The tune
// database is searched by a key that covers the candidates in their order, so the saved entries
// correspond to the present ones.
static bool restore_race(struct inf_placement *placement, const struct inf_tune *tune,
                         struct inf_model *model)
{
    const struct inf_tune_record *record = inf_tune_find(tune, placement->key);
    if (record == NULL || record->count != placement->race.count)
        return false;
    const struct inf_run_options *options = &record->entries[record->chosen].options;
    if (options->precision > INF_PRECISION_FP32 &&
        inf_model_pin(model, options->precision, record->pins, record->pin_count, NULL) != INF_OK)
        return false;
    for (uint32_t i = 0; i < record->count; i++) {
        struct inf_race_entry *entry = &placement->race.entries[i];
        const struct inf_tune_entry *kept = &record->entries[i];
        entry->verdict = kept->verdict;
        entry->runs = kept->runs;
        entry->first_ns = kept->first_ns;
        entry->median_ns = kept->median_ns;
        entry->memory_bytes = kept->memory_bytes;
        snprintf(entry->why, sizeof entry->why, "%s", kept->why);
    }
    memcpy(placement->race.pins, record->pins, sizeof record->pins);
    placement->race.pin_count = record->pin_count;
    choose_candidate(placement, INF_PLACE_RECALL, record->chosen,
                     "it won a race at an earlier start");
    return true;
}

void inf_placement_adopt(struct inf_placement *placement, const struct inf_race *race)
{
    static const char *const reasons[] = {
        [INF_RACE_LATENCY] = "the fastest of those whose answer was right",
        [INF_RACE_THROUGHPUT] = "most runs a second of those whose answer was right",
        [INF_RACE_MEMORY] = "least memory of those whose answer was right",
    };
    struct inf_idle_gate *idle_gate = placement->race.idle_gate;
    placement->race = *race;
    placement->race.idle_gate = idle_gate;
    placement->race_due = false;
    choose_candidate(placement, INF_PLACE_RACE, race->chosen, reasons[race->aim]);
}

struct inf_place_decision *inf_placement_demote(struct inf_placement *placement,
                                                const struct inf_device *device, const char *why)
{
    struct inf_race *race = &placement->race;
    const struct inf_run_options fp32 = {.precision = INF_PRECISION_FP32};
    struct inf_race_entry *wrong = &race->entries[race->chosen];
    wrong->verdict = INF_RACE_WRONG;
    snprintf(wrong->why, sizeof wrong->why, "%.159s", why);
    for (uint32_t i = 0; i < race->count; i++)
        if (race->entries[i].device == device &&
            inf_run_options_equal(&race->entries[i].options, &fp32))
            race->chosen = i;
    race->entries[race->chosen].verdict = INF_RACE_CHOSEN;
    race->pin_count = 0;
    placement->options = fp32;
    struct inf_place_decision *decision = placement->key != 0 ? calloc(1, sizeof *decision) : NULL;
    if (decision != NULL) {
        decision->key = placement->key;
        decision->race = *race;
        decision->race.idle_gate = NULL;
    }
    return decision;
}

// Uses the result of an earlier race, if one is saved.
static void use_race(struct inf_placement *placement, const struct inf_place_options *options,
                     const struct inf_place_subject *subject) INF_MAY_BLOCK
{
    const struct inf_place_decision *decision = subject->decision;
    placement->key = inf_tune_key(subject->content_hash, subject->shapes,
                                  inf_model_graph(subject->model)->input_count, &placement->race,
                                  options->version);
    if (decision != NULL)
        inf_tune_add(options->tune, decision->key, &decision->race);
    placement->race_due = !restore_race(placement, options->tune, subject->model);
    if (!placement->race_due && decision != NULL && decision->key == placement->key)
        inf_placement_adopt(placement, &decision->race);
    if (placement->race_due)
        snprintf(placement->reason, sizeof placement->reason,
                 "%.100s; to be measured when nothing is served", placement->rule_reason);
}

struct inf_device *inf_placement_choose(struct inf_placement *placement,
                                        const struct inf_place_options *options,
                                        const struct inf_place_subject *subject)
{
    *placement = (struct inf_placement){.policy = subject->policy};
    if (subject->policy == INF_PLACE_THROUGHPUT)
        placement->race.aim = INF_RACE_THROUGHPUT;
    else if (subject->policy == INF_PLACE_MEMORY)
        placement->race.aim = INF_RACE_MEMORY;
    placement->race.tolerance = subject->rules.tolerance;
    learn_speeds(options);
    apply_rule(placement, options, subject);
    if (subject->pinned != NULL)
        return choose_pinned(placement, subject->pinned);
    if (subject->policy == INF_PLACE_STABILITY)
        return prefer_stable(placement);
    if (subject->shapes != NULL && is_race_useful(&placement->race, subject->rules.races))
        use_race(placement, options, subject);
    return placement->race.entries[placement->race.chosen].device;
}
