// SPDX-License-Identifier: Apache-2.0
// The graph of a model that is loaded: read from its file, taken from a plan, or copied from the
// served model.
#ifndef INF_DAEMON_LOAD_SOURCE_LOAD_GRAPH_H
#define INF_DAEMON_LOAD_SOURCE_LOAD_GRAPH_H

#include "daemon/load/source/load_state.h"

// Copies the graph of the served model, job->base, and what is known of its files.
//
// INF_EXHAUSTED  no memory.
enum inf_code inf_load_graph_copy(struct inf_load *load,
                                  struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Takes the graph from a plan that is valid for the file at load->location, or reads the file.
//
// Errors as inf_model_import_with().
enum inf_code inf_load_graph_read(struct inf_load *load,
                                  struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Decides whether a plan of `served`, the loaded model, is kept for later loads, and notes in
// `served` what the plan needs.
void inf_load_graph_offer_plan(const struct inf_load *load,
                               struct inf_served *served) INF_MAY_BLOCK;

#endif
