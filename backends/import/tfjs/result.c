// SPDX-License-Identifier: Apache-2.0
// Sets the outputs of the node that is being lowered.
#include <assert.h>
#include <string.h>

#include "backends/import/tfjs/layout.h"
#include "backends/import/tfjs/region.h"

enum inf_code inf_tfjs_outputs(struct inf_tfjs_scope *scope, uint32_t count, uint32_t **out_values,
                               struct inf_error *err)
{
    struct inf_tfjs_node *node = scope->node;
    INF_TRY(inf_tfjs_region_take(scope->region, node, err));
    node->values = inf_arena_alloc(&scope->source->arena, count * sizeof *node->values);
    if (node->values == NULL)
        return inf_tfjs_fail(scope, err, INF_EXHAUSTED, "no memory for %u outputs", count);
    for (uint32_t i = 0; i < count; i++)
        node->values[i] = INF_VALUE_NONE;
    node->value_count = count;
    *out_values = node->values;
    return INF_OK;
}

// Returns true for an operator that TensorFlow.js computes on decoded strings, which it encodes
// again: what is no UTF-8 becomes U+FFFD. The hash of a string, and so the answer of a model,
// depends on it.
static bool decodes_strings(const struct inf_tfjs_scope *scope, uint32_t value)
{
    static const char *const names[] = {"Concat", "ConcatV2", "Slice", "StridedSlice"};
    if (value == INF_VALUE_NONE || scope->graph->values[value].dtype != INF_DTYPE_BYTES)
        return false;
    for (size_t i = 0; i < INF_ARRAY_LENGTH(names); i++)
        if (strcmp(names[i], scope->node->op) == 0)
            return true;
    return false;
}

enum inf_code inf_tfjs_result(struct inf_tfjs_scope *scope, uint32_t value, struct inf_error *err)
{
    uint32_t *values = NULL;
    if (scope->channels_first != 0)
        INF_TRY(inf_tfjs_channels_first(scope, &value, err));
    if (decodes_strings(scope, value)) {
        const struct inf_build_node node =
            inf_build_describe(INF_OP_STRING_REPAIR, value, INF_VALUE_NONE, INF_VALUE_NONE);
        INF_TRY(inf_tfjs_emit(scope, &node, &value, err));
    }
    INF_TRY(inf_tfjs_outputs(scope, 1, &values, err));
    values[0] = value;
    return INF_OK;
}

enum inf_code inf_tfjs_finish(struct inf_tfjs_scope *scope, const struct inf_build_node *node,
                              struct inf_error *err)
{
    uint32_t value = INF_VALUE_NONE;
    INF_TRY(inf_tfjs_emit(scope, node, &value, err));
    return inf_tfjs_result(scope, value, err);
}
