// SPDX-License-Identifier: Apache-2.0
// The weights of a layers model by the names that their layers have: "layer/kernel". Files also use
// the cell of a recurrent layer ("lstm/lstm_cell/kernel") or the number of an output
// ("dense/kernel:0").
#ifndef INF_BACKENDS_IMPORT_LAYERS_WEIGHTS_H
#define INF_BACKENDS_IMPORT_LAYERS_WEIGHTS_H

#include "backends/base/arena.h"
#include "backends/import/common/weights.h"

struct inf_layers_weights;

// Makes the index of `weights`, which must outlive it. Its memory is in `arena`.
enum inf_code inf_layers_weights_create(struct inf_layers_weights **out_weights,
                                        const struct inf_weights *weights, struct inf_arena *arena,
                                        struct inf_error *err) INF_NODISCARD;

// Returns the index of a weight by the name of its layer and its own; UINT32_MAX if there is none.
uint32_t inf_layers_weights_find(const struct inf_layers_weights *weights, const char *layer,
                                 const char *name);

// Returns the weight with an index from inf_layers_weights_find().
const struct inf_weight *inf_layers_weights_at(const struct inf_layers_weights *weights,
                                               uint32_t index);

// Returns the place of the graph value of a weight: INF_VALUE_NONE until the caller sets it.
uint32_t *inf_layers_weights_value(struct inf_layers_weights *weights, uint32_t index);

#endif
