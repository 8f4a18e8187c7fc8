// SPDX-License-Identifier: Apache-2.0
// Takes the place of the functions of the cpu backend that start parallel work. While a run is
// recorded, the calling thread computes all tiles and reads the clock after each one.
#include "tests/tools/plan/plan_record.h"

#include "backends/base/clock.h"
#include "backends/cpu/core/team.h"
#include "proto/core/span.h"

#define EVENTS_MAX (1u << 20)

// The run in progress. `last_ns` is the time of the last event, whose kind is `open`.
static struct {
    bool recording, full;
    struct plan_event events[EVENTS_MAX];
    uint32_t count;
    enum plan_event_kind open;
    uint64_t last_ns;
    double clock_ns; // time that one reading of the clock takes
} record;

#define CLOCK_CALLS 1000

static void add_event(struct plan_event event)
{
    if (record.count < EVENTS_MAX)
        record.events[record.count++] = event;
    else
        record.full = true;
}

// Ends the serial work or the operator in progress. What follows is of the kind `next`.
static void end_work(enum plan_event_kind next)
{
    uint64_t now_ns = inf_clock_ns();
    double ns = (double)(now_ns - record.last_ns) - record.clock_ns;
    add_event((struct plan_event){.kind = record.open, .ns = INF_MAX(ns, 0.0)});
    record.open = next;
    record.last_ns = now_ns;
}

void __real_inf_cpu_team_run_tiles(struct inf_cpu_team *team, const struct inf_cpu_tiles *work,
                                   size_t workers);
void __wrap_inf_cpu_team_run_tiles(struct inf_cpu_team *team, const struct inf_cpu_tiles *work,
                                   size_t workers);
void __real_inf_cpu_team_run_region(struct inf_cpu_team *team, void (*lead)(void *context),
                                    void *context);
void __wrap_inf_cpu_team_run_region(struct inf_cpu_team *team, void (*lead)(void *context),
                                    void *context);
pthreadpool_t __real_inf_cpu_core_set_acquire_pool(struct inf_cpu_core_set *set);
pthreadpool_t __wrap_inf_cpu_core_set_acquire_pool(struct inf_cpu_core_set *set);

void __wrap_inf_cpu_team_run_tiles(struct inf_cpu_team *team, const struct inf_cpu_tiles *work,
                                   size_t workers)
{
    if (!record.recording) {
        __real_inf_cpu_team_run_tiles(team, work, workers);
        return;
    }
    end_work(PLAN_SERIAL);
    uint32_t most = (uint32_t)INF_MIN(workers, (size_t)INF_CPU_THREADS_MAX);
    add_event(
        (struct plan_event){.kind = PLAN_JOB, .count = (uint32_t)work->tiles, .workers = most});
    uint64_t start_ns = inf_clock_ns();
    for (size_t tile = 0; tile < work->tiles; tile++) {
        work->tile(work->context, tile, 0);
        uint64_t end_ns = inf_clock_ns();
        double ns = (double)(end_ns - start_ns) - record.clock_ns;
        add_event((struct plan_event){.kind = PLAN_TILE, .ns = INF_MAX(ns, 0.0)});
        start_ns = end_ns;
    }
    record.last_ns = inf_clock_ns();
}

// While a run is recorded, its regions have no helpers, because no tiles reach the team.
void __wrap_inf_cpu_team_run_region(struct inf_cpu_team *team, void (*lead)(void *context),
                                    void *context)
{
    if (record.recording) {
        end_work(PLAN_SERIAL);
        add_event((struct plan_event){.kind = PLAN_REGION});
    }
    __real_inf_cpu_team_run_region(team, lead, context);
    if (record.recording) {
        end_work(PLAN_SERIAL);
        // Outside of regions there are no helpers.
        add_event((struct plan_event){.kind = PLAN_REGION});
    }
}

pthreadpool_t __wrap_inf_cpu_core_set_acquire_pool(struct inf_cpu_core_set *set)
{
    if (!record.recording)
        return __real_inf_cpu_core_set_acquire_pool(set);
    end_work(PLAN_SHARED);
    return NULL;
}

void plan_record_begin(void)
{
    uint64_t start_ns = inf_clock_ns();
    for (int i = 1; i < CLOCK_CALLS; i++)
        (void)inf_clock_ns();
    record.clock_ns = (double)(inf_clock_ns() - start_ns) / CLOCK_CALLS;
    record.count = 0;
    record.open = PLAN_SERIAL;
    record.full = false;
    record.recording = true;
    record.last_ns = inf_clock_ns();
}

struct plan_record plan_record_end(void)
{
    end_work(PLAN_SERIAL);
    record.recording = false;
    return (struct plan_record){record.events, record.count, record.full};
}
