// SPDX-License-Identifier: Apache-2.0
// Runs executables while no request is served. A request that arrives cancels the run, which is
// then repeated. The processor time of the process shows whether the threads of a run had their
// cores, because nothing else in the process computes while no request is served.
#include "backends/place/quiet_run.h"

#include <time.h>

#include "backends/base/cancel.h"
#include "backends/base/clock.h"

// After this many cancelled attempts, the run is taken to be too long for the pauses between
// requests, and the series stops waiting for idle time.
#define DISTURBED_MAX 8u
// A run counts as interrupted by other programs if its threads used less processor time than this
// share of the time for which they were assigned to the run.
#define CPU_SHARE_MIN 0.9

static enum inf_code give_up(struct inf_error *err)
{
    return inf_fail(err, INF_CANCELLED, "the daemon ends, or the model was unloaded");
}

enum inf_code inf_quiet_runs_wait(struct inf_quiet_runs *runs, struct inf_error *err)
{
    if (inf_is_cancelled(runs->stop))
        return give_up(err);
    if (runs->idle_gate == NULL || runs->restless)
        return INF_OK;
    enum inf_idle_gate_result answer = inf_idle_gate_wait_idle(runs->idle_gate);
    runs->restless = answer == INF_IDLE_GATE_TIMEOUT;
    return answer != INF_IDLE_GATE_SHUT_DOWN && !inf_is_cancelled(runs->stop) ? INF_OK
                                                                              : give_up(err);
}

enum inf_code inf_quiet_runs_pause(const struct inf_quiet_runs *runs, uint64_t worked_ns,
                                   struct inf_error *err)
{
    if (runs->restless && !inf_idle_gate_back_off(runs->idle_gate, worked_ns))
        return give_up(err);
    return INF_OK;
}

// Returns the processor time of all threads of this process.
static uint64_t read_process_cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * INF_NS_PER_S + (uint64_t)now.tv_nsec;
}

// Runs the executable once. If `cancelled` becomes true, the run ends early.
static void time_run(struct inf_executable *executable, const struct inf_execution *execution,
                     const atomic_bool *cancelled, struct inf_quiet_result *result) INF_MAY_BLOCK
{
    struct inf_execution timed = *execution;
    struct inf_core_use core_use = {0};
    timed.cancelled = cancelled;
    timed.core_use = &core_use;
    uint64_t begin_cpu_ns = read_process_cpu_ns();
    uint64_t begin_ns = inf_clock_ns();
    result->code = inf_executable_run(executable, &timed, &result->why);
    result->took_ns = INF_MAX(inf_clock_ns() - begin_ns, 1u);
    double cpu_ns = (double)(read_process_cpu_ns() - begin_cpu_ns);
    double core_ns = (double)(result->took_ns + core_use.helper_ns);
    result->interrupted = core_use.threads > 0 && cpu_ns < CPU_SHARE_MIN * core_ns;
}

enum inf_code inf_quiet_runs_execute(struct inf_quiet_runs *runs, struct inf_executable *executable,
                                     const struct inf_execution *execution,
                                     struct inf_quiet_result *result, struct inf_error *err)
{
    for (uint32_t tries = 0;; tries++) {
        runs->restless = runs->restless || (runs->idle_gate != NULL && tries >= DISTURBED_MAX);
        INF_TRY(inf_quiet_runs_wait(runs, err));
        *result = (struct inf_quiet_result){.took_ns = 0};
        bool watch = runs->idle_gate != NULL && !runs->restless;
        const atomic_bool *arrived = watch ? &runs->idle_gate->interrupted : NULL;
        time_run(executable, execution, arrived, result);
        INF_TRY(inf_quiet_runs_pause(runs, result->took_ns, err));
        bool failed = result->code != INF_OK && result->code != INF_CANCELLED;
        if (failed || (result->code == INF_OK && !inf_is_cancelled(arrived)))
            return INF_OK;
    }
}
