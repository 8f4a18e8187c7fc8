// SPDX-License-Identifier: Apache-2.0
// The backends that are built in: the only place that names them.
#ifndef INF_BACKENDS_REGISTRY_H
#define INF_BACKENDS_REGISTRY_H

#include "backends/device/device.h"
#include "backends/graph/pass/pass.h"

// The built-in backends, highest priority first, ended by NULL. Static.
const struct inf_backend *const *inf_registry_backends(void);

// The backend called `name`; NULL where there is none.
const struct inf_backend *inf_registry_find(const char *name);

// The name and the static priority of a backend.
const char *inf_registry_name(const struct inf_backend *backend);

// What became of a backend that is built in.
#define INF_REGISTRY_BACKENDS 8
struct inf_backend_state {
    const char *name; // static
    int priority;
    uint32_t devices; // that were opened
    char why[160];    // why there is none, or one fewer; "": nothing went wrong
};

// Devices of all backends that can be opened here, in order of preference; ref is the last.
#define INF_REGISTRY_DEVICES 16
struct inf_device_list {
    struct inf_device *devices[INF_REGISTRY_DEVICES]; // a reference each
    uint32_t count;
    struct inf_backend_state backends[INF_REGISTRY_BACKENDS];
    uint32_t backend_count;
};

// Opens what can be opened. `only`, where not NULL, is a comma-separated list of backends to use;
// ref is opened all the same. Without it, backends whose hardware is not here are left out, though
// they might do without (Vulkan on the CPU). Backends that cannot start are logged and left out.
//
// INF_INVALID      `only` names an unknown backend; the text names it and the known ones. Or an
//                  option makes no sense to a backend.
// INF_UNAVAILABLE  not even ref could be opened.
enum inf_code inf_device_list_open(struct inf_device_list *list, const char *only,
                                   const struct inf_device_options *options,
                                   struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// The devices of the list that others fall back on, best first, ref last: those whose memory is the
// host's. Writes at most `capacity` of them, no references, and returns how many.
uint32_t inf_device_list_hosts(const struct inf_device_list *list, struct inf_device **hosts,
                               uint32_t capacity);

// Drops the references.
void inf_device_list_close(struct inf_device_list *list);

// The evaluator that constant folding uses (ref's). Static.
const struct inf_evaluator *inf_registry_evaluator(void);

#endif
