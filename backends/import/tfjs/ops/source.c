// SPDX-License-Identifier: Apache-2.0
// Operators that create values, and operators that return their input unchanged.
#include "backends/import/tfjs/op_table.h"
#include "backends/import/tfjs/table.h"

enum inf_code inf_tfjs_placeholder(struct inf_tfjs_scope *scope, const struct inf_shape *fallback,
                                   struct inf_error *err)
{
    enum inf_dtype dtype = INF_DTYPE_F32;
    struct inf_shape shape;
    uint32_t value;
    INF_TRY(inf_tfjs_attr_dtype(scope->node, "dtype", &dtype, err));
    INF_TRY(inf_tfjs_attr_shape(scope->node, "shape", &shape, err));
    if (shape.rank == INF_RANK_UNKNOWN)
        shape = *fallback;
    INF_TRY(inf_graph_add_value(scope->graph, scope->node->name, dtype, &shape, &value, err));
    return inf_tfjs_result(scope, value, err);
}

static enum inf_code lower_placeholder(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    if (scope->node->table != NULL)
        return inf_tfjs_table_handle(scope, err);
    return inf_tfjs_placeholder(scope, &(struct inf_shape){.rank = INF_RANK_UNKNOWN}, err);
}

// Adds the strings of a weight to those of the graph. Sets *out_handles to their handles, of which
// the caller owns the reference.
static enum inf_code decode_strings(struct inf_tfjs_scope *scope, const struct inf_weight *weight,
                                    struct inf_blob **out_handles, struct inf_error *err)
{
    const struct inf_span bytes = {weight->data->data, weight->data->size_bytes};
    size_t size_bytes = 0;
    if (inf_shape_bytes(&weight->shape, INF_DTYPE_BYTES, &size_bytes))
        *out_handles = inf_blob_create(size_bytes);
    if (*out_handles == NULL)
        return inf_tfjs_fail(scope, err, INF_EXHAUSTED, "no memory for its strings");
    enum inf_code code =
        inf_string_pool_decode(inf_shared_strings_pool(scope->graph->strings), bytes,
                               size_bytes / sizeof(uint64_t), (*out_handles)->data, err);
    if (code == INF_OK)
        return INF_OK;
    inf_blob_unref(out_handles);
    return inf_tfjs_node_error(scope->node, code, err);
}

static enum inf_code lower_const(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t value;
    const struct inf_weight *weight = inf_weights_find(scope->weights, scope->node->name);
    if (weight == NULL)
        return inf_tfjs_fail(scope, err, INF_INVALID, "weightsManifest has no weight of its name");
    if (weight->data == NULL)
        return inf_tfjs_fail(scope, err, INF_UNSUPPORTED,
                             "its weight is of dtype %s, wanted float32, int32 or bool",
                             weight->type_name);
    struct inf_blob *data = NULL;
    if (weight->dtype == INF_DTYPE_BYTES)
        INF_TRY(decode_strings(scope, weight, &data, err));
    else
        data = inf_blob_ref(weight->data);
    INF_TRY(inf_graph_add_const(scope->graph, weight->name, weight->dtype, &weight->shape, data,
                                &value, err));
    return inf_tfjs_result(scope, value, err);
}

// Lowers Identity and other operators without effect in inference: the output is input 0.
static enum inf_code lower_identity(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    return inf_tfjs_result(scope, scope->inputs[0], err);
}

static enum inf_code lower_identity_n(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t *values;
    INF_TRY(inf_tfjs_outputs(scope, scope->input_count, &values, err));
    for (uint32_t i = 0; i < scope->input_count; i++)
        values[i] = scope->inputs[i];
    return INF_OK;
}

static enum inf_code lower_nothing(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t *values;
    return inf_tfjs_outputs(scope, 0, &values, err);
}

static const struct inf_tfjs_op ops[] = {
    {"Placeholder", lower_placeholder, 0, 0, 0},
    {"PlaceholderWithDefault", lower_identity, 1, 1, 0},
    {"Const", lower_const, 0, 0, 0},
    {"Identity", lower_identity, 1, 1, 0},
    {"IdentityN", lower_identity_n, 1, INF_LIMIT_NODE_INPUTS, 0},
    {"Snapshot", lower_identity, 1, 1, 0},
    {"StopGradient", lower_identity, 1, 1, 0},
    {"PreventGradient", lower_identity, 1, 1, 0},
    {"EnsureShape", lower_identity, 1, 1, 0},
    {"Print", lower_identity, 1, INF_LIMIT_NODE_INPUTS, 0},
    // In inference, TensorFlow.js treats this operator as an identity.
    {"FakeQuantWithMinMaxVars", lower_identity, 3, 3, 0},
    {"NoOp", lower_nothing, 0, 0, 0},
    {"Assert", lower_nothing, 0, INF_LIMIT_NODE_INPUTS, 0},
};

const struct inf_tfjs_op_table inf_tfjs_ops_source = {ops, INF_ARRAY_LENGTH(ops)};
