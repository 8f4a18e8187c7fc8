// SPDX-License-Identifier: Apache-2.0
// Named counters of a device, for status replies and tests.
#include "backends/device/counts.h"

#include "backends/device/backend.h"

const char *inf_device_count_name(enum inf_device_count count)
{
    static const char *const names[INF_DEVICE_COUNTS] = {
        [INF_COUNT_INPUTS_IN_PLACE] = "inputs_in_place",
        [INF_COUNT_IN_PLACE_BYTES] = "in_place_bytes",
        [INF_COUNT_INPUTS_COPIED] = "inputs_copied",
        [INF_COUNT_COPIED_BYTES] = "copied_bytes",
        [INF_COUNT_UPLOADS] = "weight_uploads",
        [INF_COUNT_UPLOAD_BYTES] = "weight_upload_bytes",
        [INF_COUNT_EVICTIONS] = "weight_evictions",
        [INF_COUNT_EVICTED_BYTES] = "weight_evicted_bytes",
        [INF_COUNT_PIPELINES] = "pipelines",
        [INF_COUNT_PIPELINES_KNOWN] = "pipelines_known",
        [INF_COUNT_PIPELINES_HIT] = "pipelines_hit",
        [INF_COUNT_PIPELINE_US] = "pipeline_us",
        [INF_COUNT_SHADERS_COMPILED] = "shaders_compiled",
        [INF_COUNT_SHADERS_CHECKED] = "shaders_checked",
        [INF_COUNT_SHADERS_WRONG] = "shaders_wrong",
        [INF_COUNT_SHADERS_UNCHECKED] = "shaders_unchecked",
        [INF_COUNT_SHADER_CHECK_US] = "shader_check_us",
    };
    return names[count];
}

void inf_device_add_count(struct inf_device *device, enum inf_device_count count, uint64_t amount)
{
    // Relaxed order is enough, because the number is for display and orders no other access.
    atomic_fetch_add_explicit(&device->counts[count], amount, memory_order_relaxed);
}

uint64_t inf_device_get_count(const struct inf_device *device, enum inf_device_count count)
{
    return atomic_load_explicit(&device->counts[count], memory_order_relaxed);
}
