// SPDX-License-Identifier: Apache-2.0
// Where a model runs: on the device that somebody named, or on the best by a policy - a rule of
// thumb first, then what a race measured, or measured at an earlier start. On the loader thread.
#ifndef INF_DAEMON_LOAD_PLACEMENT_H
#define INF_DAEMON_LOAD_PLACEMENT_H

#include <stdatomic.h>

#include "backends/exec/model/model.h"
#include "backends/place/allow.h"
#include "backends/place/speed.h"
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

// What the best device is best in.
enum inf_place_policy {
    INF_PLACE_LATENCY,    // one request is answered soonest
    INF_PLACE_THROUGHPUT, // most requests are answered in a second
    INF_PLACE_STABILITY,  // the processor, whose arithmetic is the same everywhere
    INF_PLACE_MEMORY,     // least memory for weights and intermediates
    INF_PLACE_POLICIES,
};

// Parses "latency" and so on; false for anything else.
bool inf_place_policy_parse(const char *text, enum inf_place_policy *policy);

// The name of a policy; static.
const char *inf_place_policy_name(enum inf_place_policy policy);

// What a device was chosen by.
enum inf_place_source {
    INF_PLACE_PINNED, // somebody named it
    INF_PLACE_RULE,
    INF_PLACE_RACE,
    INF_PLACE_RECALL, // a race at an earlier start
};

// The name of a source ("race"); static.
const char *inf_place_source_name(enum inf_place_source source);

// A choice, and what it was made from.
struct inf_placement {
    enum inf_place_source source;
    enum inf_place_policy policy;
    char reason[160];
    struct inf_race race; // who could have been chosen, and chosen; the devices are the list's
    uint64_t prior_ns[INF_RACE_ENTRIES]; // of each: what its device's speed promises; 0: not known
    struct inf_run_options options;      // that was chosen
    bool race_due;                       // what is chosen was not measured, and is to be
    uint64_t key;                        // of inf_tune_key(): what the race decides
    struct inf_device *rule;             // whom the rule of thumb would have; the list's
    const char *rule_reason;             // static
    const struct inf_device
        *failed; // what was left because the model does not run there; NULL: nothing
    char failed_why[160];
};

// How fast the devices of a list are, in its order. The loader thread measures, anybody reads once
// `known` is set.
struct inf_place_speeds {
    atomic_bool known;
    struct inf_speed speeds[INF_PLACE_DEVICES];
};

// What can be changed while the daemon runs.
struct inf_place_rules {
    enum inf_place_races races;
    double tolerance;     // of a racing device's answer; 0: INF_RACE_TOLERANCE
    enum inf_power power; // of models that say nothing
};

struct inf_place_options {
    const struct inf_device_list *devices;
    struct inf_tune *tune;           // what earlier races found; this thread's
    struct inf_place_speeds *speeds; // measured when the first model is placed
    const char *cache_directory;     // where they are kept; NULL: nowhere
    const char *version;             // and build of inferd
    const struct inf_log *log;
};

// What a race found out that is over.
struct inf_place_decision {
    uint64_t key;
    struct inf_race race;
};

// What there is to choose for.
struct inf_place_subject {
    struct inf_model *model;
    uint64_t content_hash;          // of its file
    const struct inf_shape *shapes; // to race with; NULL: the rule stands
    enum inf_place_policy policy;
    struct inf_device *pinned;      // NULL: the best is to be found
    const struct inf_device *avoid; // not to be found; NULL: none
    struct inf_allow_rules allow;   // what may be found
    struct inf_place_rules rules;
    enum inf_precision precision;              // that is wanted
    const struct inf_place_decision *decision; // to be kept, and to go by; NULL: none
};

// Chooses a device of the list that works, no reference, and run options. Never fails: what was not
// measured goes by the rule, and placement->race_due says that a race is worth it.
struct inf_device *inf_placement_choose(struct inf_placement *placement,
                                        const struct inf_place_options *options,
                                        const struct inf_place_subject *subject) INF_MAY_BLOCK;

// Takes a race's outcome over into what is placed as it has chosen.
void inf_placement_adopt(struct inf_placement *placement, const struct inf_race *race);

// What is placed has turned out wrong for the reason `why`: it is in fp32 on `device`, where it
// runs, from now on. The decision to keep, the caller's to free; NULL: there is nothing to keep it
// under, or no memory.
struct inf_place_decision *inf_placement_demote(struct inf_placement *placement,
                                                const struct inf_device *device, const char *why);

#endif
