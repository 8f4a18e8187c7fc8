// SPDX-License-Identifier: Apache-2.0
// Where a model runs that nobody placed: a rule of thumb first, then what a race measured, or measured
// at an earlier start. On the loader thread.
#ifndef INF_DAEMON_MODEL_PLACE_H
#define INF_DAEMON_MODEL_PLACE_H

#include "backends/exec/model.h"
#include "backends/place/tune.h"
#include "backends/registry.h"

// How long devices race beyond the first run of each.
#define INF_PLACE_RACE_NS 200000000u

// Whether devices race at all.
enum inf_place_races {
    INF_PLACE_RACES_AUTO,   // where there are two or more that are worth it: ref only judges
    INF_PLACE_RACES_ALWAYS, // ref as well
    INF_PLACE_RACES_NEVER,
};

// Parses "auto", "always" or "never"; false for anything else.
bool inf_place_races_parse(const char *text, enum inf_place_races *races);

// What a device was chosen by.
enum inf_place_source {
    INF_PLACE_PINNED, // somebody named it
    INF_PLACE_RULE,
    INF_PLACE_RACE,
    INF_PLACE_MEMORY, // of a race at an earlier start
};

// The name of a source ("race"); static.
const char *inf_place_source_name(enum inf_place_source source);

// A choice, and what it was made from.
struct inf_placement {
    enum inf_place_source source;
    char reason[160];
    struct inf_race race; // who could have been chosen, and chosen; the devices are the list's
};

struct inf_place_options {
    const struct inf_device_list *devices;
    const struct inf_device *avoid; // not to be chosen; NULL: none
    struct inf_tune *tune;          // what earlier races found; this thread's
    enum inf_place_races races;
    const char *version; // of inferd
};

// Says that `device` was named.
void inf_placement_pin(struct inf_placement *placement, struct inf_device *device);

// Chooses a device of the list that works for `model`, whose file has the hash `content_hash`; no reference.
// `shapes` are those to race with; NULL: the model's rule stands. Never fails: without a race the rule
// stands, and placement->reason says why.
struct inf_device *inf_placement_choose(struct inf_placement *placement,
                                        const struct inf_place_options *options,
                                        struct inf_model *model, uint64_t content_hash,
                                        const struct inf_shape *shapes) INF_MAY_BLOCK;

#endif
