// SPDX-License-Identifier: Apache-2.0
// A plan: the steps of a graph in order, the device of each segment, and the place of every value.
// A plan is built once for a graph of known shapes and is immutable afterwards, so any thread may
// read it.
#ifndef INF_BACKENDS_EXEC_PLAN_H
#define INF_BACKENDS_EXEC_PLAN_H

#include "backends/device/device.h"
#include "backends/exec/run_options.h"

// Where the bytes of a value are during a run.
enum inf_place {
    INF_PLACE_NONE,   // nowhere: no step writes or reads the value
    INF_PLACE_CONST,  // the graph's constant data
    INF_PLACE_INPUT,  // the memory bound to graph input `index`
    INF_PLACE_OUTPUT, // the memory bound to graph output `index`
    INF_PLACE_ARENA,  // the arena, at `offset`
};

struct inf_storage {
    enum inf_place place;
    uint32_t index; // index of the input or output
    size_t offset;  // offset in the arena; for an output, used by runs that do not want it
    size_t size_bytes;
};

// Consecutive steps on one device.
struct inf_plan_segment {
    uint32_t device; // index into the devices given to inf_plan_build()
    uint32_t first;  // index into inf_plan.steps of the segment's first step
    uint32_t count;
};

struct inf_plan {
    uint32_t *steps; // node indices in order, without nodes that only rename bytes
    uint32_t step_count;
    struct inf_plan_segment *segments;
    uint32_t segment_count;
    struct inf_storage *storage; // indexed by value
    uint32_t *roots;             // roots[v]: the value whose bytes value v shares; usually v
    uint32_t value_count;
    bool *pinned;                // pinned[n]: node n is computed in fp32; NULL: no node is pinned
    struct inf_readers *readers; // for each node, the nodes that read its first output
    size_t arena_bytes;          // size of the arena for the intermediates of one slot
    size_t live_max_bytes; // largest sum of bytes alive at one step: lower bound of arena_bytes
    size_t memory_bytes;   // arena_bytes plus space for outputs that a run does not want
    // Graph outputs whose bytes are elsewhere (in a constant, an input or another output) and must
    // be copied after the last step: value copy_values[i] to output copy_outputs[i].
    uint32_t *copy_values;
    uint32_t *copy_outputs;
    uint32_t copy_count;
};

// Returns segment `index` in the form that a device compiles, for one slot (concurrent run). In the
// result, no value is marked as lowered, that is, as stored in 16 bits.
struct inf_segment inf_plan_segment(const struct inf_plan *plan, uint32_t index,
                                    const struct inf_graph *graph, const struct inf_device *device,
                                    const struct inf_run_options *options);

// Plans `graph`, in which all shapes are known. Each node goes to the first of `devices` that
// supports it; the last device must be the reference device `ref`, which supports every node.
// Tensors that are not alive at the same time share bytes. Devices may measure which kernels suit
// their segments best. The caller destroys *out_plan, which keeps no pointer into `graph`.
//
// INF_UNSUPPORTED  (OPERATOR) nodes that no device supports; the text names them.
// INF_EXHAUSTED    memory, or intermediates or outputs above INF_LIMIT_ARENA_BYTES.
enum inf_code inf_plan_build(struct inf_plan **out_plan, const struct inf_graph *graph,
                             struct inf_device *const *devices, uint32_t device_count,
                             const struct inf_run_options *options,
                             struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Frees the plan. NULL is allowed.
void inf_plan_destroy(struct inf_plan **plan);

// Checks that the intermediate results of one run have at most `bytes_max` bytes; 0: no bound.
//
// INF_EXHAUSTED  (QUOTA_BYTES) they have more; the text has both numbers.
enum inf_code inf_plan_check_bytes(const struct inf_plan *plan, uint64_t bytes_max,
                                   struct inf_error *err) INF_NODISCARD;

// Fails if the intermediate results need more than `room_bytes`, what memory_max leaves; 0: no
// bound.
//
// INF_EXHAUSTED  (HOST_OOM) the text has both numbers.
enum inf_code inf_plan_check_room(const struct inf_plan *plan, uint64_t room_bytes,
                                  struct inf_error *err) INF_NODISCARD;

#endif
