// SPDX-License-Identifier: Apache-2.0
// A model that is ready to run: the graph after the passes that need no shapes, and executables for
// the input shapes of requests. If a device has too many executables, the least recently used one
// is freed. Models are reference-counted. Any thread except the event loop, unless stated
// otherwise.
#ifndef INF_BACKENDS_EXEC_MODEL_MODEL_H
#define INF_BACKENDS_EXEC_MODEL_MODEL_H

#include "backends/exec/constants.h"
#include "backends/exec/executable.h"
#include "backends/exec/model/arena_budget.h"
#include "backends/exec/run_options.h"
#include "backends/graph/history/history.h"
#include "backends/graph/pass/pass.h"

// The most devices on which a model may fall back.
#define INF_MODEL_HOSTS 4

struct inf_model;

// Takes ownership of `graph` (also on failure), runs the passes unless options->already_run is set,
// and keeps the result. Constants of the graph may be evicted if they have a form. A node that the
// device of an executable cannot run goes to the first of the following `hosts` that can run it.
// There are `host_count` hosts, at most INF_MODEL_HOSTS, the best first; the last host runs
// every node. The caller owns the only reference.
enum inf_code inf_model_create(struct inf_model **out_model, struct inf_graph **graph,
                               struct inf_device *const *hosts, uint32_t host_count,
                               const struct inf_pass_options *options,
                               struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Takes another reference. Any thread.
struct inf_model *inf_model_ref(struct inf_model *model) INF_NODISCARD;

// Drops a reference and sets the pointer to NULL. Dropping the last reference frees the model,
// which may take long, so it must not happen on the event loop. NULL is allowed.
void inf_model_unref(struct inf_model **model) INF_MAY_BLOCK;

// Returns the graph with the model's inputs, outputs and nodes; dimensions may be unknown. Valid as
// long as the model. The bytes of large constants may be absent after inf_model_allow_eviction().
// Any thread.
const struct inf_graph *inf_model_graph(const struct inf_model *model);

// Copies the model's graph and all its constants. The caller destroys the copy.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_model_copy_graph(struct inf_model *model, struct inf_graph **out_graph,
                                   struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// One executable of a model, as it is kept for the next load.
struct inf_model_kept_class {
    const struct inf_device *device;
    struct inf_run_options options;
    const struct inf_graph *graph; // as inf_model_specialize_graph() makes it
    bool reads_values;             // shapes or branches depend on values that only a run knows
};

// What a model can keep for its next load. All is borrowed.
struct inf_model_kept {
    const struct inf_graph *graph;
    const struct inf_model_kept_class *classes; // executables that were not compiled for a request
    uint32_t class_count;
    // `uses` has each use of a constant, `constants` has them merged to one use for each constant.
    // Constants that may be evicted may have no bytes; all others have theirs.
    const struct inf_constants *uses, *constants;
};

// Calls use(context, kept) with what the model can keep. Nothing of it is freed or changed during
// the call.
//
// INF_EXHAUSTED  no memory for the lists in `kept`. `use` was not called.
enum inf_code inf_model_lend(struct inf_model *model,
                             void (*use)(void *context, const struct inf_model_kept *kept),
                             void *context, struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Gives a model the graph of an executable that an earlier load kept: the first compilation for
// `device`, `options` and the shapes of the graph's inputs uses it instead of running the passes,
// and does not restore evicted constants. Takes ownership of the graph, also on failure. Only while
// no other thread uses the model; what was not used is freed by inf_model_allow_eviction().
//
// INF_EXHAUSTED  memory.
enum inf_code inf_model_offer(struct inf_model *model, const struct inf_device *device,
                              const struct inf_run_options *options, struct inf_graph **graph,
                              struct inf_error *err) INF_NODISCARD;

// Returns the executable for inputs of these shapes on `device`, and compiles it if necessary. The
// caller releases it with inf_model_release().
//
// INF_INVALID  (SHAPE_MISMATCH) a shape does not fit the model.
// INF_UNSUPPORTED, INF_EXHAUSTED  as inf_static_executable_create().
// INF_CANCELLED  the flag of the options or of the model became true.
enum inf_code inf_model_acquire(struct inf_model *model, struct inf_device *device,
                                const struct inf_shape *shapes,
                                struct inf_executable **out_executable,
                                struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Returns the executable for inputs of these shapes on `device`, like inf_model_acquire(), but with
// the given precision and number of threads. Nodes pinned by inf_model_pin() stay fp32. A model
// whose sizes depend on values always computes in fp32.
enum inf_code inf_model_acquire_with(struct inf_model *model, struct inf_device *device,
                                     const struct inf_run_options *options,
                                     const struct inf_shape *shapes,
                                     struct inf_executable **out_executable,
                                     struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Returns how the inputs of the model depend on a history; NULL if it has none that is understood.
// Valid as long as the model. Any thread.
const struct inf_history *inf_model_history(const struct inf_model *model);

// Returns the executable for a history in these buffers, like inf_model_acquire_with(). `shapes`
// are those of one session for an empty history; inf_history_build() describes the inputs, and
// inf_history_join() those of several sessions. inf_executable_new_rows() tells how many rows a
// step appends: the rows in use before the run and the new ones must fit the buffers.
//
// INF_UNSUPPORTED  the model cannot be computed in this way with so many rows, on this device, or
//                  for several sessions.
enum inf_code inf_model_acquire_history(struct inf_model *model, struct inf_device *device,
                                        const struct inf_run_options *options,
                                        const struct inf_shape *shapes,
                                        struct inf_history_buffers buffers,
                                        struct inf_executable **out_executable,
                                        struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Returns the executable that inf_model_acquire_history() returns for several sessions, if it is
// compiled already. Never waits. *out_executable is NULL after a failure. Any thread.
//
// INF_NOT_FOUND    it is not compiled, and inf_model_acquire_history() would compile it.
// INF_UNSUPPORTED  inf_model_acquire_history() refuses it, its intermediate results exceed the
//                  bound of a request, or a compilation lacked memory a short time ago.
enum inf_code inf_model_find_joined(struct inf_model *model, struct inf_device *device,
                                    const struct inf_run_options *options,
                                    const struct inf_shape *shapes,
                                    struct inf_history_buffers buffers,
                                    struct inf_executable **out_executable) INF_NODISCARD;

// Sets the run options that inf_model_acquire() uses for `device`. The pointer is only compared,
// never dereferenced. All other devices get the defaults: fp32, all threads. Any thread.
void inf_model_set_default_options(struct inf_model *model, const struct inf_device *device,
                                   const struct inf_run_options *options);

// Returns the run options that inf_model_acquire() uses for `device`. Any thread.
struct inf_run_options inf_model_default_options(struct inf_model *model,
                                                 const struct inf_device *device);

// Sets a flag that cancels all later compilations of the model that name no flag of their own in
// their run options; NULL: none. The flag must be valid until it is replaced. Any thread.
void inf_model_set_cancelled(struct inf_model *model, const atomic_bool *cancelled);

// Makes later compilations choose kernels without races: by the winners that are known then, and by
// rules. Graphs whose sizes depend on values are not affected: their kernels race. Only before
// other threads use the model.
void inf_model_defer_races(struct inf_model *model);

// Makes the timed runs of races in later compilations wait for `gate`. Only before other threads
// use the model. The gate outlives the model.
void inf_model_set_race_gate(struct inf_model *model, struct inf_race_gate *gate);

// Bounds the executables that requests make (run options with a user). Call it before requests use
// the model. The budget outlives the model.
void inf_model_set_arena_budget(struct inf_model *model, struct inf_arena_budget *budget);

// Returns true if an executable had to be compiled from the model's own graph, because no offered
// graph fitted. Only before other threads use the model.
bool inf_model_outgrew_offers(const struct inf_model *model);

// Makes these nodes (hashes from inf_node_hash()) stay fp32 if the model is compiled for
// `precision`. The hashes are copied. Call it before the first executable of that precision is
// acquired.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_model_pin(struct inf_model *model, enum inf_precision precision,
                            const uint64_t *pinned, uint32_t count,
                            struct inf_error *err) INF_NODISCARD;

// Pins to fp32 the nodes that inf_model_pin() pinned in `from`, a model of the same graph whose
// load has ended. Call it before the first executable is acquired.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_model_copy_pins(struct inf_model *model, const struct inf_model *from,
                                  struct inf_error *err) INF_NODISCARD;

// Releases an executable from inf_model_acquire(), and sets the pointer to NULL.
void inf_model_release(struct inf_model *model, struct inf_executable **executable);

// Allows the bytes of a constant to be evicted if every executable uses the constant in packed
// form. The bytes are restored when other shapes are compiled. Call it after all expected shapes
// are compiled.
void inf_model_allow_eviction(struct inf_model *model) INF_MAY_BLOCK;

// Counts the memory of the model's constants for `device`, instead of the device for which it was
// counted before. NULL: it is counted for no device.
void inf_model_charge(struct inf_model *model, struct inf_device *device);

// Returns the graph that is compiled for inputs of these shapes, after all passes. The caller
// destroys *out_graph. It shares the model's constants, which have their bytes until
// inf_model_allow_eviction().
//
// INF_INVALID  (SHAPE_MISMATCH) a shape does not fit the model.
enum inf_code inf_model_specialize_graph(struct inf_model *model, const struct inf_shape *shapes,
                                         struct inf_graph **out_graph,
                                         struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// A request for a private executable, in addition to those that serve requests.
struct inf_private_request {
    struct inf_device *device;
    const struct inf_run_options *options; // NULL: the options that inf_model_acquire() uses
    const struct inf_shape *shapes;        // one for each input
    // Buffers of the history that the executable is compiled for, as by
    // inf_model_acquire_history(); NULL: the inputs are as the model has them.
    const struct inf_history_buffers *buffers;
    // Makes every value that a node computes an output, after the outputs of the model. Nothing is
    // fused in this case, so that all values can be read after a run.
    bool keep;
};

// Compiles an executable that only the caller uses, and that the caller frees with
// inf_model_discard_private(). This allows inspecting a model while other threads run it.
//
// INF_UNSUPPORTED  (FEATURE) `keep` is set, but sizes of the model depend on values.
// INF_INVALID, INF_UNSUPPORTED, INF_EXHAUSTED  as inf_model_acquire().
enum inf_code inf_model_compile_private(struct inf_model *model,
                                        const struct inf_private_request *request,
                                        struct inf_executable **out_executable,
                                        struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Frees an executable from inf_model_compile_private(), and sets the pointer to NULL. NULL is
// allowed.
void inf_model_discard_private(struct inf_model *model,
                               struct inf_executable **executable) INF_MAY_BLOCK;

// Releases an executable like inf_model_release(), and frees it unless the load made it or another
// thread holds it: for one that is not likely to be used again. `*executable` is not NULL.
void inf_model_discard(struct inf_model *model, struct inf_executable **executable) INF_MAY_BLOCK;

// Frees the executable that inf_model_acquire() returns for these shapes on `device`, if it exists
// and no thread holds it.
void inf_model_drop(struct inf_model *model, struct inf_device *device,
                    const struct inf_shape *shapes) INF_MAY_BLOCK;

// Frees the executable for these shapes and run options on `device`, if it exists and no thread
// holds it.
void inf_model_drop_with(struct inf_model *model, struct inf_device *device,
                         const struct inf_run_options *options,
                         const struct inf_shape *shapes) INF_MAY_BLOCK;

// Frees the executable that inf_model_acquire_history() returns for these arguments, if it exists
// and no thread holds it.
void inf_model_drop_history(struct inf_model *model, struct inf_device *device,
                            const struct inf_run_options *options, const struct inf_shape *shapes,
                            struct inf_history_buffers buffers) INF_MAY_BLOCK;

// Returns the bytes of weights and arenas of the executables that the model keeps on `device`. Any
// thread.
uint64_t inf_model_device_bytes(struct inf_model *model, const struct inf_device *device);

// The memory of a model.
struct inf_model_memory {
    // Constants of its graphs that are in memory; shared constants count once.
    uint64_t const_bytes;
    uint32_t constants;    // constants of the graph, in memory or not
    uint32_t const_blobs;  // number of blobs that const_bytes counts
    uint64_t weight_bytes; // packed and uploaded weights; shared weights count once
    uint64_t packing_ns;   // time to pack the shared part of weight_bytes
    uint64_t arena_bytes;  // arenas of its executables, for all slots
    uint32_t executables;  // number of executables that the model keeps
};

// Returns the memory of the model. Any thread.
struct inf_model_memory inf_model_memory(struct inf_model *model);

#endif
