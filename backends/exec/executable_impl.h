// SPDX-License-Identifier: Apache-2.0
// What an executable is, for the files that make it: executable.c compiles it, executable_run.c runs it.
#ifndef INF_BACKENDS_EXEC_EXECUTABLE_IMPL_H
#define INF_BACKENDS_EXEC_EXECUTABLE_IMPL_H

#include "backends/exec/executable.h"
#include "backends/exec/staging.h"

// A value whose memory comes with each run.
struct inf_bound_value {
    uint32_t value;
    uint32_t index; // of the graph's input or output
};

// What one concurrent run has for itself.
struct inf_slot {
    struct inf_buffer *arena;        // of the host's
    struct inf_buffer *device_arena; // of the first device's own memory, where it has such
    struct inf_buffer *staging;      // what both see
    struct inf_binding *bindings;    // by value; all but inputs and outputs are set for good
    const void **fed;                // by bound input: where it lay in the last run
};

struct inf_executable {
    struct inf_graph *graph;
    struct inf_dynamic *dynamic; // NULL, or what stands in for all below
    struct inf_plan *plan;
    struct inf_staging staging;
    struct inf_device **devices;
    uint32_t device_count;
    struct inf_program **programs; // by segment
    struct inf_slot *slots;
    uint32_t slot_count;
    struct inf_run_options options; // no pinned nodes: plan->pinned has them
    bool *lowered;                  // by value: lies in 16 bits; NULL: none
    struct inf_bound_value *inputs; // values that lie in a graph input
    uint32_t input_count;
    struct inf_bound_value *outputs; // values that lie in a graph output
    uint32_t output_count;
    uint64_t buffer_bytes; // of all slots
};

// Where value `v` is in every run of the slot; nothing for inputs and outputs that are bound.
struct inf_binding inf_executable_place(const struct inf_executable *executable,
                                        const struct inf_slot *slot, uint32_t v);

#endif
