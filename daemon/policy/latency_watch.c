// SPDX-License-Identifier: Apache-2.0
// Detects that a model became slower on its device, for example because a GPU throttles or another
// process uses the GPU.
//
// Single run times are noisy, so the median of a window of runs is one observation. The smallest
// median so far is the reference. A model is slow if the medians exceed `factor` times the
// reference for at least `after_ns` without a break, so a short disturbance is ignored. Only runs
// with the key of the first run (the same shapes) are observed, because runs with other shapes take
// another time anyway.
#include "daemon/policy/latency_watch.h"

#include <stdlib.h>

static int compare_ns(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

// Compares the median run time of a full window with the best median. Returns true if the model has
// been slow for long enough to be reported.
static bool check_window(struct inf_latency_watch *latency_watch,
                         const struct inf_latency_watch_limits *limits, uint64_t now_ns)
{
    qsort(latency_watch->window_ns, INF_LATENCY_WATCH_WINDOW, sizeof *latency_watch->window_ns,
          compare_ns);
    latency_watch->median_ns = latency_watch->window_ns[INF_LATENCY_WATCH_WINDOW / 2];
    if (latency_watch->best_ns == 0) { // the median of the first window becomes the reference
        latency_watch->best_ns = latency_watch->median_ns;
        return false;
    }
    bool slow = limits->factor > 0 &&
                (double)latency_watch->median_ns > limits->factor * (double)latency_watch->best_ns;
    if (latency_watch->median_ns < latency_watch->best_ns)
        latency_watch->best_ns = latency_watch->median_ns;
    if (!slow) {
        latency_watch->slow_since_ns = 0;
        return false;
    }
    if (latency_watch->slow_since_ns == 0)
        latency_watch->slow_since_ns = now_ns;
    if (now_ns - latency_watch->slow_since_ns < limits->after_ns)
        return false;
    latency_watch->slow_since_ns = 0;
    return true;
}

bool inf_latency_watch_note(struct inf_latency_watch *latency_watch,
                            const struct inf_latency_watch_limits *limits, uint64_t key,
                            uint64_t run_ns, uint64_t now_ns)
{
    if (latency_watch->count == 0 && latency_watch->best_ns == 0)
        latency_watch->key = key;
    if (key != latency_watch->key)
        return false;
    latency_watch->window_ns[latency_watch->count++] = run_ns;
    if (latency_watch->count < INF_LATENCY_WATCH_WINDOW)
        return false;
    latency_watch->count = 0;
    return check_window(latency_watch, limits, now_ns);
}
