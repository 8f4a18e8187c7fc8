// SPDX-License-Identifier: Apache-2.0
// The members of a model, and how its files find and compile an executable. Private to the files
// that define the functions of model.h.
#ifndef INF_BACKENDS_EXEC_MODEL_MODEL_STATE_H
#define INF_BACKENDS_EXEC_MODEL_MODEL_STATE_H

#include "backends/exec/model/graph_compiler.h"
#include "backends/exec/model/history_refusals.h"
#include "backends/exec/model/kept_graphs.h"
#include "backends/exec/model/model.h"
#include "backends/exec/model/shape_class.h"
#include "backends/exec/model/weight_residency.h"

struct inf_model {
    _Atomic size_t references;
    struct inf_graph_compiler compiler;
    uint32_t constants; // number of constants of the graph
    // Only used by the load, before other threads use the model.
    struct inf_graph_offers offers;
    bool outgrew_offers; // an executable was compiled without an offer
    struct inf_history_refusals refusals;
    struct inf_weight_residency residency;
    struct inf_shape_classes classes;
    struct inf_mutex mutex; // guards the following members
    // Device to which the run options `preferred` apply; NULL: none; only compared, never
    // dereferenced.
    const struct inf_device *preferred_device;
    struct inf_run_options preferred;
    // Cancels compilations that name no flag of their own; NULL: none.
    const atomic_bool *cancelled;
};

// Returns the executable for inputs of these shapes and a history in these buffers, and compiles it
// if necessary. If `buffers` is zeroed, the inputs are as the model has them. The caller releases
// the executable with inf_model_release().
//
// The failures are those of inf_model_acquire(), and INF_UNSUPPORTED and INF_RANGE as
// inf_graph_compiler_specialize().
enum inf_code inf_model_acquire_class(struct inf_model *model, struct inf_device *device,
                                      const struct inf_run_options *options,
                                      const struct inf_shape *shapes,
                                      struct inf_history_buffers buffers,
                                      struct inf_executable **out_executable,
                                      struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Returns the executable like inf_model_acquire_class(), but only if it is compiled. Never waits.
//
// INF_NOT_FOUND  there is none, or a thread is compiling it.
// INF_EXHAUSTED  as inf_plan_check_bytes(): the bound of a request was set after the compilation.
enum inf_code inf_model_find_class(struct inf_model *model, struct inf_device *device,
                                   const struct inf_run_options *options,
                                   const struct inf_shape *shapes,
                                   struct inf_history_buffers buffers,
                                   struct inf_executable **out_executable) INF_NODISCARD;

#endif
