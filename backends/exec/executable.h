// SPDX-License-Identifier: Apache-2.0
// An executable: a plan bound to devices, with an arena for each slot. A slot is one concurrent run;
// runs in different slots do not meet.
#ifndef INF_BACKENDS_EXEC_EXECUTABLE_H
#define INF_BACKENDS_EXEC_EXECUTABLE_H

#include "backends/exec/plan.h"

struct inf_executable;

// Compiles `graph` (shapes known, passes run) for devices[0], with the rest as fall-backs in order;
// ref is the last. Takes over `graph`, also on failure. The number of slots is devices[0]'s.
// *out_executable is the caller's to destroy; it holds references to the devices.
//
// INF_UNSUPPORTED, INF_EXHAUSTED  as inf_plan_build() and inf_program_compile().
enum inf_code inf_executable_create(struct inf_executable **out_executable,
                                    struct inf_graph **graph, struct inf_device *const *devices,
                                    uint32_t device_count,
                                    struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Frees the executable; no run may go on. NULL is fine.
void inf_executable_destroy(struct inf_executable **executable);

// The graph that is run, after all passes: its inputs and outputs, in the model's order, with known
// shapes. Valid as long as the executable.
const struct inf_graph *inf_executable_graph(const struct inf_executable *executable);

// The plan. Valid as long as the executable.
const struct inf_plan *inf_executable_plan(const struct inf_executable *executable);

// Bytes that weights take on the devices, beside the graph's own constants.
uint64_t inf_executable_weight_bytes(const struct inf_executable *executable);

// One run: memory for every input and output of the graph.
struct inf_execution {
    const void *const *inputs; // by input index; each holds the input's bytes, plus
                               // INF_BLOB_SLACK_BYTES readable ones behind them
    void *const *outputs;      // by output index; NULL: that output is not wanted
    uint32_t slot;
    const atomic_bool *cancelled; // NULL, or looked at between steps
    bool profile;
};

// Runs on the calling thread until all outputs are written. Allocates nothing. Outputs may not
// overlap inputs.
//
// INF_CANCELLED, INF_INVALID, INF_UNAVAILABLE  as inf_program_run(); outputs hold garbage then.
enum inf_code inf_executable_run(struct inf_executable *executable,
                                 const struct inf_execution *execution,
                                 struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

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
