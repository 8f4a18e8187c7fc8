// SPDX-License-Identifier: Apache-2.0
// All classes of layers that can be lowered, by family.
#ifndef INF_BACKENDS_IMPORT_LAYERS_CLASS_TABLE_H
#define INF_BACKENDS_IMPORT_LAYERS_CLASS_TABLE_H

#include "backends/import/layers/lower.h"

// The layer classes of one family, such as convolutions. Each file of layers/ops has one family.
struct inf_layers_class_table {
    const struct inf_layers_class *classes;
    size_t count;
};

// Returns how the layer class `name` is lowered; NULL if the class is not supported.
const struct inf_layers_class *inf_layers_class_find(const char *name);

// The tables of the families, one per file of layers/ops.
extern const struct inf_layers_class_table inf_layers_classes_core;
extern const struct inf_layers_class_table inf_layers_classes_activation;
extern const struct inf_layers_class_table inf_layers_classes_conv;
extern const struct inf_layers_class_table inf_layers_classes_pool;
extern const struct inf_layers_class_table inf_layers_classes_merge;
extern const struct inf_layers_class_table inf_layers_classes_norm;
extern const struct inf_layers_class_table inf_layers_classes_image;
extern const struct inf_layers_class_table inf_layers_classes_rnn;
extern const struct inf_layers_class_table inf_layers_classes_volume;
extern const struct inf_layers_class_table inf_layers_classes_conv_lstm;
extern const struct inf_layers_class_table inf_layers_classes_attention;
extern const struct inf_layers_class_table inf_layers_classes_decoder;

#endif
