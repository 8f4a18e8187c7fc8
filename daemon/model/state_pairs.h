// SPDX-License-Identifier: Apache-2.0
// State pairs: an output of a model that becomes an input of the next request in a session. The
// settings of the model name the pairs, or they are guessed from names: "stateN" feeds "state", and
// "h_out" feeds "h_in".
#ifndef INF_DAEMON_MODEL_STATE_PAIRS_H
#define INF_DAEMON_MODEL_STATE_PAIRS_H

#include <stdbool.h>

#include "backends/graph/graph.h"

// One state pair, as the index of an output and the index of an input of a graph.
struct inf_state_pair {
    uint32_t output, input;
};

// Returns true if `text` is empty or a list of pairs "OUTPUT=INPUT, OUTPUT=INPUT" (separated by ","
// or ";"). Otherwise `wanted` says what is allowed.
bool inf_state_pairs_check(const char *text, char *wanted, size_t size);

// Finds the pairs that `text` names or, if `text` is empty, the pairs that the names of the tensors
// suggest. Both tensors of a pair have the same data type and compatible shapes. The result has at
// most INF_LIMIT_TENSORS pairs, and may have none.
//
// INF_INVALID  (BAD_PARAMETER) the text names an output or input that the graph does not have,
//              names one twice, or pairs two tensors of different types or incompatible shapes.
enum inf_code inf_state_pairs_find(const struct inf_graph *graph, const char *text,
                                   struct inf_state_pair pairs[INF_LIMIT_TENSORS],
                                   uint32_t *out_count, struct inf_error *err) INF_NODISCARD;

#endif
