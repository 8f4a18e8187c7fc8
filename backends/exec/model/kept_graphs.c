// SPDX-License-Identifier: Apache-2.0
// The graphs that are kept from one load of a model to the next. Offers are a linked list that is
// searched from its beginning, because a plan has few graphs.
#include "backends/exec/model/kept_graphs.h"

#include <stdlib.h>

#include "backends/exec/dynamic/dynamic_executable.h"

struct inf_graph_offer {
    struct inf_graph_offer *next;
    const struct inf_device *device;
    struct inf_run_options options;
    struct inf_graph *graph;
};

enum inf_code inf_graph_offers_add(struct inf_graph_offers *offers, const struct inf_device *device,
                                   const struct inf_run_options *options, struct inf_graph **graph,
                                   struct inf_error *err)
{
    // No load keeps such a graph, because its constants are read whenever it runs.
    if (inf_graph_needs_values(*graph)) {
        inf_graph_destroy(graph);
        return INF_OK;
    }
    struct inf_graph_offer *offer = calloc(1, sizeof *offer);
    if (offer == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory");
    *offer = (struct inf_graph_offer){.next = offers->first,
                                      .device = device,
                                      .options = inf_run_options_resolve(*options),
                                      .graph = *graph};
    offers->first = offer;
    *graph = NULL;
    return INF_OK;
}

// Returns true if the graph is for the input shapes of the class.
static bool has_shapes(const struct inf_graph *graph, const struct inf_shape_class *class)
{
    if (graph->input_count != class->classes->input_count)
        return false;
    for (uint32_t i = 0; i < graph->input_count; i++)
        if (!inf_shape_equal(&graph->values[graph->inputs[i].value].shape, &class->shapes[i]))
            return false;
    return true;
}

struct inf_graph *inf_graph_offers_take(struct inf_graph_offers *offers,
                                        const struct inf_shape_class *class)
{
    for (struct inf_graph_offer **link = &offers->first; *link != NULL; link = &(*link)->next) {
        struct inf_graph_offer *offer = *link;
        if (class->buffers.room != 0 || offer->device != class->device ||
            !inf_run_options_equal(&offer->options, &class->options) ||
            !has_shapes(offer->graph, class))
            continue;
        struct inf_graph *graph = offer->graph;
        *link = offer->next;
        free(offer);
        return graph;
    }
    return NULL;
}

static enum inf_code restore_value(const struct inf_graph *graph, uint32_t value,
                                   struct inf_error *err)
{
    struct inf_blob *blob = value != INF_VALUE_NONE ? graph->values[value].data : NULL;
    return blob == NULL || inf_blob_restore(blob)
               ? INF_OK
               : inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                                 "no memory for weights of a kept plan");
}

enum inf_code inf_graph_offers_restore(const struct inf_graph *graph, struct inf_error *err)
{
    for (uint32_t i = 0; i < graph->output_count; i++)
        INF_TRY(restore_value(graph, graph->outputs[i].value, err));
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct inf_node *node = &graph->nodes[i];
        if (inf_node_macs(graph, node) > 0)
            continue;
        for (uint32_t k = 0; k < node->input_count; k++)
            INF_TRY(restore_value(graph, node->inputs[k], err));
    }
    return INF_OK;
}

void inf_graph_offers_fini(struct inf_graph_offers *offers)
{
    while (offers->first != NULL) {
        struct inf_graph_offer *offer = offers->first;
        offers->first = offer->next;
        inf_graph_destroy(&offer->graph);
        free(offer);
    }
}

// --- what this load has ---

enum inf_code inf_kept_classes_list(struct inf_shape_classes *classes,
                                    struct inf_model_kept_class **out_classes, uint32_t *out_count,
                                    struct inf_error *err)
{
    const struct inf_shape_class *class = NULL;
    size_t count = 0;
    while ((class = inf_shape_classes_next_pinned(classes, class)) != NULL)
        count++;
    struct inf_model_kept_class *kept = calloc(count + 1, sizeof *kept);
    if (kept == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory to list %zu executables", count);
    *out_count = 0;
    while ((class = inf_shape_classes_next_pinned(classes, class)) != NULL) {
        const struct inf_graph *graph = inf_executable_graph(class->executable);
        if (*out_count < count && class->options.user == 0 && class->buffers.room == 0)
            kept[(*out_count)++] = (struct inf_model_kept_class){
                class->device, class->options, graph, inf_graph_needs_values(graph)};
    }
    *out_classes = kept;
    return INF_OK;
}
