// SPDX-License-Identifier: Apache-2.0
#include "daemon/policy/latency_watch.h"

#include <stdlib.h>

static int compare_ns(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

// Judges a window that is full.
static bool judge(struct inf_drift *drift, const struct inf_drift_limits *limits, uint64_t now_ns)
{
    qsort(drift->window_ns, INF_DRIFT_WINDOW, sizeof *drift->window_ns, compare_ns);
    drift->median_ns = drift->window_ns[INF_DRIFT_WINDOW / 2];
    if (drift->best_ns == 0) { // nothing to compare with yet
        drift->best_ns = drift->median_ns;
        return false;
    }
    bool slow =
        limits->factor > 0 && (double)drift->median_ns > limits->factor * (double)drift->best_ns;
    if (drift->median_ns < drift->best_ns)
        drift->best_ns = drift->median_ns;
    if (!slow) {
        drift->slow_since_ns = 0;
        return false;
    }
    if (drift->slow_since_ns == 0)
        drift->slow_since_ns = now_ns;
    if (now_ns - drift->slow_since_ns < limits->after_ns)
        return false;
    drift->slow_since_ns = 0;
    return true;
}

bool inf_drift_note(struct inf_drift *drift, const struct inf_drift_limits *limits, uint64_t key,
                    uint64_t run_ns, uint64_t now_ns)
{
    if (drift->count == 0 && drift->best_ns == 0)
        drift->key = key;
    if (key != drift->key)
        return false;
    drift->window_ns[drift->count++] = run_ns;
    if (drift->count < INF_DRIFT_WINDOW)
        return false;
    drift->count = 0;
    return judge(drift, limits, now_ns);
}
