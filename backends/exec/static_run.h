// SPDX-License-Identifier: Apache-2.0
// The memory of a static executable's values during one run. The bindings of a slot (concurrent
// run) that stay the same are set once; the bindings of inputs and outputs are set for each run.
// Private to static_executable.c.
#ifndef INF_BACKENDS_EXEC_STATIC_RUN_H
#define INF_BACKENDS_EXEC_STATIC_RUN_H

#include "backends/exec/executable_ops.h"
#include "backends/exec/staging.h"

// A value in the memory of a graph input or output. The caller passes this memory to each run.
struct inf_bound_value {
    uint32_t value;
    uint32_t index; // index of the graph's input or output
};

// The memory and bindings of one slot (concurrent run).
struct inf_slot {
    struct inf_buffer *arena; // host memory of intermediates
    // Memory of the first device; NULL if the device uses host memory.
    struct inf_buffer *device_arena;
    // Memory that host and first device share; NULL if the device uses host memory.
    struct inf_buffer *staging;
    // bindings[v] is the memory of value v; bindings of inputs and outputs change with each run.
    struct inf_binding *bindings;
    const void **last_inputs; // last_inputs[i]: the caller's memory of inputs[i] in the last run
};

struct inf_static_executable {
    struct inf_executable base;
    struct inf_plan *plan;
    struct inf_staging staging;
    struct inf_device **devices; // each a counted reference
    uint32_t device_count;
    struct inf_program **programs; // one for each segment
    struct inf_slot *slots;
    uint32_t slot_count;
    // the run options; `pinned` is NULL, because plan->pinned lists the pinned nodes
    struct inf_run_options options;
    bool *lowered;                  // lowered[v]: value v is stored in 16 bits; NULL: no value is
    struct inf_bound_value *inputs; // values that are in the memory of a graph input
    uint32_t input_count;
    struct inf_bound_value *outputs; // values that are in the memory of a graph output
    uint32_t output_count;
    uint64_t buffer_bytes; // memory of the arenas and staging buffers of all slots
};

// Returns the memory of value `v`, which is the same in every run of the slot. Returns an empty
// binding if `v` is in the caller's memory, which inf_static_run_bind() binds for each run.
struct inf_binding inf_static_run_place(const struct inf_static_executable *executable,
                                        const struct inf_slot *slot, uint32_t v);

// Binds the inputs and outputs of `execution` in its slot. Copies inputs that the first device
// cannot read in place to staging memory.
void inf_static_run_bind(struct inf_static_executable *executable,
                         const struct inf_execution *execution);

// Copies outputs to the caller's memory if no program wrote them there. Call it after the last
// segment has finished.
void inf_static_run_fetch(const struct inf_static_executable *executable,
                          const struct inf_execution *execution);

#endif
