// SPDX-License-Identifier: Apache-2.0
// Chooses where a model runs: on the device that its settings name, or on the best one by a policy.
// The best one is found by rule first (the prior), and then by a race, now or at an earlier start.
// Used on the loader threads.
#ifndef INF_DAEMON_LOAD_PLACEMENT_H
#define INF_DAEMON_LOAD_PLACEMENT_H

#include <stdatomic.h>

#include "backends/exec/model/model.h"
#include "backends/place/allow.h"
#include "backends/place/speed.h"
#include "backends/place/tune.h"
#include "backends/registry.h"

// How long devices race, in nanoseconds, after the first run of each.
#define INF_PLACE_RACE_NS 200000000u

// When devices race.
enum inf_place_races {
    INF_PLACE_RACES_AUTO,   // if two or more devices could win; ref only checks results
    INF_PLACE_RACES_ALWAYS, // ref takes part as well
    INF_PLACE_RACES_NEVER,
};

// Parses "auto", "always" or "never"; false for anything else.
bool inf_place_races_parse(const char *text, enum inf_place_races *races);

// The policy that decides which device is the best.
enum inf_place_policy {
    INF_PLACE_LATENCY,    // the shortest time of one request
    INF_PLACE_THROUGHPUT, // the most requests per second
    INF_PLACE_STABILITY,  // the CPU, whose arithmetic is the same everywhere
    INF_PLACE_MEMORY,     // the least memory for weights and intermediate tensors
    INF_PLACE_POLICIES,
};

// Parses the name of a policy; returns false for anything else.
bool inf_place_policy_parse(const char *text, enum inf_place_policy *policy);

// Returns the name of a policy; static.
const char *inf_place_policy_name(enum inf_place_policy policy);

// How a device was chosen.
enum inf_place_source {
    INF_PLACE_PINNED, // the settings or an admin name it
    INF_PLACE_RULE,
    INF_PLACE_RACE,
    INF_PLACE_RECALL, // by a race at an earlier start
};

// Returns the name of a source, such as "race"; static.
const char *inf_place_source_name(enum inf_place_source source);

// A choice, and the facts that it is based on.
struct inf_placement {
    enum inf_place_source source;
    enum inf_place_policy policy;
    char reason[160];
    struct inf_race
        race; // the candidates, and the chosen one; its devices belong to the device list
    uint64_t prior_ns[INF_RACE_ENTRIES]; // predicted run time of each candidate; 0: not known
    struct inf_run_options options;      // of the chosen candidate
    bool race_due;                       // the choice was not measured; a race is to be run
    uint64_t key;                        // key of the race in the tune database, by inf_tune_key()
    struct inf_device *rule;             // the device that the prior chooses; of the device list
    const char *rule_reason;             // static
    const struct inf_device *failed;     // the device that the model failed on; NULL: none
    char failed_why[160];
};

// The speeds of the devices of a list, in its order. Measured by the loader thread; any thread may
// read them once `known` is set.
struct inf_place_speeds {
    atomic_bool known;
    struct inf_speed speeds[INF_PLACE_DEVICES];
};

// Rules that can be changed while the daemon runs.
struct inf_place_rules {
    enum inf_place_races races;
    double tolerance;     // allowed difference of a candidate's answer; 0: INF_RACE_TOLERANCE
    enum inf_power power; // for models whose settings do not say
};

struct inf_place_options {
    const struct inf_device_list *devices;
    struct inf_tune *tune;           // results of earlier races; used by this thread only
    struct inf_place_speeds *speeds; // filled when the first model is placed
    const char *cache_directory;     // where speeds are saved; NULL: they are not
    const char *version;             // version and build of inferd
    const struct inf_log *log;
};

// The result of a race.
struct inf_place_decision {
    uint64_t key;
    struct inf_race race;
};

// The model to be placed.
struct inf_place_subject {
    struct inf_model *model;
    uint64_t content_hash;          // of the model file
    const struct inf_shape *shapes; // shapes for a race; NULL: no race, the prior decides
    enum inf_place_policy policy;
    struct inf_device *pinned;      // the device that is named; NULL: choose one
    const struct inf_device *avoid; // a device that must not be chosen; NULL: none
    struct inf_allow_rules allow;   // devices that may be chosen
    struct inf_place_rules rules;
    enum inf_precision precision;              // precision that the settings ask for
    const struct inf_place_decision *decision; // result of a race to save and to follow; NULL: none
};

// Chooses a working device of the list (no reference) and run options. Never fails: without a
// measurement the prior decides, and placement->race_due says that a race should follow.
struct inf_device *inf_placement_choose(struct inf_placement *placement,
                                        const struct inf_place_options *options,
                                        const struct inf_place_subject *subject) INF_MAY_BLOCK;

// Records the result of a race in the placement of a model that runs already as the race decided.
void inf_placement_adopt(struct inf_placement *placement, const struct inf_race *race);

// Records that the placed model computes wrongly, for the reason `why`: from then on it runs in
// fp32 on `device`. Returns the decision to save, the caller's to free; NULL: there is no key for
// it, or no memory.
struct inf_place_decision *inf_placement_demote(struct inf_placement *placement,
                                                const struct inf_device *device, const char *why);

#endif
