// SPDX-License-Identifier: Apache-2.0
// The list of all TensorFlow operators that can be lowered: the tables of the families, searched in
// order.
#include "backends/import/tfjs/op_table.h"

#include <assert.h>
#include <string.h>

const struct inf_tfjs_op *inf_tfjs_op_find(const char *name)
{
    static const struct inf_tfjs_op_table *const tables[] = {
        &inf_tfjs_ops_math,   &inf_tfjs_ops_conv,    &inf_tfjs_ops_shape,    &inf_tfjs_ops_array,
        &inf_tfjs_ops_source, &inf_tfjs_ops_control, &inf_tfjs_ops_list,     &inf_tfjs_ops_select,
        &inf_tfjs_ops_window, &inf_tfjs_ops_table,   &inf_tfjs_ops_spectral, &inf_tfjs_ops_random,
        &inf_tfjs_ops_text,   &inf_tfjs_ops_sparse,
    };
    assert(name != NULL);
    for (size_t i = 0; i < INF_ARRAY_LENGTH(tables); i++)
        for (size_t j = 0; j < tables[i]->count; j++)
            if (strcmp(tables[i]->ops[j].name, name) == 0)
                return &tables[i]->ops[j];
    return NULL;
}
