// SPDX-License-Identifier: Apache-2.0
// Chooses the thread pool for a run.
#include "backends/cpu/program/device.h"

pthreadpool_t inf_cpu_device_pool(const struct inf_cpu_device *device,
                                  const struct inf_segment *segment, uint32_t slot)
{
    if (segment->threads > 0 && segment->threads < device->pools.threads)
        return NULL;
    // `slot` may exceed the number of pools, because a plan of another device that falls back on
    // this one may have more slots. Sharing a pool is safe, because a pool runs one call at a time.
    return device->pools.pools[slot % device->pools.slots];
}
