// SPDX-License-Identifier: Apache-2.0
// Chooses where a model runs: on the device that its settings name, or on the best one according to
// a policy. The best device is first predicted (the prior), and then measured by a race (a timing
// comparison of the candidates), in this process or before an earlier start. Used on the loader
// threads.
#ifndef INF_DAEMON_LOAD_PLACEMENT_H
#define INF_DAEMON_LOAD_PLACEMENT_H

#include <stdatomic.h>

#include "backends/exec/model/model.h"
#include "backends/place/allow.h"
#include "backends/place/speed.h"
#include "backends/place/tune.h"
#include "backends/registry.h"

// Duration of a race in nanoseconds, not counting the first run of each candidate.
#define INF_PLACE_RACE_NS 200000000u

// When devices race for a model, that is, are timed against each other.
enum inf_place_races {
    // Devices race if two or more of them could win; `ref` only checks the results of the others.
    INF_PLACE_RACES_AUTO,
    INF_PLACE_RACES_ALWAYS, // devices always race, and `ref` can win as well
    INF_PLACE_RACES_NEVER,
};

// Parses "auto", "always" or "never" into *races. Returns false for any other text.
bool inf_place_races_parse(const char *text, enum inf_place_races *races);

// What the device that is chosen for a model should be best at.
enum inf_place_policy {
    INF_PLACE_LATENCY,    // the shortest time of one request
    INF_PLACE_THROUGHPUT, // the most requests per second
    INF_PLACE_STABILITY,  // the CPU, whose arithmetic is the same everywhere
    INF_PLACE_MEMORY,     // the least memory for weights and intermediate tensors
    INF_PLACE_POLICIES,
};

// Parses the name of a policy. Returns false for any other text.
bool inf_place_policy_parse(const char *text, enum inf_place_policy *policy);

// Returns the name of a policy; static.
const char *inf_place_policy_name(enum inf_place_policy policy);

// How the device of a model was chosen.
enum inf_place_source {
    INF_PLACE_PINNED, // the settings or an admin name the device
    INF_PLACE_RULE,
    INF_PLACE_RACE,
    INF_PLACE_RECALL, // by a race that was run before an earlier start and saved
};

// Returns the name of the way in which a device was chosen, such as "race"; static.
const char *inf_place_source_name(enum inf_place_source source);

// The chosen device, and the facts that the choice is based on.
struct inf_placement {
    enum inf_place_source source;
    enum inf_place_policy policy;
    char reason[160];
    struct inf_race race; // the candidates, and the chosen one; the device list owns the devices
    uint64_t prior_ns[INF_RACE_ENTRIES]; // predicted run time of each candidate; 0: not known
    struct inf_run_options options;      // run options of the chosen candidate
    bool race_due;                       // the choice was not measured; a race is to be run
    uint64_t key;                        // key under which the tune database saves the race
    // The device that the prior (the speed prediction) prefers; owned by the device list.
    struct inf_device *rule;
    const char *rule_reason; // why the prior prefers `rule`; static text
    // Device on which a run of this model failed, so it is avoided; NULL: none.
    const struct inf_device *failed;
    char failed_why[160];
};

// The measured speeds of all devices, in the order of the device list. The loader thread measures
// them. Any thread may read them once `known` is set.
struct inf_place_speeds {
    atomic_bool known;
    struct inf_speed speeds[INF_PLACE_DEVICES];
};

// Placement rules (policy, tolerance, power preference) that an admin can change at run time.
struct inf_place_rules {
    enum inf_place_races races;
    double tolerance;     // allowed difference of a candidate's outputs; 0: INF_RACE_TOLERANCE
    enum inf_power power; // power preference for models whose settings name none
};

struct inf_place_options {
    const struct inf_device_list *devices;
    struct inf_tune *tune;           // results of earlier races; used by the loader thread only
    struct inf_place_speeds *speeds; // filled when the first model is placed
    // Directory in which the speeds are saved; NULL: they are not saved.
    const char *cache_directory;
    const char *version; // version and build of inferd
    const struct inf_log *log;
};

// The result of a race, as the tune database saves it.
struct inf_place_decision {
    uint64_t key;
    struct inf_race race;
};

// The model to be placed, and the settings that affect its placement.
struct inf_place_subject {
    struct inf_model *model;
    uint64_t content_hash;          // hash of the model file
    const struct inf_shape *shapes; // input shapes to race with; NULL: do not race
    enum inf_place_policy policy;
    struct inf_device *pinned;      // the device that the settings name; NULL: choose one
    const struct inf_device *avoid; // a device that must not be chosen; NULL: none
    struct inf_allow_rules allow;   // rules for which devices may be chosen
    struct inf_place_rules rules;
    enum inf_precision precision; // precision that the settings ask for
    // Result of an earlier race, which is used instead of choosing again; NULL: none.
    const struct inf_place_decision *decision;
};

// Chooses a working device of options->devices (borrowed) and run options. Never fails. If there is
// no measurement, the prior decides, and placement->race_due says that a race should follow.
struct inf_device *inf_placement_choose(struct inf_placement *placement,
                                        const struct inf_place_options *options,
                                        const struct inf_place_subject *subject) INF_MAY_BLOCK;

// Records the result of a race in the placement of a model. The caller has already placed the model
// on the winning candidate.
void inf_placement_adopt(struct inf_placement *placement, const struct inf_race *race);

// Records that the placed model computes wrong answers, with the reason `why`. From then on the
// model runs in fp32 on `device`. Returns the decision to be saved, which the caller frees. Returns
// NULL if the placement has no key to save it under, or there is no memory.
struct inf_place_decision *inf_placement_demote(struct inf_placement *placement,
                                                const struct inf_device *device, const char *why);

#endif
