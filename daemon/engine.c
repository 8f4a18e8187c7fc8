// SPDX-License-Identifier: Apache-2.0
// Opens the engine as the configuration says.
#include "daemon/engine.h"

#include <stdio.h>
#include <string.h>

#include "daemon/model/devices.h"

void inf_engine_build(char text[INF_ENGINE_BUILD_TEXT], const char *version)
{
    char build[INF_BUILD_ID_TEXT];
    inf_build_id(build);
    snprintf(text, INF_ENGINE_BUILD_TEXT, "%.31s %s", version, build);
}

// Logs a warning if the reference device is the only one, although the configuration did not ask
// for that, because it is up to a hundred times slower than the cpu device.
static void warn_if_slow(const struct inf_device_list *devices, const struct inf_config *config,
                         const struct inf_log *log)
{
    bool chosen = config->backends[0] != '\0' || config->devices[0] != '\0' ||
                  config->devices_denied[0] != '\0';
    if (chosen || devices->count != 1 ||
        strcmp(inf_device_info(devices->devices[0])->name, "ref") != 0)
        return;
    inf_log(log, INF_LOG_WARNING,
            "only the slow reference device is available: the other backends did not start, see "
            "inferctl backends; if they are not listed, build with XNNPACK or Vulkan");
}

enum inf_code inf_engine_open_devices(struct inf_device_list *devices,
                                      const struct inf_config *config, const struct inf_log *logs,
                                      struct inf_error *err)
{
    const struct inf_log *log = &logs[INF_LOG_PART_DAEMON];
    const struct inf_device_options options = {
        .slots = config->cpu_slots,
        .threads = config->cpu_threads,
        .isa_max = config->cpu_isa_max,
        .kernel_races = strcmp(config->race, "never") != 0,
        .shader_oracle =
            strcmp(config->gpu_shader_check, "never") != 0 ? inf_registry_evaluator() : NULL,
        .check_software = strcmp(config->gpu_shader_check, "always") == 0,
        .handoff_elements = config->gpu_handoff_elements,
        .memory_bytes = config->gpu_memory_bytes,
        .vulkan_loader = config->vulkan_loader[0] != '\0' ? config->vulkan_loader : NULL,
        .vulkan_drivers = config->vulkan_drivers[0] != '\0' ? config->vulkan_drivers : NULL,
        .log = &logs[INF_LOG_PART_DEVICE],
        .cache_directory = config->cache_dir[0] != '\0' ? config->cache_dir : NULL,
    };
    const char *only = config->backends[0] != '\0' ? config->backends : NULL;
    INF_TRY(inf_device_list_open(devices, only, &options, err));
    inf_model_devices_prune(
        devices,
        &(struct inf_allow_rules){.allowed = config->devices, .denied = config->devices_denied},
        log);
    warn_if_slow(devices, config, log);
    return INF_OK;
}
