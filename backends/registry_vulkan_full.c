// SPDX-License-Identifier: Apache-2.0
// The table of backends for a build with cpu and Vulkan.
#include <stddef.h>

#include "backends/cpu/cpu.h"
#include "backends/ref/ref.h"
#include "backends/registry_table.h"
#include "backends/vulkan/vulkan.h"

const struct inf_backend *const inf_registry_table[] = {&inf_vulkan_backend, &inf_cpu_backend,
                                                        &inf_ref_backend, NULL};
