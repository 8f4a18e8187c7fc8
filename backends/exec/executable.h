// SPDX-License-Identifier: Apache-2.0
// An executable: a plan bound to devices, ready to run. A slot is one concurrent run with its own
// memory; runs in different slots may overlap in time. Created by static_executable.h or
// dynamic/dynamic_executable.h.
#ifndef INF_BACKENDS_EXEC_EXECUTABLE_H
#define INF_BACKENDS_EXEC_EXECUTABLE_H

#include "backends/device/mapping.h"
#include "backends/exec/constants.h"
#include "backends/exec/plan.h"
#include "backends/exec/run_options.h"

struct inf_executable;

// Frees the executable. No run may be in progress. NULL is allowed.
void inf_executable_destroy(struct inf_executable **executable);

// Returns the graph that is run, after all passes. Its inputs and outputs are in the model's order.
// Output shapes that depend on values are unknown; see inf_executable_result(). Valid as long as
// the executable.
const struct inf_graph *inf_executable_graph(const struct inf_executable *executable);

// Returns the plan of the compiled nodes. Valid as long as the executable.
const struct inf_plan *inf_executable_plan(const struct inf_executable *executable);

// Returns the graph that the plan's steps refer to: the whole graph, or the compiled part if sizes
// depend on values. Valid as long as the executable.
const struct inf_graph *inf_executable_planned_graph(const struct inf_executable *executable);

// Returns the properties of device number `device` of the plan's segments.
const struct inf_device_info *inf_executable_device(const struct inf_executable *executable,
                                                    uint32_t device);

// Returns the number of rows that a run appends to each buffer of a history (history.h); 0 if the
// executable has none.
uint32_t inf_executable_new_rows(const struct inf_executable *executable);

// Returns the number of nodes that are interpreted, because they depend on values.
uint32_t inf_executable_interpreted_nodes(const struct inf_executable *executable);

// Returns the precision: fp32 unless at least one node is computed in a lower precision.
enum inf_precision inf_executable_precision(const struct inf_executable *executable);

// The memory that an executable uses.
struct inf_executable_memory {
    uint64_t const_bytes;  // constants whose bytes are needed by runs or compilation
    uint64_t weight_bytes; // packed or uploaded weights that are not shared
    uint64_t shared_bytes; // packed weights shared with other executables
    uint64_t packing_ns;   // time to pack the shared weights
    uint64_t buffer_bytes; // arenas and other memory of runs, for all slots
};

// Fills *memory, including compiled branches and loop bodies.
//
// INF_EXHAUSTED  no memory for the calculation.
enum inf_code inf_executable_memory(const struct inf_executable *executable,
                                    struct inf_executable_memory *memory,
                                    struct inf_error *err) INF_NODISCARD;

// Adds the executable's weight_bytes and buffer_bytes to *memory. Executables that contain others
// call it for each of these.
void inf_executable_add_own_memory(const struct inf_executable *executable,
                                   struct inf_executable_memory *memory);

// Adds all constants of the executable's graphs to the list, with the way in which runs use them.
// The list borrows the constants from the executable.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_executable_list_constants(const struct inf_executable *executable,
                                            struct inf_constants *constants,
                                            struct inf_error *err) INF_NODISCARD;

// Returns true if the executable can never run again because one of its devices was lost. Any
// thread.
bool inf_executable_lost(const struct inf_executable *executable);

// One run: memory for every input and output of the graph.
struct inf_execution {
    // inputs[i]: the bytes of input i, followed by INF_BLOB_SLACK_BYTES readable bytes.
    const void *const *inputs;
    // mappings[i]: a mapping that contains input i, so that the device may read the input in place.
    // NULL: no input is mapped.
    struct inf_mapping *const *mappings;
    // outputs[i]: memory for output i; NULL if the output is not wanted or its size is not known
    // yet.
    void *const *outputs;
    uint32_t slot;
    const atomic_bool *cancelled; // checked between steps; NULL: the run cannot be cancelled
    bool profile;
    atomic_bool *overflowed; // set to true if a lower precision stored NaN or infinity; may be NULL
    // Receives the name of each node before it is computed, and is cleared when the run ends; may
    // be NULL.
    struct inf_run_step *step;
    // The strings of the run: those to which handles in BYTES inputs refer, and those that the run
    // makes. Handles in BYTES outputs refer to it or to the constants of the graph. NULL: inputs
    // have no strings but empty ones, and outputs are not read.
    struct inf_string_pool *strings;
    // The run adds the cores that it used; NULL if the caller does not need them.
    struct inf_core_use *core_use;
};

// Runs on the calling thread and returns when all outputs of known size are written. Allocates
// nothing unless the executable is dynamic. Outputs must not overlap inputs.
//
// INF_EXHAUSTED  a dynamic run exceeds limits.h, or there is no memory.
// INF_CANCELLED, INF_INVALID, INF_UNAVAILABLE  as inf_program_run(); outputs are undefined.
enum inf_code inf_executable_run(struct inf_executable *executable,
                                 const struct inf_execution *execution,
                                 struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// An output whose size was known only after the run.
struct inf_result {
    enum inf_dtype dtype;
    struct inf_shape shape;
    const void *data; // valid until the slot's results are dropped or its next run begins
    size_t size_bytes;
};

// Fills *result with an output of the slot's last run, which must have succeeded. Returns false if
// the size of the output was known before the run; the output is then in execution->outputs.
bool inf_executable_result(const struct inf_executable *executable, uint32_t slot, uint32_t output,
                           struct inf_result *result) INF_NODISCARD;

// Frees the results of the slot's last run, if there are any.
void inf_executable_drop_results(struct inf_executable *executable, uint32_t slot);

// Time of one node in a profiled run.
struct inf_node_profile {
    uint32_t node; // index in inf_executable_graph()
    uint64_t time_ns;
    const char *kernel; // name of the kernel that computed the node; static
    const char *device; // name of the device; valid as long as the executable
    uint32_t threads;   // threads that computed the node; 0: not reported
    double dot_rate;    // as in struct inf_step_profile
};

// Copies at most `capacity` nodes of the slot's last profiled run. Returns the total number of
// nodes.
uint32_t inf_executable_profile(const struct inf_executable *executable, uint32_t slot,
                                struct inf_node_profile *nodes, uint32_t capacity);

#endif
