// SPDX-License-Identifier: Apache-2.0
// The backend entry of the reference device: one device that always exists and runs plain C loops
// on one thread.
#include "backends/ref/ref.h"

#include <stdlib.h>

#include "backends/ref/program.h"

#define PRIORITY 100

static uint32_t count_devices(void)
{
    return 1;
}

static enum inf_code open_device(struct inf_device **out_device, uint32_t index,
                                 const struct inf_device_options *options, struct inf_error *err)
{
    (void)index;
    struct inf_device *device = calloc(1, sizeof(*device));
    if (device == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for the device 'ref'");
    device->info = (struct inf_device_info){
        .name = "ref",
        .backend = "ref",
        .description = "plain C loops, one thread",
        .kind = INF_DEVICE_HOST,
        .priority = PRIORITY,
        .slots = options->slots != 0 ? options->slots : 1,
        .threads = 1,
        .host_memory = true,
        .strings = true,
        .alignment = 64,
    };
    *out_device = device;
    return INF_OK;
}

static void close_device(struct inf_device *device)
{
    free(device);
}

const struct inf_backend inf_ref_backend = {
    .name = "ref",
    .priority = PRIORITY,
    .probe = count_devices,
    .open = open_device,
    .close = close_device,
    .supports = inf_ref_program_supports,
    .compile = inf_ref_program_compile,
    .program_destroy = inf_ref_program_destroy,
    .run = inf_ref_program_run,
    .profile = inf_ref_program_profile,
};
