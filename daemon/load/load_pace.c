// SPDX-License-Identifier: Apache-2.0
// The thread that changes the nice value of the loader thread.
#include "daemon/load/load_pace.h"

#include "backends/base/clock.h"
#include "proto/core/span.h"

static bool is_serving(const struct inf_idle_gate *idle_gate, uint64_t now_ns)
{
    uint64_t served_ns = atomic_load(&idle_gate->served_ns);
    return atomic_load(&idle_gate->busy) > 0 ||
           (served_ns != 0 && now_ns < served_ns + INF_LOAD_QUIET_NS);
}

static void choose_nice(struct inf_load_pace *pace, uint64_t now_ns)
    INF_ATTR(requires_capability(pace->mutex))
{
    int nice = inf_load_nice_choose(&pace->load, is_serving(pace->idle_gate, now_ns), now_ns,
                                    inf_thread_cpu_ns(&pace->paced));
    nice = INF_MAX(nice, pace->paced.nice);
    if (nice != pace->nice && inf_thread_set_nice(&pace->paced, nice))
        pace->nice = nice;
}

static void run_pace(void *context)
{
    struct inf_load_pace *pace = context;
    inf_mutex_lock(&pace->mutex);
    while (!pace->stopping) {
        uint64_t now_ns = inf_clock_ns(), next_ns = pace->load.at_ns + INF_LOAD_NICE_PERIOD_NS;
        if (!pace->loading)
            inf_cond_wait(&pace->changed, &pace->mutex);
        else if (now_ns < next_ns)
            (void)inf_cond_wait_until(&pace->changed, &pace->mutex, next_ns);
        else
            choose_nice(pace, now_ns);
    }
    inf_mutex_unlock(&pace->mutex);
}

enum inf_code inf_load_pace_init(struct inf_load_pace *pace, const struct inf_idle_gate *idle_gate,
                                 struct inf_error *err)
{
    *pace = (struct inf_load_pace){.idle_gate = idle_gate};
    if (idle_gate == NULL || !inf_thread_may_raise())
        return INF_OK;
    inf_mutex_init(&pace->mutex);
    inf_cond_init(&pace->changed);
    enum inf_code code = inf_thread_start(&pace->thread, "inferd-pace", run_pace, pace, err);
    if (code != INF_OK) {
        inf_cond_fini(&pace->changed);
        inf_mutex_fini(&pace->mutex);
    }
    return code;
}

void inf_load_pace_fini(struct inf_load_pace *pace)
{
    if (!pace->thread.started)
        return;
    inf_mutex_lock(&pace->mutex);
    pace->stopping = true;
    inf_mutex_unlock(&pace->mutex);
    inf_cond_signal(&pace->changed);
    inf_thread_join(&pace->thread);
    inf_cond_fini(&pace->changed);
    inf_mutex_fini(&pace->mutex);
}

void inf_load_pace_begin(struct inf_load_pace *pace, bool wanted)
{
    if (!pace->thread.started)
        return;
    inf_mutex_lock(&pace->mutex);
    if (!pace->known) {
        pace->paced = inf_thread_self();
        pace->nice = pace->paced.nice;
        pace->known = true;
    }
    pace->load = (struct inf_load_nice){.wanted = wanted};
    pace->loading = true;
    choose_nice(pace, inf_clock_ns());
    inf_mutex_unlock(&pace->mutex);
    inf_cond_signal(&pace->changed);
}

void inf_load_pace_end(struct inf_load_pace *pace)
{
    if (!pace->thread.started)
        return;
    inf_mutex_lock(&pace->mutex);
    pace->loading = false;
    inf_mutex_unlock(&pace->mutex);
}
