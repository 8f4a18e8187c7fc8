// SPDX-License-Identifier: Apache-2.0
// Which outputs of a model feed which of its inputs, request after request: the state that a
// session keeps. A model's file says so, or the names do: "stateN" feeds "state", "h_out" feeds
// "h_in".
#ifndef INF_DAEMON_MODEL_STATE_PAIRS_H
#define INF_DAEMON_MODEL_STATE_PAIRS_H

#include <stdbool.h>

#include "backends/graph/graph.h"

// An output and an input of a graph, by their indices.
struct inf_state_pair {
    uint32_t output, input;
};

// Whether `text` is empty, or pairs as "OUTPUT=INPUT, OUTPUT=INPUT" (or with ; between them); what
// was wanted goes to `wanted` otherwise.
bool inf_state_pairs_check(const char *text, char *wanted, size_t size);

// The pairs that `text` names, or where it is empty those that follow from names: both have the
// same datatype and shapes that can agree. There is room for as many as the graph has inputs, and
// INF_LIMIT_TENSORS at most. There may be none.
//
// INF_INVALID  (BAD_PARAMETER) the text names an output or input that the graph does not have, one
//              twice, or two that cannot be the same tensor.
enum inf_code inf_state_pairs_find(const struct inf_graph *graph, const char *text,
                                   struct inf_state_pair pairs[INF_LIMIT_TENSORS],
                                   uint32_t *out_count, struct inf_error *err) INF_NODISCARD;

#endif
