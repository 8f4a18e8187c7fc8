// SPDX-License-Identifier: Apache-2.0
// The list of the nodes of an inspected model, which can be written as a trace for Perfetto or
// chrome://tracing.
#ifndef INF_CLIENT_INFERCTL_TEXT_NODE_LIST_H
#define INF_CLIENT_INFERCTL_TEXT_NODE_LIST_H

#include "client/inferctl/cli/command.h"

// The nodes of an inspected model. A zero-initialised list is empty.
struct node_list {
    inferd_node *nodes;
    size_t count, capacity;
};

// Inspects a model and collects its nodes. Returns an exit code, and prints a message on failure.
int node_list_collect(struct node_list *list, inferd_client *client,
                      const inferd_inspect_request *request);

// Frees the nodes.
void node_list_fini(struct node_list *list);

// Returns the sum of the times of all nodes.
uint64_t node_list_total_ns(const struct node_list *list);

// Writes the trace, with an event for each step and a line for each device. Returns an exit code,
// and prints a message on failure.
int node_list_trace(const struct node_list *list, const char *model, const char *path);

#endif
