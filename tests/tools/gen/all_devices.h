// SPDX-License-Identifier: Apache-2.0
// Opens the devices that the tables of documents list.
#ifndef INF_TESTS_TOOLS_GEN_ALL_DEVICES_H
#define INF_TESTS_TOOLS_GEN_ALL_DEVICES_H

#include <stdio.h>

#include "backends/registry.h"

// Opens the devices of all backends with one thread, also of those whose hardware is missing but
// which can run without it (Vulkan on the CPU).
static inline enum inf_code open_all_devices(struct inf_device_list *devices, struct inf_error *err)
{
    const struct inf_device_options options = {.threads = 1};
    char names[128] = "";
    size_t length = 0;
    for (const struct inf_backend *const *backend = inf_registry_backends();
         *backend != NULL && length < sizeof names; backend++)
        length += (size_t)snprintf(names + length, sizeof names - length, "%s%s",
                                   length > 0 ? "," : "", inf_registry_name(*backend));
    return inf_device_list_open(devices, names, &options, err);
}

#endif
