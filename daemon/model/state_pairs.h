// SPDX-License-Identifier: Apache-2.0
// Which output of a model is which input of the next request: the state that a session keeps. The
// settings of the model name the pairs, or they are guessed from names: "stateN" feeds "state", and
// "h_out" feeds "h_in".
#ifndef INF_DAEMON_MODEL_STATE_PAIRS_H
#define INF_DAEMON_MODEL_STATE_PAIRS_H

#include <stdbool.h>

#include "backends/graph/graph.h"

// Indices of an output and an input of a graph.
struct inf_state_pair {
    uint32_t output, input;
};

// Returns true if `text` is empty or a list of pairs "OUTPUT=INPUT, OUTPUT=INPUT" (or with ;
// between them); otherwise `wanted` says what is allowed.
bool inf_state_pairs_check(const char *text, char *wanted, size_t size);

// Finds the pairs that `text` names, or if it is empty those that follow from names. Both tensors
// of a pair have the same data type and compatible shapes. At most INF_LIMIT_TENSORS pairs; there
// may be none.
// INF_LIMIT_TENSORS at most. There may be none.
//
// INF_INVALID  (BAD_PARAMETER) the text names an output or input that the graph does not have, one
//              twice, or two that cannot be the same tensor.
enum inf_code inf_state_pairs_find(const struct inf_graph *graph, const char *text,
                                   struct inf_state_pair pairs[INF_LIMIT_TENSORS],
                                   uint32_t *out_count, struct inf_error *err) INF_NODISCARD;

#endif
