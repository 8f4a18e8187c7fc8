// SPDX-License-Identifier: Apache-2.0
// The list of all classes of layers that can be lowered: the tables of the families, searched in
// order.
#include "backends/import/layers/class_table.h"

#include <assert.h>
#include <string.h>

const struct inf_layers_class *inf_layers_class_find(const char *name)
{
    static const struct inf_layers_class_table *const tables[] = {
        &inf_layers_classes_core,      &inf_layers_classes_activation, &inf_layers_classes_conv,
        &inf_layers_classes_pool,      &inf_layers_classes_merge,      &inf_layers_classes_norm,
        &inf_layers_classes_image,     &inf_layers_classes_rnn,        &inf_layers_classes_volume,
        &inf_layers_classes_conv_lstm, &inf_layers_classes_attention,  &inf_layers_classes_decoder,
    };
    assert(name != NULL);
    for (size_t i = 0; i < INF_ARRAY_LENGTH(tables); i++)
        for (size_t j = 0; j < tables[i]->count; j++)
            if (strcmp(tables[i]->classes[j].name, name) == 0)
                return &tables[i]->classes[j];
    return NULL;
}
