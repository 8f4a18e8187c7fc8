// SPDX-License-Identifier: Apache-2.0
// The memory of values if the first device has its own memory. Intermediates that only this device
// accesses are in its arena. Values that the host accesses too, and inputs and outputs of the
// graph, are in staging memory that both can access. Therefore only inputs and outputs are ever
// copied.
#ifndef INF_BACKENDS_EXEC_STAGING_H
#define INF_BACKENDS_EXEC_STAGING_H

#include "backends/exec/plan.h"

// Offset of a value that is not in staging memory.
#define INF_STAGING_NONE SIZE_MAX

struct inf_staging {
    size_t *offsets; // indexed by value; INF_STAGING_NONE: not in staging memory
    bool *on_device; // indexed by value; true: in the first device's arena
    size_t bytes;    // size of the staging memory
    bool host_arena; // true: some value may be in the host arena
};

// Fills *staging for a plan over `devices`. Only the first device may have its own memory. The
// caller calls inf_staging_fini(), even after a failure.
//
// INF_UNSUPPORTED  another device has its own memory.
// INF_EXHAUSTED    memory.
enum inf_code inf_staging_init(struct inf_staging *staging, const struct inf_graph *graph,
                               const struct inf_plan *plan, struct inf_device *const *devices,
                               struct inf_error *err) INF_NODISCARD;

// Frees the arrays of *staging. A zeroed struct is allowed.
void inf_staging_fini(struct inf_staging *staging);

#endif
