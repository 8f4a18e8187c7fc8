// SPDX-License-Identifier: Apache-2.0
// Returns the thread pool that a run uses.
#include "backends/cpu/program/device.h"

pthreadpool_t inf_cpu_device_pool(const struct inf_cpu_device *device,
                                  const struct inf_segment *segment, uint32_t slot)
{
    if (segment->threads > 0 && segment->threads < device->pools.threads)
        return NULL;
    // `slot` may exceed the number of pools: another device that runs some nodes on the cpu device
    // may have more slots. Two slots may share a pool, because a pool runs one call at a time.
    return device->pools.pools[slot % device->pools.slots];
}
