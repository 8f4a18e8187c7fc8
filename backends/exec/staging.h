// SPDX-License-Identifier: Apache-2.0
// Where values lie when the first device has memory of its own. Intermediates that only this device
// touches stay in its arena; what others touch too, and inputs and outputs of the graph, lies in
// memory that both see, so that nothing but inputs and outputs is ever copied.
#ifndef INF_BACKENDS_EXEC_STAGING_H
#define INF_BACKENDS_EXEC_STAGING_H

#include "backends/exec/plan.h"

// Of a value that is not staged.
#define INF_STAGING_NONE SIZE_MAX

struct inf_staging {
    size_t *offsets; // by value; INF_STAGING_NONE where it lies elsewhere
    bool *on_device; // by value: in the first device's arena
    size_t bytes;    // of all that is staged
    bool host_arena; // whether any value may lie in an arena of the host's
};

// Settles it for a plan over `devices`, of which only the first may have memory of its own. The
// caller frees it with inf_staging_fini(), also on failure.
//
// INF_UNSUPPORTED  another device has memory of its own.
// INF_EXHAUSTED    memory.
enum inf_code inf_staging_init(struct inf_staging *staging, const struct inf_graph *graph,
                               const struct inf_plan *plan, struct inf_device *const *devices,
                               struct inf_error *err) INF_NODISCARD;

// Frees the tables. All zero is fine.
void inf_staging_fini(struct inf_staging *staging);

#endif
