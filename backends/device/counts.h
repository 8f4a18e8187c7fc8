// SPDX-License-Identifier: Apache-2.0
// Counters of a device since it was opened. Some stay 0 on devices that use host memory.
#ifndef INF_BACKENDS_DEVICE_COUNTS_H
#define INF_BACKENDS_DEVICE_COUNTS_H

#include <stdint.h>

struct inf_device;

enum inf_device_count {
    INF_COUNT_INPUTS_IN_PLACE, // inputs of runs that it read where the caller has them,
    INF_COUNT_IN_PLACE_BYTES,
    INF_COUNT_INPUTS_COPIED, // and those that were copied to memory of its own
    INF_COUNT_COPIED_BYTES,
    INF_COUNT_UPLOADS, // times that a program's weights went to the device, at their first use or later again,
    INF_COUNT_UPLOAD_BYTES,
    INF_COUNT_EVICTIONS, // and were taken away for want of memory
    INF_COUNT_EVICTED_BYTES,
    INF_COUNT_PIPELINES,       // made,
    INF_COUNT_PIPELINES_KNOWN, // of them: the cache that earlier starts left on disk has them
    INF_COUNT_PIPELINES_HIT, // of them: the driver says that it found them in its cache; not all tell
    INF_COUNT_PIPELINE_US,   // that making them took, all threads together
    INF_COUNT_SHADERS_COMPILED, // from source, at run time
    INF_DEVICE_COUNTS
};

// Returns the name of a counter, such as "inputs_in_place". Static.
const char *inf_device_count_name(enum inf_device_count count);

// Adds `amount` to a counter. Any thread.
void inf_device_add_count(struct inf_device *device, enum inf_device_count count, uint64_t amount);

// Returns the value of a counter. Any thread.
uint64_t inf_device_get_count(const struct inf_device *device, enum inf_device_count count);

#endif
