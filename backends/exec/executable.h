// SPDX-License-Identifier: Apache-2.0
// An executable: a plan bound to devices, with an arena for each slot. A slot is one concurrent
// run; runs in different slots do not meet.
#ifndef INF_BACKENDS_EXEC_EXECUTABLE_H
#define INF_BACKENDS_EXEC_EXECUTABLE_H

#include "backends/device/mapping.h"
#include "backends/exec/constants.h"
#include "backends/exec/plan.h"
#include "backends/exec/run_options.h"

struct inf_executable;

// Frees the executable; no run may go on. NULL is fine.
void inf_executable_destroy(struct inf_executable **executable);

// The graph that is run, after all passes: its inputs and outputs, in the model's order. Shapes are
// known but for outputs that only a run can tell: inf_executable_result(). Valid as long as the
// executable.
const struct inf_graph *inf_executable_graph(const struct inf_executable *executable);

// The plan of all that is compiled. Valid as long as the executable.
const struct inf_plan *inf_executable_plan(const struct inf_executable *executable);

// The graph whose nodes the plan's steps are: all of it, or where sizes hang on values, a copy of
// what is compiled. Valid as long as the executable.
const struct inf_graph *inf_executable_planned_graph(const struct inf_executable *executable);

// The facts about the device that the plan's segments with this `device` number run on.
const struct inf_device_info *inf_executable_device(const struct inf_executable *executable,
                                                    uint32_t device);

// How many nodes of the graph no plan has, since they hang on values: they are interpreted.
uint32_t inf_executable_interpreted_nodes(const struct inf_executable *executable);

// What it computes in: fp32 unless a node of it is computed in less.
enum inf_precision inf_executable_precision(const struct inf_executable *executable);

// What an executable takes.
struct inf_executable_memory {
    uint64_t const_bytes;  // constants that its runs, or compiling, need as they are
    uint64_t weight_bytes; // on the devices, packed or uploaded for it alone
    uint64_t shared_bytes; // on the devices, packed for it and others
    uint64_t packing_ns;   // what packing those took
    uint64_t buffer_bytes; // arenas and whatever else runs need, of all slots
};

// *memory = what it takes, compiled branches and loop bodies included.
//
// INF_EXHAUSTED  no memory to add it up.
enum inf_code inf_executable_memory(const struct inf_executable *executable,
                                    struct inf_executable_memory *memory,
                                    struct inf_error *err) INF_NODISCARD;

// Adds weight_bytes and buffer_bytes to those in *memory. For executables made of others.
void inf_executable_add_own_memory(const struct inf_executable *executable,
                                   struct inf_executable_memory *memory);

// Lists all constants of the executable's graphs, and how it uses them: runs read no constant that
// is listed in a form only. The list borrows from the executable.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_executable_list_constants(const struct inf_executable *executable,
                                            struct inf_constants *constants,
                                            struct inf_error *err) INF_NODISCARD;

// Whether it can never run again because one of its devices was lost. Any thread.
bool inf_executable_lost(const struct inf_executable *executable);

// One run: memory for every input and output of the graph.
struct inf_execution {
    const void *const *inputs; // by input index; each holds the input's bytes, plus
                               // INF_BLOB_SLACK_BYTES readable ones behind them
    struct inf_mapping *const
        *mappings;        // NULL, or by input index: what the input lies in for longer
                          // than the run, so that the device may read it in place
    void *const *outputs; // by output index; NULL: that output is not wanted, or its size is
                          // not known yet
    uint32_t slot;
    const atomic_bool *cancelled; // NULL, or looked at between steps
    bool profile;
    atomic_bool *overflowed; // as in struct inf_run
};

// Runs on the calling thread until all outputs of known size are written. Allocates nothing, except
// where branches, loops or shapes hang on values. Outputs may not overlap inputs.
//
// INF_EXHAUSTED  such a run takes more than limits.h allows, or memory.
// INF_CANCELLED, INF_INVALID, INF_UNAVAILABLE  as inf_program_run(); outputs hold garbage then.
enum inf_code inf_executable_run(struct inf_executable *executable,
                                 const struct inf_execution *execution,
                                 struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// An output whose size only the run could tell.
struct inf_result {
    enum inf_dtype dtype;
    struct inf_shape shape;
    const void *data; // valid until the slot's results are dropped, or its next run
    size_t size_bytes;
};

// *result = such an output of the slot's last run, which succeeded. False where the output's size
// is known before: it was written where execution->outputs said.
bool inf_executable_result(const struct inf_executable *executable, uint32_t slot, uint32_t output,
                           struct inf_result *result) INF_NODISCARD;

// Frees the results of the slot's last run. Fine where there are none.
void inf_executable_drop_results(struct inf_executable *executable, uint32_t slot);

// A node's part in the last profiled run of a slot.
struct inf_node_profile {
    uint32_t node; // index in inf_executable_graph()
    uint64_t time_ns;
    const char *kernel; // static
    const char *device; // as long as the executable
};

// Copies at most `capacity` profiles and returns how many there are.
uint32_t inf_executable_profile(const struct inf_executable *executable, uint32_t slot,
                                struct inf_node_profile *nodes, uint32_t capacity);

#endif
