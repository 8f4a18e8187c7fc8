// SPDX-License-Identifier: Apache-2.0
// Which devices a model may be placed on: lists by name, and a preference between GPUs that save
// power and GPUs that are fast, as WebGPU's powerPreference is one.
#ifndef INF_BACKENDS_PLACE_ALLOW_H
#define INF_BACKENDS_PLACE_ALLOW_H

#include "backends/device/device.h"
#include "backends/place/prior.h"

enum inf_power {
    INF_POWER_ANY,
    INF_POWER_LOW,  // integrated GPUs, where there are any
    INF_POWER_HIGH, // discrete ones, where there are any
};

// Parses "any", "low" or "high"; false for anything else.
bool inf_power_parse(const char *text, enum inf_power *power);

struct inf_allow_rules {
    const char *allowed; // names with commas between; "" or NULL: all
    const char *denied;  // "" or NULL: none
    enum inf_power power;
};

// Whether the comma-separated `list` has `name`.
bool inf_allow_listed(const char *list, const char *name);

// Takes the next name off a comma-separated list, cut where it does not fit; false at its end.
bool inf_allow_next(const char **list, char *name, size_t size);

// Why each of `count` devices (at most INF_PLACE_DEVICES) may not be chosen; NULL for those that
// may. The texts are static. Returns how many may. Any thread.
uint32_t inf_allow_check(const struct inf_allow_rules *rules,
                         const struct inf_device_info *const *devices, uint32_t count,
                         const char *reasons[INF_PLACE_DEVICES]);

#endif
