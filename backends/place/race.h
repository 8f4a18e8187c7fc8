// SPDX-License-Identifier: Apache-2.0
// Devices race on a model's own shapes: each runs it a few times, those that are far behind drop
// out, those whose answer is wrong are not admitted, and the fastest median wins.
#ifndef INF_BACKENDS_PLACE_RACE_H
#define INF_BACKENDS_PLACE_RACE_H

#include "backends/base/idle_gate.h"
#include "backends/exec/model/model.h"
#include "backends/place/prior.h"

// Candidates of one race: a device may be several, in its precisions and numbers of threads.
#define INF_RACE_ENTRIES 32u

// Nodes of a decision that stay fp32.
#define INF_RACE_PINS 64u

// Runs of one candidate that are timed.
#define INF_RACE_RUNS_MIN 5u
#define INF_RACE_RUNS_MAX 50u

// How far an answer may be from the judge's: apart <= tolerance * max(1, |the judge's|).
#define INF_RACE_TOLERANCE 1e-3

// Medians that differ by less than this part of the better one count as equal: the order before the
// race decides.
#define INF_RACE_TIE 0.05

// A candidate within this factor of the best is not dropped early.
#define INF_RACE_KEEP 1.1

// What the winner is best in.
enum inf_race_goal {
    INF_RACE_LATENCY,    // the least median
    INF_RACE_THROUGHPUT, // the least median for each of the runs that may go on at once
    INF_RACE_MEMORY,     // the least memory for weights and intermediates
};

enum inf_race_verdict {
    INF_RACE_CHOSEN,
    INF_RACE_SLOWER,
    INF_RACE_WRONG,    // its answer is too far from the judge's
    INF_RACE_REFUSED,  // it cannot compile or run the model
    INF_RACE_LEFT_OUT, // too slow to be worth a run
};

// The name of a verdict ("chosen"); static.
const char *inf_race_verdict_name(enum inf_race_verdict verdict);

// One candidate's part. The caller fills in what is above the verdict.
struct inf_race_entry {
    struct inf_device *device;
    struct inf_run_options options;
    double tolerance; // of its answer; 0: the race's
    bool judges;      // it only runs once, for the others to be compared with
    bool barred;      // it does not race at all: `why` says what for
    enum inf_race_verdict verdict;
    uint32_t runs;                // timed ones
    uint64_t first_ns, median_ns; // 0: it never ran, or was not timed. The first run compiles
    uint64_t memory_bytes;        // of its executable, without the model's own constants; 0: none
    char why[160];                // what speaks against it; "" where nothing does
};

struct inf_race {
    struct inf_race_entry entries[INF_RACE_ENTRIES]; // in the order of the prior
    uint32_t count;
    uint32_t chosen; // index of the winner
    enum inf_race_goal aim;
    double tolerance; // 0: INF_RACE_TOLERANCE
    uint64_t
        pins[INF_RACE_PINS]; // inf_node_hash() of what stays fp32 in the chosen one's options: not
    uint32_t pin_count;      // looked at here, but kept with the decision
    struct inf_idle_gate
        *idle_gate; // runs wait until nothing is served, and are stopped when something is;
                    // NULL: they do not
    uint64_t took_ns;
};

// Races the candidates of race->entries for at most about `budget_ns` of runs beyond each
// candidate's first: after 2, 4, 8 ... runs each the slower half goes, but for those that are
// within INF_RACE_KEEP of the best. The model must not be running anywhere else: slot 0 of its
// executables is used. The judge is the last candidate in fp32 that ran, which is the plainest.
// Only the winner's executable is kept.
//
// INF_CANCELLED    the calm has ended.
// INF_INVALID      sizes of outputs depend on values: nothing to compare. race->chosen is 0 then.
// INF_UNAVAILABLE  no device can run the model; the text says why the last could not.
// INF_EXHAUSTED    memory.
enum inf_code inf_race_run(struct inf_race *race, struct inf_model *model,
                           const struct inf_shape *shapes, uint64_t budget_ns,
                           struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
