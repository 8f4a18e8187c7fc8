// SPDX-License-Identifier: Apache-2.0
// The table behind registry.h. The build selects the file that defines the table, for example
// registry_full.c, or registry_ref.c if XNNPACK is not available.
#ifndef INF_BACKENDS_REGISTRY_TABLE_H
#define INF_BACKENDS_REGISTRY_TABLE_H

#include "backends/device/backend.h"

// Highest priority first, `ref` last, terminated by NULL.
extern const struct inf_backend *const inf_registry_table[];

#endif
