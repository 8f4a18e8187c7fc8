// SPDX-License-Identifier: Apache-2.0
// A plan: where every intermediate tensor of a graph lies in one arena, which values share storage,
// and which device runs which stretch of the nodes. Made once for a graph of known shapes;
// immutable then, so any thread may read it.
#ifndef INF_BACKENDS_EXEC_PLAN_H
#define INF_BACKENDS_EXEC_PLAN_H

#include "backends/device/device.h"
#include "backends/exec/run_options.h"

// Where a value's bytes are during a run.
enum inf_place {
    INF_PLACE_NONE,   // nowhere: no step writes or reads the value
    INF_PLACE_CONST,  // the graph's constant data
    INF_PLACE_INPUT,  // the memory bound to graph input `index`
    INF_PLACE_OUTPUT, // the memory bound to graph output `index`
    INF_PLACE_ARENA,  // the arena, from `offset`
};

struct inf_storage {
    enum inf_place place;
    uint32_t index; // of the input or output
    size_t offset;  // in the arena; of an output: where it lies if nobody wants it
    size_t size_bytes;
};

// A stretch of consecutive steps on one device.
struct inf_plan_segment {
    uint32_t device; // index into the devices given to inf_plan_build()
    uint32_t first;  // index into inf_plan.steps
    uint32_t count;
};

struct inf_plan {
    uint32_t *steps; // node indices to run, in order; nodes that only rename bytes are left out
    uint32_t step_count;
    struct inf_plan_segment *segments;
    uint32_t segment_count;
    struct inf_storage *storage; // by value index
    uint32_t *roots; // by value index: the value whose bytes it renames, itself for most
    uint32_t value_count;
    bool *pinned;          // by node: it is computed in fp32; NULL: no node is pinned
    uint32_t *readers;     // by node index: as inf_graph_sole_readers() has it
    size_t arena_bytes;    // that the intermediates need in one slot
    size_t live_max_bytes; // most bytes alive at once: the lower bound of arena_bytes
    size_t memory_bytes;   // arena_bytes, or more where outputs that nobody wants need it
    // Graph outputs whose bytes lie elsewhere (a constant, an input, another output) and must be
    // copied after the last step: copy_values[i] is the value, outputs[i] the output's index.
    uint32_t *copy_values;
    uint32_t *copy_outputs;
    uint32_t copy_count;
};

// Stretch `index` of the plan of `graph` as the device compiles it, of one slot and nothing
// lowered.
struct inf_segment inf_plan_segment(const struct inf_plan *plan, uint32_t index,
                                    const struct inf_graph *graph, const struct inf_device *device,
                                    const struct inf_run_options *options);

// Plans `graph`, all of whose shapes are known. Each node goes to the first of `devices` that
// supports it; the last one must support everything (ref). Tensors whose lifetimes do not meet
// share bytes; reshapes share with what they reshape. Devices may measure how they compute best
// what they get. *out_plan is the caller's to destroy and keeps no pointer into `graph`.
//
// INF_UNSUPPORTED  (OPERATOR) nodes that no device supports; the text names them.
// INF_EXHAUSTED    memory, or intermediates or outputs above INF_LIMIT_ARENA_BYTES.
enum inf_code inf_plan_build(struct inf_plan **out_plan, const struct inf_graph *graph,
                             struct inf_device *const *devices, uint32_t device_count,
                             const struct inf_run_options *options,
                             struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Frees the plan. NULL is fine.
void inf_plan_destroy(struct inf_plan **plan);

#endif
