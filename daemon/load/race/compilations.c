// SPDX-License-Identifier: Apache-2.0
// Copies what a model lends about its executables.
#include "daemon/load/race/compilations.h"

#include <stdlib.h>

static void copy_classes(void *context, const struct inf_model_kept *kept)
{
    struct inf_compilations *list = context;
    list->items = calloc((size_t)kept->class_count + 1, sizeof *list->items);
    list->out_of_memory = list->items == NULL;
    for (uint32_t i = 0; i < kept->class_count && !list->out_of_memory; i++) {
        const struct inf_model_kept_class *class = &kept->classes[i];
        const struct inf_graph *graph = class->graph;
        struct inf_compilation *item = &list->items[list->count];
        item->shapes = calloc((size_t)graph->input_count + 1, sizeof *item->shapes);
        list->out_of_memory = item->shapes == NULL;
        if (list->out_of_memory)
            return;
        for (uint32_t k = 0; k < graph->input_count; k++)
            item->shapes[k] = graph->values[graph->inputs[k].value].shape;
        item->device = class->device;
        item->options = (struct inf_run_options){.precision = class->options.precision,
                                                 .threads = class->options.threads};
        list->count++;
    }
}

struct inf_compilations *inf_compilations_list(struct inf_model *model)
{
    struct inf_compilations *list = calloc(1, sizeof *list);
    if (list != NULL &&
        (inf_model_lend(model, copy_classes, list, NULL) != INF_OK || list->out_of_memory))
        inf_compilations_destroy(&list);
    return list;
}

void inf_compilations_destroy(struct inf_compilations **pointer)
{
    struct inf_compilations *list = *pointer;
    *pointer = NULL;
    if (list == NULL)
        return;
    for (uint32_t i = 0; i < list->count; i++)
        free(list->items[i].shapes);
    free(list->items);
    free(list);
}
