// SPDX-License-Identifier: Apache-2.0
// Where the values of a static executable lie during one run: bindings of a slot that stay the same
// are set once, those of inputs and outputs are set for each run. Private to static_executable.c.
#ifndef INF_BACKENDS_EXEC_STATIC_RUN_H
#define INF_BACKENDS_EXEC_STATIC_RUN_H

#include "backends/exec/executable_ops.h"
#include "backends/exec/staging.h"

// A value that lies in the memory of a graph input or output, which the caller names for each run.
struct inf_bound_value {
    uint32_t value;
    uint32_t index; // of the graph's input or output
};

// What one concurrent run has for itself.
struct inf_slot {
    struct inf_buffer *arena;        // host memory of intermediates
    struct inf_buffer *device_arena; // memory of the first device; NULL if that uses host memory
    struct inf_buffer *staging;      // memory that host and first device share; NULL as above
    struct inf_binding *bindings;    // by value; those of inputs and outputs change with each run
    const void **last_inputs;        // by index in `inputs`: the caller's memory of the last run
};

struct inf_static_executable {
    struct inf_executable base;
    struct inf_plan *plan;
    struct inf_staging staging;
    struct inf_device **devices; // a reference each
    uint32_t device_count;
    struct inf_program **programs; // by segment
    struct inf_slot *slots;
    uint32_t slot_count;
    struct inf_run_options options; // without pinned nodes, which plan->pinned has
    bool *lowered;                  // by value: lies in 16 bits; NULL: no value does
    struct inf_bound_value *inputs; // values that lie in a graph input
    uint32_t input_count;
    struct inf_bound_value *outputs; // values that lie in a graph output
    uint32_t output_count;
    uint64_t buffer_bytes; // of all slots
};

// Returns where value `v` lies in every run of the slot. Empty for values that lie in the caller's
// memory, which inf_static_run_bind() binds.
struct inf_binding inf_static_run_place(const struct inf_static_executable *executable,
                                        const struct inf_slot *slot, uint32_t v);

// Binds the inputs and outputs of `execution` in its slot. Copies those inputs to staging memory
// that the first device cannot read in place.
void inf_static_run_bind(struct inf_static_executable *executable,
                         const struct inf_execution *execution);

// Copies to the caller's memory the outputs that no program wrote there. Call it after the last
// segment has finished.
void inf_static_run_fetch(const struct inf_static_executable *executable,
                          const struct inf_execution *execution);

#endif
