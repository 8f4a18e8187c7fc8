// SPDX-License-Identifier: Apache-2.0
// A race is a timing comparison of candidates on a model's own shapes. Each candidate runs the
// model a few times. Candidates that are far behind or have wrong results drop out, and the lowest
// median wins.
#ifndef INF_BACKENDS_PLACE_RACE_H
#define INF_BACKENDS_PLACE_RACE_H

#include "backends/base/idle_gate.h"
#include "backends/exec/model/model.h"
#include "backends/place/prior.h"

// Maximum candidates of one race. A device counts as several candidates if it has several
// precisions or numbers of threads.
#define INF_RACE_ENTRIES 32u

// A race's decision is stored with the hashes of at most this many nodes that must stay in fp32.
#define INF_RACE_PINS 64u

// The smallest and the largest number of timed runs of one candidate in a race.
#define INF_RACE_RUNS_MIN 5u
#define INF_RACE_RUNS_MAX 50u

// Maximum error of a result: its distance from the reference is <= tolerance * max(1, |reference|).
#define INF_RACE_TOLERANCE 1e-3

// Medians count as equal if they differ by less than this fraction of the better one. The order of
// the candidates before the race then decides.
#define INF_RACE_TIE 0.05

// Of two candidates that differ only in the number of threads, the one with more threads must take
// less time by this fraction, because its further cores could run other requests. Their least times
// are compared, and only of runs whose threads were not interrupted: other programs slow several
// threads more than one, and the choice must not depend on what ran beside the race. If there is no
// such run, more threads win, because the cpu device takes helpers back when another run needs
// their cores.
#define INF_RACE_THREADS_GAIN 0.1

// In each round the slower half of the candidates drops out, except candidates within this factor
// of the best one.
#define INF_RACE_KEEP 1.1

// The criterion that decides a race.
enum inf_race_goal {
    INF_RACE_LATENCY,    // the smallest median
    INF_RACE_THROUGHPUT, // the smallest median per concurrent run
    INF_RACE_MEMORY,     // the least memory for weights and intermediate tensors
};

enum inf_race_verdict {
    INF_RACE_CHOSEN,
    INF_RACE_SLOWER,
    INF_RACE_WRONG,    // its result is too far from the reference
    INF_RACE_REFUSED,  // it cannot compile or run the model
    INF_RACE_LEFT_OUT, // it was expected to be so slow that it was not timed
};

// Returns the name of a verdict, such as "chosen". The text is static.
const char *inf_race_verdict_name(enum inf_race_verdict verdict);

// One candidate of a race. The caller fills in the members before `verdict`; the race fills in the
// others.
struct inf_race_entry {
    struct inf_device *device;
    struct inf_run_options options;
    // maximum error of this candidate's result; 0 selects the tolerance of the race
    double tolerance;
    bool judges; // the candidate only runs once, to provide the reference result
    bool barred; // the candidate is excluded from the race; `why` has the reason
    enum inf_race_verdict verdict;
    uint32_t runs; // number of timed runs
    // 0 if the candidate never ran or was not timed; the first run includes compilation
    uint64_t first_ns, median_ns;
    uint64_t least_ns; // of the timed runs that had all cores they were given; 0 if there was none
    // memory of the executable, without the model's own constants; 0 if not compiled
    uint64_t memory_bytes;
    char why[160]; // the reason if it may not be chosen; else ""
};

struct inf_race {
    // the candidates, in the order of preference before the race
    struct inf_race_entry entries[INF_RACE_ENTRIES];
    uint32_t count;
    uint32_t chosen; // index in `entries` of the winner
    enum inf_race_goal aim;
    double tolerance; // default tolerance of the candidates; 0: INF_RACE_TOLERANCE
    // inf_node_hash() of the nodes that stay in fp32 with the winner's options. The race itself
    // does not read this list, which is stored with the decision.
    uint64_t pins[INF_RACE_PINS];
    uint32_t pin_count;
    // With an idle gate, runs wait while requests are served and stop when a request arrives. NULL
    // disables both.
    struct inf_idle_gate *idle_gate;
    uint64_t took_ns;
};

// Races the candidates of race->entries. Each candidate's first run does not count towards the
// budget; all later runs together take at most about `budget_ns`. After 2, 4, 8 ... runs each, the
// slower half drops out, except candidates within INF_RACE_KEEP of the best. The model must not run
// anywhere else meanwhile, because the race uses slot 0 (a slot is one concurrent run) of its
// executables. The last fp32 candidate that ran provides the reference result, because it is the
// simplest device. Only the winner's executable is kept.
//
// INF_CANCELLED    the idle gate closed, because a request arrived.
// INF_INVALID      sizes of outputs depend on values, so results cannot be compared. race->chosen
// is 0 then.
// INF_UNAVAILABLE  no device can run the model; the text says why the last one could not.
// INF_EXHAUSTED    memory.
enum inf_code inf_race_run(struct inf_race *race, struct inf_model *model,
                           const struct inf_shape *shapes, uint64_t budget_ns,
                           struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
