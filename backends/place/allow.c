// SPDX-License-Identifier: Apache-2.0
// Decides which devices a model may be placed on, by lists of names and by power preference.
#include "backends/place/allow.h"

#include <stdio.h>
#include <string.h>

#include "backends/base/name.h"

#define SEPARATORS " \t,;"

bool inf_power_parse(const char *text, enum inf_power *power)
{
    static const char *const names[] = {
        [INF_POWER_ANY] = "any", [INF_POWER_LOW] = "low", [INF_POWER_HIGH] = "high"};
    size_t index = inf_name_find(names, INF_ARRAY_LENGTH(names), text);
    if (index < INF_ARRAY_LENGTH(names))
        *power = (enum inf_power)index;
    return index < INF_ARRAY_LENGTH(names);
}

bool inf_allow_next(const char **list, char *name, size_t size)
{
    const char *at = *list + strspn(*list, SEPARATORS);
    size_t length = strcspn(at, SEPARATORS);
    *list = at + length;
    snprintf(name, size, "%.*s", (int)length, at);
    return length > 0;
}

bool inf_allow_listed(const char *list, const char *name)
{
    char listed[64];
    while (inf_allow_next(&list, listed, sizeof listed))
        if (strcmp(listed, name) == 0)
            return true;
    return false;
}

static const char *judge_name(const struct inf_allow_rules *rules, const char *name)
{
    if (rules->allowed != NULL && rules->allowed[0] != '\0' &&
        !inf_allow_listed(rules->allowed, name))
        return "not among the model's devices";
    if (rules->denied != NULL && inf_allow_listed(rules->denied, name))
        return "denied to the model";
    return NULL;
}

// Returns whether `device` is a GPU of the kind that the preference `power` avoids: a discrete GPU
// for "low", an integrated GPU for "high".
static bool is_second_choice(const struct inf_device_info *device, enum inf_power power)
{
    return power != INF_POWER_ANY && device->kind == INF_DEVICE_GPU &&
           device->discrete != (power == INF_POWER_HIGH);
}

uint32_t inf_allow_check(const struct inf_allow_rules *rules,
                         const struct inf_device_info *const *devices, uint32_t count,
                         const char *reasons[INF_PLACE_DEVICES])
{
    bool preferred = false;
    uint32_t allowed = 0;
    for (uint32_t i = 0; i < count; i++) {
        reasons[i] = judge_name(rules, devices[i]->name);
        preferred |= reasons[i] == NULL && devices[i]->kind == INF_DEVICE_GPU &&
                     !is_second_choice(devices[i], rules->power);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (reasons[i] == NULL && preferred && is_second_choice(devices[i], rules->power))
            reasons[i] = rules->power == INF_POWER_LOW
                             ? "power is low: an integrated GPU is preferred"
                             : "power is high: a discrete GPU is preferred";
        allowed += reasons[i] == NULL;
    }
    return allowed;
}
