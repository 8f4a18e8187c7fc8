// SPDX-License-Identifier: Apache-2.0
// The weights of a layers model, looked up as "layer/kernel". Names in files may also contain the
// cell of a recurrent layer ("lstm/lstm_cell/kernel") or the number of an output
// ("dense/kernel:0").
#ifndef INF_BACKENDS_IMPORT_LAYERS_WEIGHTS_H
#define INF_BACKENDS_IMPORT_LAYERS_WEIGHTS_H

#include "backends/base/arena.h"
#include "backends/import/common/weights.h"

struct inf_layers_weights;

// Creates an index by name of the weights in `weights`. `weights` must outlive the index. The
// memory of the index comes from `arena`.
enum inf_code inf_layers_weights_create(struct inf_layers_weights **out_weights,
                                        const struct inf_weights *weights, struct inf_arena *arena,
                                        struct inf_error *err) INF_NODISCARD;

// Returns the index of a weight, found by the name of its layer and its own name; UINT32_MAX if
// there is none.
uint32_t inf_layers_weights_find(const struct inf_layers_weights *weights, const char *layer,
                                 const char *name);

// Returns the weight with an index from inf_layers_weights_find().
const struct inf_weight *inf_layers_weights_at(const struct inf_layers_weights *weights,
                                               uint32_t index);

// Returns a pointer to the graph value of a weight, which is INF_VALUE_NONE until the caller sets
// it.
uint32_t *inf_layers_weights_value(struct inf_layers_weights *weights, uint32_t index);

#endif
