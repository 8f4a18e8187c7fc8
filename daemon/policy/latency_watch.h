// SPDX-License-Identifier: Apache-2.0
// Detects that a model became slower on its device than it was. Fed with the time of each run, by
// the loop only. All zero is the initial state.
#ifndef INF_DAEMON_POLICY_LATENCY_WATCH_H
#define INF_DAEMON_POLICY_LATENCY_WATCH_H

#include <stdbool.h>
#include <stdint.h>

// Runs per window; the median of a window is one observation.
#define INF_LATENCY_WATCH_WINDOW 32u

struct inf_latency_watch {
    uint64_t key; // of the first run; only runs with this key are observed
    uint32_t count;
    uint64_t window_ns[INF_LATENCY_WATCH_WINDOW];
    uint64_t median_ns;     // of the last window
    uint64_t best_ns;       // smallest median so far; 0: none yet
    uint64_t slow_since_ns; // end of the first slow window; 0: the last window was not slow
};

// When a model counts as slow.
struct inf_latency_watch_limits {
    double factor;     // of the median to the best one; 0: never
    uint64_t after_ns; // how long it must be slow
};

// Records a run of `run_ns` that ended at `now_ns`. Returns true if the model has been slow for
// long enough; then the caller should start with a zeroed struct. If it does not, the next report
// comes after another `after_ns`.
bool inf_latency_watch_note(struct inf_latency_watch *latency_watch,
                            const struct inf_latency_watch_limits *limits, uint64_t key,
                            uint64_t run_ns, uint64_t now_ns);

#endif
