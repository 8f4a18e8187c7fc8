// SPDX-License-Identifier: Apache-2.0
#include "daemon/model_place.h"

#include <stdio.h>
#include <string.h>

#include "backends/graph/shape_infer.h"
#include "proto/core/span.h"

static const char *const races_names[] = {[INF_PLACE_RACES_AUTO] = "auto",
                                          [INF_PLACE_RACES_ALWAYS] = "always",
                                          [INF_PLACE_RACES_NEVER] = "never"};

bool inf_place_races_parse(const char *text, enum inf_place_races *races)
{
    for (size_t i = 0; i < INF_ARRAY_LENGTH(races_names); i++) {
        if (strcmp(text, races_names[i]) != 0)
            continue;
        *races = (enum inf_place_races)i;
        return true;
    }
    return false;
}

const char *inf_place_source_name(enum inf_place_source source)
{
    static const char *const names[] = {[INF_PLACE_PINNED] = "pinned",
                                        [INF_PLACE_RULE] = "rule",
                                        [INF_PLACE_RACE] = "race",
                                        [INF_PLACE_MEMORY] = "memory"};
    return (size_t)source < INF_ARRAY_LENGTH(names) ? names[source] : "unknown";
}

static void decide(struct inf_placement *placement, enum inf_place_source source,
                   const char *reason)
{
    placement->source = source;
    snprintf(placement->reason, sizeof placement->reason, "%.159s", reason);
}

void inf_placement_pin(struct inf_placement *placement, struct inf_device *device)
{
    *placement = (struct inf_placement){.race = {.count = 1}};
    placement->race.entries[0].device = device;
    decide(placement, INF_PLACE_PINNED, "it was named");
}

// --- the rule ---

// Multiply-adds at these shapes; 0 where they cannot be told.
static uint64_t count_macs(const struct inf_model *model, const struct inf_shape *shapes)
{
    INF_CLEANUP(inf_graph_destroy) struct inf_graph *graph = NULL;
    struct inf_error ignored = {0};
    if (shapes == NULL || inf_graph_clone(&graph, inf_model_graph(model), &ignored) != INF_OK ||
        inf_graph_bind_shapes(graph, shapes, &ignored) != INF_OK)
        return 0;
    return inf_graph_cost(graph).macs;
}

// Lists who may be chosen, best by rule first, and chooses that one.
static void apply_rule(struct inf_placement *placement, const struct inf_place_options *options,
                       struct inf_model *model, const struct inf_shape *shapes)
{
    struct inf_device *devices[INF_PLACE_DEVICES];
    const struct inf_device_info *infos[INF_PLACE_DEVICES];
    uint32_t count = 0;
    for (uint32_t i = 0; i < options->devices->count && count < INF_PLACE_DEVICES; i++) {
        struct inf_device *device = options->devices->devices[i];
        if (device == options->avoid || inf_device_health(device) != INF_DEVICE_OK)
            continue;
        devices[count] = device;
        infos[count++] = inf_device_info(device);
    }
    struct inf_prior_facts facts = {.macs = count_macs(model, shapes),
                                    .const_bytes = inf_model_memory(model).const_bytes};
    struct inf_prior prior = inf_prior_choose(infos, count, &facts);
    *placement = (struct inf_placement){.race = {.count = prior.count}};
    for (uint32_t i = 0; i < prior.count; i++)
        placement->race.entries[i] = (struct inf_race_entry){.device = devices[prior.order[i]],
                                                             .verdict = INF_RACE_LEFT_OUT};
    placement->race.entries[0].verdict = INF_RACE_CHOSEN;
    decide(placement, INF_PLACE_RULE, prior.reason);
}

// --- the race ---

// Whether a race can change anything. Plain loops only judge: they never win against anything.
static bool is_worth_it(const struct inf_race *race, enum inf_place_races races)
{
    uint32_t rivals = 0;
    for (uint32_t i = 0; i < race->count; i++)
        rivals += races == INF_PLACE_RACES_ALWAYS ||
                  inf_device_info(race->entries[i].device)->kind != INF_DEVICE_HOST;
    return rivals >= 2 && races != INF_PLACE_RACES_NEVER;
}

// Fills in what an earlier race found. The key has the devices in their order, so they are the same.
static bool remember(struct inf_placement *placement, const struct inf_tune *tune, uint64_t key)
{
    const struct inf_tune_record *record = inf_tune_find(tune, key);
    if (record == NULL || record->count != placement->race.count)
        return false;
    for (uint32_t i = 0; i < record->count; i++) {
        struct inf_race_entry *entry = &placement->race.entries[i];
        entry->verdict = record->entries[i].verdict;
        entry->runs = record->entries[i].runs;
        entry->first_ns = record->entries[i].first_ns;
        entry->median_ns = record->entries[i].median_ns;
    }
    placement->race.chosen = record->chosen;
    decide(placement, INF_PLACE_MEMORY, "it won a race at an earlier start");
    return true;
}

static void race(struct inf_placement *placement, const struct inf_place_options *options,
                 struct inf_model *model, const struct inf_shape *shapes,
                 uint64_t key) INF_MAY_BLOCK
{
    struct inf_error err = {0};
    struct inf_race rivals = placement->race;
    if (inf_race_run(&rivals, model, shapes, INF_PLACE_RACE_NS, &err) != INF_OK) {
        snprintf(placement->reason, sizeof placement->reason, "no race: %.140s", err.text);
        return;
    }
    placement->race = rivals;
    decide(placement, INF_PLACE_RACE, "the fastest of those whose answer was right");
    inf_tune_add(options->tune, key, &rivals);
}

struct inf_device *inf_placement_choose(struct inf_placement *placement,
                                        const struct inf_place_options *options,
                                        struct inf_model *model, uint64_t content_hash,
                                        const struct inf_shape *shapes)
{
    apply_rule(placement, options, model, shapes);
    if (shapes != NULL && is_worth_it(&placement->race, options->races)) {
        uint64_t key = inf_tune_key(content_hash, shapes, inf_model_graph(model)->input_count,
                                    &placement->race, options->version);
        if (!remember(placement, options->tune, key))
            race(placement, options, model, shapes, key);
    }
    return placement->race.entries[placement->race.chosen].device;
}
