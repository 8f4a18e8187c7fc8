// SPDX-License-Identifier: Apache-2.0
// Layers that others are made of.
#ifndef INF_BACKENDS_IMPORT_LAYERS_PARTS_H
#define INF_BACKENDS_IMPORT_LAYERS_PARTS_H

#include "backends/import/layers/lower.h"

// One attention with several heads: what looks at what.
struct inf_layers_attention {
    uint32_t query, key, value; // [batch,time,features] each
    uint32_t mask;   // f32, as inf_layers_mask_add() makes it; INF_VALUE_NONE: all is seen
    int32_t key_dim; // of one head
    bool use_bias;
};

// Adds softmax(query key / sqrt(key_dim)) value for each head, and the product that joins the
// heads. Weights are those of the scope: query/kernel, key/kernel, value/kernel,
// attention_output/kernel, and a bias to each. What a mask hides has -1e9 added to its score, as
// Keras does.
enum inf_code inf_layers_attend(struct inf_layers_scope *scope,
                                const struct inf_layers_attention *attention, uint32_t *out_value,
                                struct inf_error *err) INF_NODISCARD;

// Which axis of [batch,queries,values] a mask lacks.
enum inf_layers_mask_axis {
    INF_LAYERS_MASK_WHOLE,   // none
    INF_LAYERS_MASK_VALUES,  // says which values are seen: [batch,values]
    INF_LAYERS_MASK_QUERIES, // says which queries see: [batch,queries]
};

// Makes *mask, INF_VALUE_NONE at first, hide what `other` hides too: 0 is hidden, 1 is seen.
// INF_VALUE_NONE in `other` hides nothing.
enum inf_code inf_layers_mask_add(struct inf_layers_scope *scope, uint32_t other,
                                  enum inf_layers_mask_axis axis, uint32_t *mask,
                                  struct inf_error *err) INF_NODISCARD;

// As inf_layers_mask_add(), where a query sees no value behind its own place.
enum inf_code inf_layers_mask_add_causal(struct inf_layers_scope *scope, uint32_t query,
                                         uint32_t value, uint32_t *mask,
                                         struct inf_error *err) INF_NODISCARD;

// Adds x normalised along its last axis, times the scope's weight "gamma", plus "beta".
enum inf_code inf_layers_normalize_last(struct inf_layers_scope *scope, float epsilon, uint32_t x,
                                        uint32_t *out_value, struct inf_error *err) INF_NODISCARD;

#endif
