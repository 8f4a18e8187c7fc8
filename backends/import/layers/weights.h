// SPDX-License-Identifier: Apache-2.0
// The weights of a layers model by the names their layers have: "layer/kernel". Files spell them in
// more ways: with the cell of a recurrent layer ("lstm/lstm_cell/kernel"), or with an output number
// ("dense/kernel:0").
#ifndef INF_BACKENDS_IMPORT_LAYERS_WEIGHTS_H
#define INF_BACKENDS_IMPORT_LAYERS_WEIGHTS_H

#include "backends/base/arena.h"
#include "backends/import/common/weights.h"

struct inf_layers_weights;

// Makes the names of `weights`, which must outlive them; the memory is `arena`'s.
enum inf_code inf_layers_weights_create(struct inf_layers_weights **out_weights,
                                        const struct inf_weights *weights, struct inf_arena *arena,
                                        struct inf_error *err) INF_NODISCARD;

// The index of a weight by its layer's name and its own; UINT32_MAX where there is none.
uint32_t inf_layers_weights_find(const struct inf_layers_weights *weights, const char *layer,
                                 const char *name);

// The weight with an index that inf_layers_weights_find() gave.
const struct inf_weight *inf_layers_weights_at(const struct inf_layers_weights *weights,
                                               uint32_t index);

// The value that a weight has become in the graph: INF_VALUE_NONE at first, then what is put there.
uint32_t *inf_layers_weights_value(struct inf_layers_weights *weights, uint32_t index);

#endif
