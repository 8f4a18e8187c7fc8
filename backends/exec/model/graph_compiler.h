// SPDX-License-Identifier: Apache-2.0
// Compiles the graph of a model: makes a copy of it for given input shapes, runs the passes that
// need shapes, and creates the executable for a device and the devices on which it falls back.
#ifndef INF_BACKENDS_EXEC_MODEL_GRAPH_COMPILER_H
#define INF_BACKENDS_EXEC_MODEL_GRAPH_COMPILER_H

#include "backends/exec/model/model.h"

// Nodes that stay in fp32 when the graph is compiled for one particular lower precision.
struct inf_pinned_nodes {
    uint64_t *hashes; // from inf_node_hash(); owned
    uint32_t count;
};

// Embedded in its model. Nothing but `pins` and the rules of races changes after
// inf_graph_compiler_init().
struct inf_graph_compiler {
    struct inf_graph *graph;                   // owned; after the passes that need no shapes
    struct inf_device *hosts[INF_MODEL_HOSTS]; // each a counted reference
    uint32_t host_count;
    struct inf_evaluator evaluator; // `run` is NULL if nodes cannot be evaluated
    uint32_t disabled_passes;
    bool has_history;
    struct inf_history history; // valid if has_history
    struct inf_pinned_nodes pins[INF_PRECISIONS];
    bool defers_races;               // kernels are chosen without races
    struct inf_race_gate *race_gate; // races wait for it; NULL: they do not wait
};

// Initialises a zeroed compiler as inf_model_create() describes. Takes ownership of *graph and sets
// it to NULL. The caller calls inf_graph_compiler_fini(), also after a failure.
enum inf_code inf_graph_compiler_init(struct inf_graph_compiler *compiler, struct inf_graph **graph,
                                      struct inf_device *const *hosts, uint32_t host_count,
                                      const struct inf_pass_options *options,
                                      struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Frees the graph, and drops the references to the hosts.
void inf_graph_compiler_fini(struct inf_graph_compiler *compiler) INF_MAY_BLOCK;

// Makes these nodes stay fp32, as inf_model_pin() describes.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_graph_compiler_pin(struct inf_graph_compiler *compiler,
                                     enum inf_precision precision, const uint64_t *hashes,
                                     uint32_t count, struct inf_error *err) INF_NODISCARD;

// Pins to fp32 the nodes that inf_graph_compiler_pin() pinned in `from`.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_graph_compiler_copy_pins(struct inf_graph_compiler *compiler,
                                           const struct inf_graph_compiler *from,
                                           struct inf_error *err) INF_NODISCARD;

// Copies the graph for inputs of these shapes, and runs the passes. If `buffers` is not NULL,
// builds the graph for a history in these buffers (history.h, join.h) instead; has_history must be
// true. Then *out_new_rows is the number of rows that each step appends; otherwise it is 0. The
// constants of the graph must be in memory. `cancelled` ends the work when it becomes true; NULL:
// it is not cancellable. The caller destroys *out_graph.
//
// INF_INVALID  (SHAPE_MISMATCH) a shape does not fit the graph.
// INF_UNSUPPORTED, INF_RANGE, INF_EXHAUSTED  as inf_history_build() and inf_history_join().
// INF_CANCELLED  *cancelled became true.
enum inf_code inf_graph_compiler_specialize(const struct inf_graph_compiler *compiler,
                                            const struct inf_shape *shapes,
                                            const struct inf_history_buffers *buffers,
                                            const atomic_bool *cancelled,
                                            struct inf_graph **out_graph, uint32_t *out_new_rows,
                                            struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// If *graph equals the model's graph, destroys *graph and sets it to another reference to the
// model's graph, so that the graph is in memory once. *graph must not be changed after this call.
void inf_graph_compiler_share(const struct inf_graph_compiler *compiler, struct inf_graph **graph);

// Compiles a graph from inf_graph_compiler_specialize(), and takes ownership of it. Pinned nodes
// are added to the options. The caller destroys *out_executable.
//
// INF_UNSUPPORTED, INF_EXHAUSTED  as inf_static_executable_create().
enum inf_code inf_graph_compiler_compile(const struct inf_graph_compiler *compiler,
                                         struct inf_device *device,
                                         const struct inf_run_options *options,
                                         struct inf_graph **graph,
                                         struct inf_executable **out_executable,
                                         struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
