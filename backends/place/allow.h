// SPDX-License-Identifier: Apache-2.0
// Decides which devices a model may be placed on: by lists of names, and by a preference between
// power-saving and fast GPUs, like WebGPU's powerPreference.
#ifndef INF_BACKENDS_PLACE_ALLOW_H
#define INF_BACKENDS_PLACE_ALLOW_H

#include "backends/device/device.h"
#include "backends/place/prior.h"

enum inf_power {
    INF_POWER_ANY,
    INF_POWER_LOW,  // integrated GPUs, if there are any
    INF_POWER_HIGH, // discrete GPUs, if there are any
};

// Parses "any", "low" or "high"; returns false for any other text.
bool inf_power_parse(const char *text, enum inf_power *power);

struct inf_allow_rules {
    const char *allowed; // names separated by commas; "" or NULL: all
    const char *denied;  // "" or NULL: none
    enum inf_power power;
};

// Returns true if the comma-separated `list` contains `name`.
bool inf_allow_listed(const char *list, const char *name);

// Copies the next name of a comma-separated list to `name`, truncated if it does not fit, and
// advances *list. Returns false at the end of the list.
bool inf_allow_next(const char **list, char *name, size_t size);

// Stores for each of `count` devices (at most INF_PLACE_DEVICES) the reason why the device may not
// be chosen; NULL if it may be chosen. The texts are static. Returns the number of devices that may
// be chosen. Any thread.
uint32_t inf_allow_check(const struct inf_allow_rules *rules,
                         const struct inf_device_info *const *devices, uint32_t count,
                         const char *reasons[INF_PLACE_DEVICES]);

#endif
