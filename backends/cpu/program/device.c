// SPDX-License-Identifier: Apache-2.0
// How many threads a run of a program may have, and how long it takes to wake them.
#include "backends/cpu/program/device.h"

#include <stdlib.h>
#include <time.h>

#include "backends/base/clock.h"
#include "backends/cpu/core/team.h"
#include "backends/cpu/kernels/pause.h"
#include "proto/core/span.h"

// The number of wake-up measurements, and the pause before each, in which the helpers fall asleep.
#define WAKE_CALLS 7
#define SLEEP_NS   200000

// The longest time of one measurement, in case the helpers get no processor, and of all of them.
// Clients wait for this if the daemon was restarted. On an idle machine, all measurements take
// about 2 ms.
#define WAKE_MAX_NS     (UINT64_C(1) * INF_NS_PER_MS)
#define WAKE_ALL_MAX_NS (UINT64_C(4) * INF_NS_PER_MS)

uint32_t inf_cpu_device_threads(const struct inf_cpu_device *device,
                                const struct inf_segment *segment)
{
    uint32_t threads = device->cores.threads;
    return segment->threads > 0 ? INF_MIN(segment->threads, threads) : threads;
}

struct meeting {
    struct inf_cpu_team *team;
    atomic_size_t present;
    uint64_t end_ns;
};

// Waits until as many threads as there are tiles have called this function.
static void meet_threads(const void *context, size_t tile, size_t worker)
{
    (void)tile;
    (void)worker;
    struct meeting *meeting = *(struct meeting *const *)context;
    atomic_fetch_add(&meeting->present, 1);
    while (atomic_load(&meeting->present) < meeting->team->threads &&
           inf_clock_ns() < meeting->end_ns)
        inf_pause();
}

static void lead_meeting(void *context)
{
    struct meeting *meeting = context;
    const struct inf_cpu_tiles work = {meet_threads, &meeting, meeting->team->threads};
    inf_cpu_team_run_tiles(meeting->team, &work, meeting->team->threads);
}

static int compare_times(const void *a, const void *b)
{
    const uint64_t *x = a;
    const uint64_t *y = b;
    return (*x > *y) - (*x < *y);
}

uint64_t inf_cpu_device_measure_wake_ns(struct inf_cpu_device *device)
{
    const struct timespec sleep = {.tv_nsec = SLEEP_NS};
    struct inf_cpu_team team;
    uint64_t times_ns[WAKE_CALLS];
    if (device->cores.threads <= 1 ||
        inf_cpu_team_init(&team, &device->cores, device->cores.threads, NULL) != INF_OK)
        return 0;
    const uint64_t end_ns = inf_clock_ns() + WAKE_ALL_MAX_NS;
    size_t count = 0;
    while (count < WAKE_CALLS && (count == 0 || inf_clock_ns() < end_ns)) {
        nanosleep(&sleep, NULL);
        uint64_t start_ns = inf_clock_ns();
        struct meeting meeting = {.team = &team, .end_ns = start_ns + WAKE_MAX_NS};
        inf_cpu_team_run_region(&team, lead_meeting, &meeting);
        times_ns[count++] = inf_clock_ns() - start_ns;
    }
    inf_cpu_team_fini(&team);
    qsort(times_ns, count, sizeof(*times_ns), compare_times);
    // If time ran out, other programs disturbed most measurements, so use the shortest.
    return times_ns[count == WAKE_CALLS ? WAKE_CALLS / 2 : 0];
}
