// SPDX-License-Identifier: Apache-2.0
// The table of backends for a build with cpu and without Vulkan.
#include <stddef.h>

#include "backends/cpu/cpu.h"
#include "backends/ref/ref.h"
#include "backends/registry_table.h"

const struct inf_backend *const inf_registry_table[] = {&inf_cpu_backend, &inf_ref_backend, NULL};
