// SPDX-License-Identifier: Apache-2.0
// The memory that the daemon may use: finds the limit at start, and unloads idle models when the
// kernel reports that memory is short. The kernel notifies the daemon if the daemon may write to
// the file memory.pressure of its control group. systemd allows that from version 254 on
// (MemoryPressureWatch=); with an older one, the daemon reads the file every two seconds.
#ifndef INF_DAEMON_MEMORY_WATCH_H
#define INF_DAEMON_MEMORY_WATCH_H

#include "daemon/store/store.h"
#include "daemon/system/memory_trigger.h"
#include "daemon/system/pressure.h"

struct event;
struct event_base;

// Embedded in the daemon. Zeroed: nothing is watched.
struct inf_memory_watch {
    struct inf_memory_budget budget;
    struct inf_memory_trigger trigger;
    struct inf_pressure pressure; // read by the timer if there is no trigger
    uint64_t stalled_ns;          // time in which tasks waited for memory, as last read
    struct event *event; // fires when memory is short, or by time; NULL: the kernel reports nothing
    struct inf_model_store *store;
    const struct inf_log *log;
    void (*relieved)(void *context);
    void *context;
};

// Fills watch->budget: the limit is `memory_max` bytes; if that is 0, a share of what the control
// group or the machine allows. Call it when the devices are open and no model is loaded, because
// the resident memory at that time counts as that of the process. `root` is "" for the real system.
void inf_memory_watch_init(struct inf_memory_watch *watch, uint64_t memory_max, const char *root,
                           const struct inf_log *log);

// Begins to watch for pressure on memory. When models were unloaded, relieved(context) is called on
// the loop. If the kernel reports no pressure, the function logs that and succeeds.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_memory_watch_start(struct inf_memory_watch *watch, struct event_base *base,
                                     struct inf_model_store *store, void (*relieved)(void *context),
                                     void *context, struct inf_error *err) INF_NODISCARD;

// Stops watching. A zeroed or initialised watch is allowed.
void inf_memory_watch_fini(struct inf_memory_watch *watch);

#endif
