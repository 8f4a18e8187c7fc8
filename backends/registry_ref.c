// SPDX-License-Identifier: Apache-2.0
// The table of backends for a build with the reference device `ref` only.
#include <stddef.h>

#include "backends/ref/ref.h"
#include "backends/registry_table.h"

const struct inf_backend *const inf_registry_table[] = {&inf_ref_backend, NULL};
