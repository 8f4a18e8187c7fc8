// SPDX-License-Identifier: Apache-2.0
// Building blocks of layers that other layers use: attention with its masks, and normalisation.
#ifndef INF_BACKENDS_IMPORT_LAYERS_PARTS_H
#define INF_BACKENDS_IMPORT_LAYERS_PARTS_H

#include "backends/import/layers/lower.h"

// The operands of an attention with several heads.
struct inf_layers_attention {
    uint32_t query, key, value; // [batch,time,features] each
    uint32_t mask;   // f32, from inf_layers_mask_add(); INF_VALUE_NONE: nothing is hidden
    int32_t key_dim; // size of the key in each head
    bool use_bias;
};

// Adds softmax(query key / sqrt(key_dim)) value for each head, and the product that joins the
// heads. The weights are taken from the scope: query/kernel, key/kernel, value/kernel,
// attention_output/kernel, and a bias for each. The scores of hidden positions are lowered by 1e9,
// as in Keras.
enum inf_code inf_layers_attend(struct inf_layers_scope *scope,
                                const struct inf_layers_attention *attention, uint32_t *out_value,
                                struct inf_error *err) INF_NODISCARD;

// Which axes a mask has, out of [batch,queries,values].
enum inf_layers_mask_axis {
    INF_LAYERS_MASK_WHOLE,   // a mask with all axes, [batch,queries,values]
    INF_LAYERS_MASK_VALUES,  // a mask of values, [batch,values]
    INF_LAYERS_MASK_QUERIES, // a mask of queries, [batch,queries]
};

// Combines *mask (INF_VALUE_NONE at first) with `other`. A position is visible if both masks are 1.
// If `other` is INF_VALUE_NONE, *mask is unchanged.
enum inf_code inf_layers_mask_add(struct inf_layers_scope *scope, uint32_t other,
                                  enum inf_layers_mask_axis axis, uint32_t *mask,
                                  struct inf_error *err) INF_NODISCARD;

// Combines *mask with a causal mask, in which a query sees no value after its own position. *mask
// is INF_VALUE_NONE if there is no mask yet.
enum inf_code inf_layers_mask_add_causal(struct inf_layers_scope *scope, uint32_t query,
                                         uint32_t value, uint32_t *mask,
                                         struct inf_error *err) INF_NODISCARD;

// Adds x normalised along its last axis, times the scope's weight "gamma", plus its weight "beta".
enum inf_code inf_layers_normalize_last(struct inf_layers_scope *scope, float epsilon, uint32_t x,
                                        uint32_t *out_value, struct inf_error *err) INF_NODISCARD;

#endif
