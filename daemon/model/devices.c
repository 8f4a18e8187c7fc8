// SPDX-License-Identifier: Apache-2.0
// Resolves names of devices, and applies the lists of allowed and denied devices.
#include "daemon/model/devices.h"

#include <stdio.h>
#include <string.h>

#define NAMES_SIZE 256

// Writes the names of all devices to `text`, separated by commas.
static const char *list_names(const struct inf_device_list *devices, char names[NAMES_SIZE])
{
    names[0] = '\0';
    for (uint32_t i = 0; i < devices->count; i++) {
        size_t used = strlen(names);
        snprintf(names + used, NAMES_SIZE - used, "%s%s", i > 0 ? ", " : "",
                 inf_device_info(devices->devices[i])->name);
    }
    return names;
}

// Logs each name in an allow or deny list that matches no device.
static void report_unknown(const struct inf_device_list *devices, const char *list,
                           const struct inf_log *log)
{
    char name[sizeof((struct inf_device_info *)0)->name], names[NAMES_SIZE];
    while (inf_allow_next(&list, name, sizeof name)) {
        bool known = false;
        for (uint32_t i = 0; i < devices->count; i++)
            known |= strcmp(inf_device_info(devices->devices[i])->name, name) == 0;
        if (!known)
            inf_log(log, INF_LOG_WARNING, "device unknown device=%s devices=\"%s\"", name,
                    list_names(devices, names));
    }
}

void inf_model_devices_prune(struct inf_device_list *devices, const struct inf_allow_rules *rules,
                             const struct inf_log *log)
{
    const struct inf_device_info *infos[INF_REGISTRY_DEVICES];
    const char *reasons[INF_PLACE_DEVICES];
    uint32_t kept = 0;
    report_unknown(devices, rules->allowed, log);
    report_unknown(devices, rules->denied, log);
    for (uint32_t i = 0; i < devices->count; i++)
        infos[i] = inf_device_info(devices->devices[i]);
    (void)inf_allow_check(rules, infos, devices->count, reasons);
    for (uint32_t i = 0; i < devices->count; i++) {
        if (reasons[i] == NULL || i + 1 == devices->count) {
            devices->devices[kept++] = devices->devices[i];
            continue;
        }
        inf_log(log, INF_LOG_INFO, "device left out device=%s reason=\"the settings say so\"",
                infos[i]->name);
        inf_device_unref(&devices->devices[i]);
    }
    devices->count = kept;
}

enum inf_code inf_model_device_find(const struct inf_device_list *devices, const char *name,
                                    struct inf_device **out_device, struct inf_error *err)
{
    char names[NAMES_SIZE];
    for (uint32_t i = 0; i < devices->count; i++) {
        if (strcmp(inf_device_info(devices->devices[i])->name, name) != 0)
            continue;
        *out_device = devices->devices[i];
        return INF_OK;
    }
    return inf_fail_reason(err, INF_NOT_FOUND, INF_REASON_NO_DEVICE,
                           "device '%.64s': there is none, wanted one of: %s", name,
                           list_names(devices, names));
}

// Checks that the rules allow at least one device, and that they allow `named`, the device that the
// settings of the model name; NULL: they name none.
static enum inf_code check_allowed(const struct inf_device_list *devices,
                                   const struct inf_allow_rules *rules,
                                   const struct inf_device *named, struct inf_error *err)
{
    const struct inf_device_info *infos[INF_REGISTRY_DEVICES];
    const char *reasons[INF_PLACE_DEVICES];
    char names[NAMES_SIZE];
    for (uint32_t i = 0; i < devices->count; i++)
        infos[i] = inf_device_info(devices->devices[i]);
    // A device that the settings name is allowed even if the power preference excludes it.
    struct inf_allow_rules by_name = *rules;
    if (named != NULL)
        by_name.power = INF_POWER_ANY;
    uint32_t allowed = inf_allow_check(&by_name, infos, devices->count, reasons);
    if (allowed == 0)
        return inf_fail_reason(err, INF_NOT_FOUND, INF_REASON_NO_DEVICE,
                               "devices '%.64s' without '%.64s': none is left, there are: %s",
                               rules->allowed, rules->denied, list_names(devices, names));
    for (uint32_t i = 0; i < devices->count; i++)
        if (devices->devices[i] == named && reasons[i] != NULL)
            return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                                   "device '%s': it is named, and %s", infos[i]->name, reasons[i]);
    return INF_OK;
}

enum inf_code inf_model_device_choose(const struct inf_model_config *config,
                                      const struct inf_device_list *devices,
                                      struct inf_device *otherwise, enum inf_power power,
                                      struct inf_allow_rules *rules, struct inf_device **out_device,
                                      struct inf_error *err)
{
    *rules = (struct inf_allow_rules){
        .allowed = config->devices, .denied = config->devices_denied, .power = power};
    if (inf_model_config_origin(config, INF_MODEL_FLAG_ID_power) != INF_ORIGIN_DEFAULT)
        // Parsing cannot fail here, because the settings were validated when they were read.
        (void)inf_power_parse(config->power, &rules->power);
    bool is_default =
        inf_model_config_origin(config, INF_MODEL_FLAG_ID_device) == INF_ORIGIN_DEFAULT;
    *out_device = is_default ? otherwise : NULL;
    if (!is_default && strcmp(config->device, "auto") != 0)
        INF_TRY(inf_model_device_find(devices, config->device, out_device, err));
    return check_allowed(devices, rules, *out_device, err);
}

uint32_t inf_model_device_find_other(const struct inf_device_list *devices,
                                     const struct inf_device *device)
{
    for (uint32_t i = 0; i < devices->count; i++)
        if (devices->devices[i] != device &&
            inf_device_info(devices->devices[i])->kind != INF_DEVICE_SOFTWARE &&
            inf_device_health(devices->devices[i]) == INF_DEVICE_OK)
            return i;
    return INF_DEVICE_INDEX_NONE;
}
