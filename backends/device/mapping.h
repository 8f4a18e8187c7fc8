// SPDX-License-Identifier: Apache-2.0
// Host memory that stays where it is for longer than a run, such as a region that a client shares: each
// device that can reads it in place, once it has been told of it.
#ifndef INF_BACKENDS_DEVICE_MAPPING_H
#define INF_BACKENDS_DEVICE_MAPPING_H

#include "backends/device/device.h"

struct inf_mapping;

// Makes a mapping of `size_bytes` at `host`, whole pages, which stay readable until it is destroyed and
// of which nothing may be cut off: a device's read of what is not there any more ends the process.
//
// INF_EXHAUSTED  (HOST_OOM)
enum inf_code inf_mapping_create(struct inf_mapping **out_mapping, void *host, size_t size_bytes,
                                 struct inf_error *err) INF_NODISCARD;

// Binds `size_bytes` at `memory` for runs on `device`, which is told of the mapping at the first call.
// False where the memory lies elsewhere, or the device cannot: copy it then. The binding holds as long as the
// mapping and the device, unless that is lost. Any thread.
bool inf_mapping_bind(struct inf_mapping *mapping, struct inf_device *device, const void *memory,
                      size_t size_bytes, struct inf_binding *binding) INF_NODISCARD;

// Takes it from all devices; nothing may still run on it. Before the memory goes. NULL is fine.
void inf_mapping_destroy(struct inf_mapping **mapping);

#endif
