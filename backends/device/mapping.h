// SPDX-License-Identifier: Apache-2.0
// Host memory that stays valid for longer than a run, such as a client's shared-memory region.
// Devices that can import it read it without a copy.
#ifndef INF_BACKENDS_DEVICE_MAPPING_H
#define INF_BACKENDS_DEVICE_MAPPING_H

#include "backends/device/device.h"

struct inf_mapping;

// Creates a mapping of `size_bytes` at `host`. The caller must keep these whole pages readable
// until the mapping is destroyed. The memory must not be truncated, because a device that reads
// missing pages ends the process.
//
// INF_EXHAUSTED  (HOST_OOM)
enum inf_code inf_mapping_create(struct inf_mapping **out_mapping, void *host, size_t size_bytes,
                                 struct inf_error *err) INF_NODISCARD;

// Binds `size_bytes` at `memory` for runs on `device`. The first call for a device imports the
// mapping. Returns false if the memory is not in the mapping or the device cannot import it; the
// caller must then copy. The binding is valid as long as the mapping, and until the device is lost.
// Any thread.
bool inf_mapping_bind(struct inf_mapping *mapping, struct inf_device *device, const void *memory,
                      size_t size_bytes, struct inf_binding *binding) INF_NODISCARD;

// Frees the imports of all devices. No run may use the mapping, and its memory must still be valid.
// NULL is allowed.
void inf_mapping_destroy(struct inf_mapping **mapping);

#endif
