// SPDX-License-Identifier: Apache-2.0
// The limit leaves a part of the allowed memory to what the budget does not count: what a load
// needs besides the model, fragmentation, stacks, and pages of files. A control group with
// memory.high slows its processes down when they reach it, so the daemon stays below.
#include "daemon/memory_watch.h"

#include <event2/event.h>
#include <stdio.h>

#include "backends/base/clock.h"
#include "daemon/system/memory_limit.h"

// The share of the limit of a control group that the daemon uses by itself, in percent.
#define GROUP_PERCENT 90
// The share of the memory that the machine has left at start, in percent.
#define MACHINE_PERCENT 80

// If no trigger can be set: how often the pressure is read, and how long tasks must have waited for
// memory in that time. These are the numbers of the trigger.
#define READ_INTERVAL_S 2
#define STALL_MIN_NS    UINT64_C(150000000)

static uint64_t take_percent(uint64_t bytes, uint64_t percent)
{
    return bytes / 100 * percent + bytes % 100 * percent / 100;
}

void inf_memory_watch_init(struct inf_memory_watch *watch, uint64_t memory_max, const char *root,
                           const struct inf_log *log)
{
    struct inf_memory_limit limit = {.bytes = memory_max, .source = "memory_max"};
    struct inf_memory_budget *budget = &watch->budget;
    *watch = (struct inf_memory_watch){.log = log};
    inf_memory_trigger_init(&watch->trigger);
    inf_pressure_init(&watch->pressure);
    budget->used[INF_MEMORY_PROCESS] = inf_resident_bytes_read();
    if (memory_max == 0) {
        inf_memory_limit_read(&limit, root);
        // Resident memory of the process is not part of what the machine has left.
        if (limit.is_machine)
            limit.bytes =
                take_percent(limit.bytes, MACHINE_PERCENT) + budget->used[INF_MEMORY_PROCESS];
        else
            limit.bytes = take_percent(limit.bytes, GROUP_PERCENT);
    }
    budget->limit_bytes = limit.bytes;
    snprintf(budget->source, sizeof budget->source, "%s", limit.source);
    inf_log(log, INF_LOG_INFO, "memory limit bytes=%llu process_bytes=%llu source=\"%s\"",
            (unsigned long long)budget->limit_bytes,
            (unsigned long long)budget->used[INF_MEMORY_PROCESS], budget->source);
}

// Unloads idle models because memory is short.
static void relieve_memory(struct inf_memory_watch *watch) INF_ON_LOOP
{
    uint64_t bytes = inf_model_store_relieve(watch->store, inf_clock_ns());
    inf_log(watch->log, INF_LOG_WARNING, "memory is short, idle models unloaded bytes=%llu",
            (unsigned long long)bytes);
    watch->relieved(watch->context);
}

static void on_trigger(evutil_socket_t fd, short events, void *context)
{
    (void)fd;
    (void)events;
    inf_role_enter_loop();
    struct inf_memory_watch *watch = context;
    if (!inf_memory_trigger_clear(&watch->trigger)) {
        inf_log(watch->log, INF_LOG_WARNING, "pressure on memory is not reported any longer");
        (void)event_del(watch->event);
        return;
    }
    relieve_memory(watch);
}

// Returns how long tasks of the group have waited for memory since the function was last called; 0
// if the kernel does not say.
static uint64_t read_stall_ns(struct inf_memory_watch *watch)
{
    struct inf_pressure_times times;
    if (!inf_pressure_read(&watch->pressure, INF_PRESSURE_MEMORY, &times))
        return 0;
    uint64_t before_ns = watch->stalled_ns;
    watch->stalled_ns = times.some_ns;
    return times.some_ns > before_ns ? times.some_ns - before_ns : 0;
}

static void on_timer(evutil_socket_t fd, short events, void *context)
{
    (void)fd;
    (void)events;
    inf_role_enter_loop();
    struct inf_memory_watch *watch = context;
    if (read_stall_ns(watch) >= STALL_MIN_NS)
        relieve_memory(watch);
}

// Makes the event that reports pressure: by a trigger, else by a timer. The event remains NULL if
// the kernel reports no pressure of the process's control group.
static enum inf_code open_event(struct inf_memory_watch *watch, struct event_base *base,
                                struct inf_error *err)
{
    const struct timeval interval = {.tv_sec = READ_INTERVAL_S};
    struct inf_error why = {0};
    if (inf_memory_trigger_open(&watch->trigger, "", &why) == INF_OK) {
        watch->event = event_new(base, inf_memory_trigger_fd(&watch->trigger), EV_READ | EV_PERSIST,
                                 on_trigger, watch);
        if (watch->event != NULL && event_add(watch->event, NULL) == 0)
            return INF_OK;
        return inf_fail(err, INF_EXHAUSTED, "no event for the pressure on memory");
    }
    inf_pressure_open(&watch->pressure, "");
    if (!watch->pressure.is_of_group[INF_PRESSURE_MEMORY]) {
        inf_log(watch->log, INF_LOG_INFO, "idle models are not unloaded when memory is short: %s",
                why.text);
        return INF_OK;
    }
    (void)read_stall_ns(watch);
    watch->event = event_new(base, -1, EV_PERSIST, on_timer, watch);
    if (watch->event == NULL || event_add(watch->event, &interval) != 0)
        return inf_fail(err, INF_EXHAUSTED, "no timer for the pressure on memory");
    inf_log(watch->log, INF_LOG_INFO, "pressure on memory is read every %d s: %s", READ_INTERVAL_S,
            why.text);
    return INF_OK;
}

enum inf_code inf_memory_watch_start(struct inf_memory_watch *watch, struct event_base *base,
                                     struct inf_model_store *store, void (*relieved)(void *context),
                                     void *context, struct inf_error *err)
{
    watch->store = store;
    watch->relieved = relieved;
    watch->context = context;
    return open_event(watch, base, err);
}

void inf_memory_watch_fini(struct inf_memory_watch *watch)
{
    if (watch->event != NULL)
        event_free(watch->event);
    watch->event = NULL;
    if (watch->log == NULL)
        return;
    inf_memory_trigger_close(&watch->trigger);
    inf_pressure_close(&watch->pressure);
}
