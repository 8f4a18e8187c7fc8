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

static void on_pressure(evutil_socket_t fd, short events, void *context)
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
    uint64_t bytes = inf_model_store_relieve(watch->store, inf_clock_ns());
    inf_log(watch->log, INF_LOG_WARNING, "memory is short, idle models unloaded bytes=%llu",
            (unsigned long long)bytes);
    watch->relieved(watch->context);
}

enum inf_code inf_memory_watch_start(struct inf_memory_watch *watch, struct event_base *base,
                                     struct inf_model_store *store, void (*relieved)(void *context),
                                     void *context, struct inf_error *err)
{
    struct inf_error why = {0};
    watch->store = store;
    watch->relieved = relieved;
    watch->context = context;
    if (inf_memory_trigger_open(&watch->trigger, "", &why) != INF_OK) {
        inf_log(watch->log, INF_LOG_INFO, "idle models are not unloaded when memory is short: %s",
                why.text);
        return INF_OK;
    }
    watch->event = event_new(base, inf_memory_trigger_fd(&watch->trigger), EV_READ | EV_PERSIST,
                             on_pressure, watch);
    if (watch->event == NULL || event_add(watch->event, NULL) != 0)
        return inf_fail(err, INF_EXHAUSTED, "no event for the pressure on memory");
    return INF_OK;
}

void inf_memory_watch_fini(struct inf_memory_watch *watch)
{
    if (watch->event != NULL)
        event_free(watch->event);
    watch->event = NULL;
    if (watch->log != NULL)
        inf_memory_trigger_close(&watch->trigger);
}
