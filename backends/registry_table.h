// SPDX-License-Identifier: Apache-2.0
// The table behind registry.h. The build picks the file that fills it: registry_full.c, or
// registry_ref.c where XNNPACK is not to be had.
#ifndef INF_BACKENDS_REGISTRY_TABLE_H
#define INF_BACKENDS_REGISTRY_TABLE_H

#include "backends/device/backend.h"

// Highest priority first, ref last, ended by NULL.
extern const struct inf_backend *const inf_registry_table[];

#endif
