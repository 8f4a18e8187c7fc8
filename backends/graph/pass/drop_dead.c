// SPDX-License-Identifier: Apache-2.0
// Removes nodes whose outputs are not used, and the bytes of unused constants.
#include "backends/graph/pass/passes.h"
#include "backends/graph/pass/rewrite.h"

static bool has_used_output(const struct inf_rewrite *rewrite, const struct inf_node *node)
{
    for (uint32_t i = 0; i < node->output_count; i++)
        if (rewrite->uses[node->outputs[i]] > 0)
            return true;
    return false;
}

enum inf_code inf_pass_drop_dead(struct inf_rewrite *rewrite)
{
    struct inf_graph *graph = rewrite->graph;
    // Visit the nodes from the last to the first, because removing a node removes its uses of
    // values, so that the nodes which computed those values may become removable too.
    for (uint32_t i = graph->node_count; i-- > 0;)
        if (!has_used_output(rewrite, &graph->nodes[i]))
            inf_rewrite_remove(rewrite, i);
    for (uint32_t i = 0; i < graph->value_count; i++) {
        if (rewrite->uses[i] > 0 || graph->values[i].data == NULL)
            continue;
        inf_blob_unref(&graph->values[i].data);
        rewrite->changed = true;
    }
    return INF_OK;
}
