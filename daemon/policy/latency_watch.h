// SPDX-License-Identifier: Apache-2.0
// Detects that a model has become slower on its device. The loop passes in the time of each run.
// All zero is the initial state.
#ifndef INF_DAEMON_POLICY_LATENCY_WATCH_H
#define INF_DAEMON_POLICY_LATENCY_WATCH_H

#include <stdbool.h>
#include <stdint.h>

// Runs per window; the median of a window is one observation.
#define INF_LATENCY_WATCH_WINDOW 32u

struct inf_latency_watch {
    // Key of the model's shapes in the first run (daemon/policy/run_estimate.h); only runs with the
    // same key are observed.
    uint64_t key;
    uint32_t count;
    uint64_t window_ns[INF_LATENCY_WATCH_WINDOW];
    uint64_t median_ns;     // median of the last window
    uint64_t best_ns;       // smallest median so far; 0: none yet
    uint64_t slow_since_ns; // end of the first slow window; 0: the last window was not slow
};

// The limits above which a model counts as slow.
struct inf_latency_watch_limits {
    double factor;     // allowed ratio of the median to the best median; 0: never report
    uint64_t after_ns; // how long the model must be slow
};

// Records a run of `run_ns` that ended at `now_ns`. Returns true if the model has been slow for
// long enough. Then the caller should zero the struct. If the caller does not, the next report
// comes after another `after_ns`.
bool inf_latency_watch_note(struct inf_latency_watch *latency_watch,
                            const struct inf_latency_watch_limits *limits, uint64_t key,
                            uint64_t run_ns, uint64_t now_ns);

#endif
