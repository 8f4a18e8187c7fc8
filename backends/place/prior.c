// SPDX-License-Identifier: Apache-2.0
// Orders devices for a model by rules of thumb, which are used as long as nothing was measured.
#include "backends/place/prior.h"

static void append_device(struct inf_prior *prior, const struct inf_device_info *const *devices,
                          uint32_t count, enum inf_device_kind kind)
{
    for (uint32_t i = 0; i < count; i++)
        if (devices[i]->kind == kind)
            prior->order[prior->count++] = i;
}

static bool has_device(const struct inf_device_info *const *devices, uint32_t count,
                       enum inf_device_kind kind)
{
    for (uint32_t i = 0; i < count; i++)
        if (devices[i]->kind == kind)
            return true;
    return false;
}

struct inf_prior inf_prior_choose(const struct inf_device_info *const *devices, uint32_t count,
                                  const struct inf_prior_input *facts)
{
    struct inf_prior prior = {.reason = "the only kind of device there is"};
    bool lite = facts->const_bytes < INF_PRIOR_LITE_BYTES && facts->macs < INF_PRIOR_LITE_MACS;
    bool gpu = has_device(devices, count, INF_DEVICE_GPU),
         cpu = has_device(devices, count, INF_DEVICE_CPU);
    if (gpu && cpu)
        prior.reason =
            lite ? "less than 3 MiB of weights and 60 M multiply-adds: a GPU's fixed costs "
                   "would be more than its gain"
                 : "a GPU goes first where the model is not tiny";
    else if (gpu || cpu)
        prior.reason = "the highest priority";
    if (lite)
        append_device(&prior, devices, count, INF_DEVICE_CPU);
    append_device(&prior, devices, count, INF_DEVICE_GPU);
    if (!lite)
        append_device(&prior, devices, count, INF_DEVICE_CPU);
    append_device(&prior, devices, count, INF_DEVICE_HOST);
    if (prior.count == 0)
        append_device(&prior, devices, count, INF_DEVICE_SOFTWARE);
    return prior;
}
