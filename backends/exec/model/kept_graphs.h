// SPDX-License-Identifier: Apache-2.0
// The graphs that are kept from one load of a model to the next: offers, which are graphs that the
// load before kept and from which nothing was compiled yet, and the list of those that this load
// can keep.
#ifndef INF_BACKENDS_EXEC_MODEL_KEPT_GRAPHS_H
#define INF_BACKENDS_EXEC_MODEL_KEPT_GRAPHS_H

#include "backends/exec/model/model.h"
#include "backends/exec/model/shape_class.h"

struct inf_graph_offer;

// Used by one thread at a time. A zeroed struct has no offers.
struct inf_graph_offers {
    struct inf_graph_offer *first;
};

// Adds the graph of an executable for `device`, `options` and the shapes of the graph's inputs.
// Sets *graph to NULL; if it fails, the caller still owns the graph. The pointer to the device is
// only compared, never dereferenced.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_graph_offers_add(struct inf_graph_offers *offers, const struct inf_device *device,
                                   const struct inf_run_options *options, struct inf_graph **graph,
                                   struct inf_error *err) INF_NODISCARD;

// Removes the graph for a shape class, and returns it; the caller owns it. NULL: there is none.
struct inf_graph *inf_graph_offers_take(struct inf_graph_offers *offers,
                                        const struct inf_shape_class *class);

// Gives the constants of a graph that was an offer their bytes, if no device reads these constants
// in packed form: outputs of the graph, and operands of nodes that do not multiply. A load keeps no
// graph in which these bytes are missing, but a forged plan may have one.
//
// INF_EXHAUSTED  (HOST_OOM) no memory for the bytes.
enum inf_code inf_graph_offers_restore(const struct inf_graph *graph,
                                       struct inf_error *err) INF_NODISCARD;

// Frees all offers.
void inf_graph_offers_fini(struct inf_graph_offers *offers);

// Lists the pinned executables that can be kept, with graphs that are borrowed from them. The
// caller frees *out_classes with free().
//
// INF_EXHAUSTED  memory.
enum inf_code inf_kept_classes_list(struct inf_shape_classes *classes,
                                    struct inf_model_kept_class **out_classes, uint32_t *out_count,
                                    struct inf_error *err) INF_NODISCARD;

#endif
