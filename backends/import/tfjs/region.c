// SPDX-License-Identifier: Apache-2.0
// Regions: the graph that is being built, and the values of the model's nodes in that graph.
// Beginning a region hides the values of the outer region; ending it restores them.
#include "backends/import/tfjs/region.h"

#include <stdlib.h>

#include "proto/core/limits.h"

// The values that a node has in the outer region, kept until the inner region ends.
struct saved {
    struct inf_tfjs_node *node;
    uint32_t region;
    uint32_t *values;
    uint32_t value_count;
};

struct inf_tfjs_region {
    struct inf_tfjs_region *outer;
    uint32_t id;
    uint32_t depth;
    struct saved *saved;
    uint32_t saved_count, saved_capacity;
};

enum inf_code inf_tfjs_library_count(struct inf_tfjs_library *library, uint32_t work,
                                     struct inf_error *err)
{
    library->work_count += work;
    if (library->work_count > INF_LIMIT_GRAPH_NODES)
        return inf_fail(err, INF_EXHAUSTED, "the model makes more than %u nodes",
                        INF_LIMIT_GRAPH_NODES);
    return INF_OK;
}

enum inf_code inf_tfjs_region_begin(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t depth = scope->region != NULL ? scope->region->depth + 1 : 0;
    if (depth > INF_LIMIT_GRAPH_DEPTH)
        return inf_fail(err, INF_EXHAUSTED, "branches and loops are nested deeper than %u",
                        INF_LIMIT_GRAPH_DEPTH);
    INF_TRY(inf_tfjs_library_count(scope->library, 1, err));
    struct inf_tfjs_region *region = calloc(1, sizeof *region);
    if (region == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory to build the graph");
    region->outer = scope->region;
    region->depth = depth;
    region->id = ++scope->library->region_count;
    scope->region = region;
    return INF_OK;
}

void inf_tfjs_region_end(struct inf_tfjs_scope *scope)
{
    struct inf_tfjs_region *region = scope->region;
    if (region == NULL)
        return;
    for (uint32_t i = region->saved_count; i-- > 0;) {
        const struct saved *saved = &region->saved[i];
        saved->node->region = saved->region;
        saved->node->values = saved->values;
        saved->node->value_count = saved->value_count;
    }
    scope->region = region->outer;
    free(region->saved);
    free(region);
}

enum inf_code inf_tfjs_region_take(struct inf_tfjs_region *region, struct inf_tfjs_node *node,
                                   struct inf_error *err)
{
    if (node->region == region->id)
        return INF_OK;
    if (region->saved_count == region->saved_capacity) {
        uint32_t wanted = region->saved_capacity == 0 ? 32 : region->saved_capacity * 2;
        struct saved *grown = realloc(region->saved, wanted * sizeof *grown);
        if (grown == NULL)
            return inf_fail(err, INF_EXHAUSTED, "no memory to build the graph");
        region->saved = grown;
        region->saved_capacity = wanted;
    }
    region->saved[region->saved_count++] =
        (struct saved){node, node->region, node->values, node->value_count};
    node->region = region->id;
    node->values = NULL;
    node->value_count = 0;
    return INF_OK;
}

uint32_t inf_tfjs_region_id(const struct inf_tfjs_region *region)
{
    return region->id;
}
