// SPDX-License-Identifier: Apache-2.0
// The attention and the masks of operators of com.microsoft, on queries, keys and values that are
// split into heads.
#ifndef INF_BACKENDS_IMPORT_ONNX_CONTRIB_ATTEND_H
#define INF_BACKENDS_IMPORT_ONNX_CONTRIB_ATTEND_H

#include "backends/import/onnx/scope.h"

// One attention. Tensors with heads are [batch, heads, sequence, size].
struct inf_onnx_attention {
    uint32_t q, k, v; // if k and v have fewer heads than q, several heads of q share a head of k
    float scale;      // factor of the scores; 0: use 1 / sqrt(size)
    float softcap;    // bound of the scores: softcap * tanh(score / softcap); 0: no bound
    uint32_t visible; // bool: whether a query sees a key; INF_VALUE_NONE: every query sees all keys
    double hidden;    // number that is added to the score of a key that is not visible
    uint32_t bias;    // value that is added to the scores; INF_VALUE_NONE: absent
    uint32_t sinks;   // [heads]: one more score that has no value; INF_VALUE_NONE: absent
};

// Adds nodes that compute the attention. The result is [batch, sequence, heads * size].
uint32_t inf_onnx_attend(struct inf_onnx_scope *s, const struct inf_onnx_attention *attention);

// Adds nodes that compute from an integer mask which keys are visible, as a bool of rank 4. The
// mask is one of:
//   [batch]                  the end of the visible keys of each row, which start at key 0
//   [2 * batch]              the ends of the visible keys of all rows, then their starts
//   [batch, keys]            above 0 for a visible key
//   [batch, sequence, keys]  above 0 for a key that is visible to a query
uint32_t inf_onnx_key_mask(struct inf_onnx_scope *s, const struct inf_onnx_attention *attention,
                           uint32_t mask);

// Adds nodes that compute which keys are not later than a query, as a bool [queries, keys]. The
// queries are the last positions of the keys, so the last query sees all keys.
uint32_t inf_onnx_causal_mask(struct inf_onnx_scope *s, const struct inf_onnx_attention *attention);

#endif
