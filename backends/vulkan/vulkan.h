// SPDX-License-Identifier: Apache-2.0
// GPUs through Vulkan 1.2: compute shaders that are recorded once and replayed. The backend
// declines nodes for which it has no shader; these nodes run on the reference device `ref` in the
// same plan.
#ifndef INF_BACKENDS_VULKAN_VULKAN_H
#define INF_BACKENDS_VULKAN_VULKAN_H

#include "backends/device/backend.h"

extern const struct inf_backend inf_vulkan_backend;

#endif
