// SPDX-License-Identifier: Apache-2.0
// Detects that a model has become slower on its device. The loop passes in the time of each run.
// All zero is the initial state.
#ifndef INF_DAEMON_POLICY_LATENCY_WATCH_H
#define INF_DAEMON_POLICY_LATENCY_WATCH_H

#include <stdbool.h>
#include <stdint.h>

// Number of runs in a window. The median of their times is compared with earlier windows.
#define INF_LATENCY_WATCH_WINDOW 32u

struct inf_latency_watch {
    // Key of the input shapes of the first run (daemon/policy/run_estimate.h). Only runs with the
    // same key are observed.
    uint64_t key;
    uint32_t count;
    uint64_t window_ns[INF_LATENCY_WATCH_WINDOW];
    uint64_t median_ns;     // median run time of the last window
    uint64_t best_ns;       // smallest median run time of all windows; 0: none yet
    uint64_t slow_since_ns; // end of the first slow window; 0: the model is not slow
};

// The limits above which a model counts as slow.
struct inf_latency_watch_limits {
    double factor;     // allowed ratio of a window's median to the best median; 0: never report
    uint64_t after_ns; // how long the model must be slow before it is reported
};

// Records a run of `run_ns` that ended at `now_ns`. Returns true if the model has been slow for
// long enough to be reported. Then the caller should zero *latency_watch. If it does not, the
// function returns true again after another `after_ns`.
bool inf_latency_watch_note(struct inf_latency_watch *latency_watch,
                            const struct inf_latency_watch_limits *limits, uint64_t key,
                            uint64_t run_ns, uint64_t now_ns);

#endif
