// SPDX-License-Identifier: Apache-2.0
// Counters of a device since it was opened. Some stay 0 on devices that use host memory.
#ifndef INF_BACKENDS_DEVICE_COUNTS_H
#define INF_BACKENDS_DEVICE_COUNTS_H

#include <stdint.h>

struct inf_device;

enum inf_device_count {
    INF_COUNT_INPUTS_IN_PLACE, // inputs of runs that were read in the caller's memory
    INF_COUNT_IN_PLACE_BYTES,  // total bytes of the inputs that were read in place
    INF_COUNT_INPUTS_COPIED,   // inputs of runs that were copied to the device
    INF_COUNT_COPIED_BYTES,    // total bytes of the inputs that were copied
    INF_COUNT_UPLOADS,         // uploads of the weights of a program
    INF_COUNT_UPLOAD_BYTES,    // total bytes of the uploads
    INF_COUNT_EVICTIONS,       // evictions of a program's weights for lack of memory
    INF_COUNT_EVICTED_BYTES,   // total bytes of the evictions
    INF_COUNT_PIPELINES,       // Vulkan pipelines (compiled shaders) that were created
    INF_COUNT_PIPELINES_KNOWN, // created pipelines that were in the cache file of an earlier start
    // Created pipelines that were in the driver's cache, if the driver reports this.
    INF_COUNT_PIPELINES_HIT,
    INF_COUNT_PIPELINE_US,      // total time to create pipelines, summed over threads
    INF_COUNT_SHADERS_COMPILED, // shaders compiled from source at run time
    // Shader variants whose results were compared with the reference device: right ones, wrong
    // ones (excluded), and those for which no small sample was found.
    INF_COUNT_SHADERS_CHECKED,
    INF_COUNT_SHADERS_WRONG,
    INF_COUNT_SHADERS_UNCHECKED,
    INF_COUNT_SHADER_CHECK_US, // total time of these checks
    INF_DEVICE_COUNTS
};

// Returns the name of a counter, such as "inputs_in_place". Static.
const char *inf_device_count_name(enum inf_device_count count);

// Adds `amount` to a counter. Any thread.
void inf_device_add_count(struct inf_device *device, enum inf_device_count count, uint64_t amount);

// Returns the value of a counter. Any thread.
uint64_t inf_device_get_count(const struct inf_device *device, enum inf_device_count count);

#endif
