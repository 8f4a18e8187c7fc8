// SPDX-License-Identifier: Apache-2.0
// A model made ready to run: the graph after the passes that need no shapes, and executables for
// the shapes that requests bring, per device, the least recently used of which goes when there are
// too many. Shared by reference; any thread but the loop, except where a line says otherwise.
#ifndef INF_BACKENDS_EXEC_MODEL_MODEL_H
#define INF_BACKENDS_EXEC_MODEL_MODEL_H

#include "backends/exec/executable.h"
#include "backends/exec/run_options.h"
#include "backends/graph/pass/pass.h"

// Devices that a model may fall back on.
#define INF_MODEL_HOSTS 4

struct inf_model;

// Takes over `graph` (also on failure), runs the passes and keeps the result. Nodes that the device
// of an executable cannot run fall to the first of `hosts` behind it that can: `host_count`
// devices, at most INF_MODEL_HOSTS, best first; the last runs everything. One reference, the
// caller's.
enum inf_code inf_model_create(struct inf_model **out_model, struct inf_graph **graph,
                               struct inf_device *const *hosts, uint32_t host_count,
                               const struct inf_pass_options *options,
                               struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Another reference. Any thread.
struct inf_model *inf_model_ref(struct inf_model *model) INF_NODISCARD;

// Drops a reference and sets the pointer NULL; the last one frees the model, which may take time:
// not on the loop. NULL is fine.
void inf_model_unref(struct inf_model **model) INF_MAY_BLOCK;

// The model's inputs, outputs and nodes; dimensions may be unknown. Any thread, valid as long as
// the model. The bytes of large constants may be absent once the model is settled.
const struct inf_graph *inf_model_graph(const struct inf_model *model);

// A copy of the model's graph with constants of its own, all of them whole, for the caller to
// destroy.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_model_copy_graph(struct inf_model *model, struct inf_graph **out_graph,
                                   struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// The executable for inputs of these shapes on `device`, compiled now if it was not yet. The caller
// gives it back with inf_model_release().
//
// INF_INVALID  (SHAPE_MISMATCH) a shape does not fit the model.
// INF_UNSUPPORTED, INF_EXHAUSTED  as inf_static_executable_create().
enum inf_code inf_model_acquire(struct inf_model *model, struct inf_device *device,
                                const struct inf_shape *shapes,
                                struct inf_executable **out_executable,
                                struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// As inf_model_acquire(), in this precision and with so many threads; what stays fp32 is what
// inf_model_pin() said. A model whose sizes depend on values always computes in fp32.
enum inf_code inf_model_acquire_with(struct inf_model *model, struct inf_device *device,
                                     const struct inf_run_options *options,
                                     const struct inf_shape *shapes,
                                     struct inf_executable **out_executable,
                                     struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Sets the run options that inf_model_acquire() uses for `device`; the pointer is compared, not
// followed. Every other device gets the defaults: fp32, all threads. Any thread.
void inf_model_set_default_options(struct inf_model *model, const struct inf_device *device,
                                   const struct inf_run_options *options);

// What inf_model_acquire() for `device` means. Any thread.
struct inf_run_options inf_model_default_options(struct inf_model *model,
                                                 const struct inf_device *device);

// From now on these nodes (inf_node_hash()) stay fp32 where the model is compiled for `precision`.
// Copies them. Before the first of that precision is acquired.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_model_pin(struct inf_model *model, enum inf_precision precision,
                            const uint64_t *pinned, uint32_t count,
                            struct inf_error *err) INF_NODISCARD;

// Gives back what inf_model_acquire() gave, and sets the pointer NULL.
void inf_model_release(struct inf_model *model, struct inf_executable **executable);

// Allows the bytes of constants to be evicted if every executable uses them in a packed form. They
// are computed again when other shapes are compiled. Call it once all expected shapes are compiled.
void inf_model_allow_eviction(struct inf_model *model) INF_MAY_BLOCK;

// Counts the model's constants as held because of `device`, instead of where they were counted
// before. NULL: nowhere.
void inf_model_charge(struct inf_model *model, struct inf_device *device);

// The graph that is compiled for inputs of these shapes: the model's after all passes. *out_graph
// is the caller's to destroy; it shares the model's constants, which are whole until
// inf_model_allow_eviction().
//
// INF_INVALID  (SHAPE_MISMATCH) a shape does not fit the model.
enum inf_code inf_model_specialize_graph(struct inf_model *model, const struct inf_shape *shapes,
                                         struct inf_graph **out_graph,
                                         struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// What is compiled beside what serves.
struct inf_private_request {
    struct inf_device *device;
    const struct inf_run_options *options; // NULL: that of inf_model_acquire()
    const struct inf_shape *shapes;        // one an input
    // Makes every value that a node computes an output, after the outputs of the model. Nothing is
    // fused then, so that all values can be read after a run.
    bool keep;
};

// Compiles an executable that is the caller's alone, to give to inf_model_discard_private(): to
// look at how the model runs while others run it.
//
// INF_UNSUPPORTED  (FEATURE) `keep` is set, but sizes of the model depend on values.
// INF_INVALID, INF_UNSUPPORTED, INF_EXHAUSTED  as inf_model_acquire().
enum inf_code inf_model_compile_private(struct inf_model *model,
                                        const struct inf_private_request *request,
                                        struct inf_executable **out_executable,
                                        struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Frees what inf_model_compile_private() made, and sets the pointer NULL. NULL is fine.
void inf_model_discard_private(struct inf_model *model,
                               struct inf_executable **executable) INF_MAY_BLOCK;

// Frees the executable that inf_model_acquire() returns for these shapes on `device`, if it exists
// and no thread holds it.
void inf_model_drop(struct inf_model *model, struct inf_device *device,
                    const struct inf_shape *shapes) INF_MAY_BLOCK;

// As inf_model_drop(), of inf_model_acquire_with().
void inf_model_drop_with(struct inf_model *model, struct inf_device *device,
                         const struct inf_run_options *options,
                         const struct inf_shape *shapes) INF_MAY_BLOCK;

// Bytes of weights and arenas of the executables that the model keeps on `device`. Any thread.
uint64_t inf_model_device_bytes(struct inf_model *model, const struct inf_device *device);

// What the model takes.
struct inf_model_memory {
    uint64_t const_bytes;  // constants of its graphs, as they are in memory; what several share
                           // counts once
    uint32_t constants;    // constants of the graph, in memory or not
    uint32_t const_blobs;  // that const_bytes are in
    uint64_t weight_bytes; // packed and uploaded weights; what several share counts once
    uint64_t packing_ns;   // what packing the part of weight_bytes took that executables share
    uint64_t arena_bytes;  // arenas of its executables, all slots
    uint32_t executables;  // kept now
};

// Adds it up. Any thread.
struct inf_model_memory inf_model_memory(struct inf_model *model);

#endif
