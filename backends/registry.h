// SPDX-License-Identifier: Apache-2.0
// The backends that are built in. Other code finds them through this interface only.
#ifndef INF_BACKENDS_REGISTRY_H
#define INF_BACKENDS_REGISTRY_H

#include "backends/device/device.h"
#include "backends/graph/pass/pass.h"

// The built-in backends, highest priority first, ended by NULL. Static.
const struct inf_backend *const *inf_registry_backends(void);

// Returns the backend called `name`; NULL if there is none.
const struct inf_backend *inf_registry_find(const char *name);

// Returns the name of a backend, such as "cpu". Static.
const char *inf_registry_name(const struct inf_backend *backend);

// The result of opening the devices of one built-in backend. At most INF_REGISTRY_BACKENDS are
// kept.
#define INF_REGISTRY_BACKENDS 10
struct inf_backend_state {
    const char *name; // name of the backend; static
    int priority;
    uint32_t devices; // number of devices that were opened
    char why[160];    // why no device was opened, or one fewer than found; "": nothing went wrong
};

// The devices of all backends that can be opened here (at most INF_REGISTRY_DEVICES), in order of
// preference. The reference device `ref` is the last one.
#define INF_REGISTRY_DEVICES 16
struct inf_device_list {
    struct inf_device *devices[INF_REGISTRY_DEVICES]; // the list holds one reference to each
    uint32_t count;
    struct inf_backend_state backends[INF_REGISTRY_BACKENDS];
    uint32_t backend_count;
};

// Opens the devices of all backends that can start. If `only` is not NULL, it is a comma-separated
// list of the backends to use; the reference device `ref` is opened in any case. If `only` is NULL,
// backends whose hardware is missing are left out, even if they could run without it (Vulkan on the
// CPU). Backends that cannot start are logged and left out.
//
// INF_INVALID      `only` names an unknown backend (the text lists the known ones), or a backend
// rejects an option.
// INF_UNAVAILABLE  not even `ref` could be opened.
enum inf_code inf_device_list_open(struct inf_device_list *list, const char *only,
                                   const struct inf_device_options *options,
                                   struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Lists the devices that can be the fallback of other devices, because they compute in host memory.
// The best one is first and `ref` is last. Writes at most `capacity` pointers without taking
// references, and returns how many.
uint32_t inf_device_list_hosts(const struct inf_device_list *list, struct inf_device **hosts,
                               uint32_t capacity);

// Drops the list's references to its devices.
void inf_device_list_close(struct inf_device_list *list);

// Returns the evaluator for constant folding, which uses the kernels of `ref`. Static.
const struct inf_evaluator *inf_registry_evaluator(void);

#endif
