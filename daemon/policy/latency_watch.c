// SPDX-License-Identifier: Apache-2.0
#include "daemon/policy/latency_watch.h"

#include <stdlib.h>

static int compare_ns(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

// Judges a window that is full.
static bool judge(struct inf_latency_watch *latency_watch,
                  const struct inf_latency_watch_limits *limits, uint64_t now_ns)
{
    qsort(latency_watch->window_ns, INF_LATENCY_WATCH_WINDOW, sizeof *latency_watch->window_ns,
          compare_ns);
    latency_watch->median_ns = latency_watch->window_ns[INF_LATENCY_WATCH_WINDOW / 2];
    if (latency_watch->best_ns == 0) { // nothing to compare with yet
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
    return judge(latency_watch, limits, now_ns);
}
