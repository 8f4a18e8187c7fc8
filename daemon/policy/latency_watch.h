// SPDX-License-Identifier: Apache-2.0
// Whether a model has become slower on its device than it was: a GPU that throttles, a neighbour that
// came. Fed with the time of each run; the loop's. All zero is a fresh one.
#ifndef INF_DAEMON_POLICY_LATENCY_WATCH_H
#define INF_DAEMON_POLICY_LATENCY_WATCH_H

#include <stdbool.h>
#include <stdint.h>

// Runs whose median counts as one observation.
#define INF_LATENCY_WATCH_WINDOW 32u

struct inf_latency_watch {
    uint64_t key; // of the runs that are watched: those like the first
    uint32_t count;
    uint64_t window_ns[INF_LATENCY_WATCH_WINDOW];
    uint64_t median_ns;     // of the last window
    uint64_t best_ns;       // the least median so far; 0: none yet
    uint64_t slow_since_ns; // when a window was first too slow; 0: the last was not
};

// When a model counts as slower.
struct inf_latency_watch_limits {
    double factor;     // of the best median; 0: never
    uint64_t after_ns; // for so long
};

// Notes a run of `run_ns` that ended at `now_ns`; runs with another `key` than the first are passed over
// (other shapes). True where the model has been too slow for long enough; it is then to be forgotten by
// a new struct, and until then is told again after as long.
bool inf_latency_watch_note(struct inf_latency_watch *latency_watch,
                            const struct inf_latency_watch_limits *limits, uint64_t key,
                            uint64_t run_ns, uint64_t now_ns);

#endif
