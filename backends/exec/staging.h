// SPDX-License-Identifier: Apache-2.0
// Where values lie if the first device has its own memory. Intermediates that only this device
// accesses lie in its arena. Values that the host accesses as well, and inputs and outputs of the
// graph, lie in staging memory that both can access. So only inputs and outputs are ever copied.
#ifndef INF_BACKENDS_EXEC_STAGING_H
#define INF_BACKENDS_EXEC_STAGING_H

#include "backends/exec/plan.h"

// Offset of a value that is not in staging memory.
#define INF_STAGING_NONE SIZE_MAX

struct inf_staging {
    size_t *offsets; // by value; INF_STAGING_NONE: it lies elsewhere
    bool *on_device; // by value: in the first device's arena
    size_t bytes;    // size of the staging memory
    bool host_arena; // whether any value may lie in the host arena
};

// Fills *staging for a plan over `devices`, of which only the first may have its own memory. The
// caller calls inf_staging_fini(), also on failure.
//
// INF_UNSUPPORTED  another device has its own memory.
// INF_EXHAUSTED    memory.
enum inf_code inf_staging_init(struct inf_staging *staging, const struct inf_graph *graph,
                               const struct inf_plan *plan, struct inf_device *const *devices,
                               struct inf_error *err) INF_NODISCARD;

// Frees the tables. All zero is fine.
void inf_staging_fini(struct inf_staging *staging);

#endif
