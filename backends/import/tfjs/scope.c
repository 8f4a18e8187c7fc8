// SPDX-License-Identifier: Apache-2.0
// The node that is being lowered: a builder with the node's name, the node's inputs, and constant
// inputs.
#include "backends/import/tfjs/lower.h"

#include <assert.h>
#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/tfjs/region.h"

struct inf_builder inf_tfjs_builder(const struct inf_tfjs_scope *scope, struct inf_error *err)
{
    assert(scope->node != NULL && scope->library != NULL);
    return (struct inf_builder){.graph = scope->graph,
                                .noun = "node",
                                .name = scope->node->name,
                                .source = scope->node->op,
                                .cancelled = scope->library->cancelled,
                                .node_total = &scope->library->work_count,
                                .err = err};
}

enum inf_code inf_tfjs_emit(struct inf_tfjs_scope *scope, const struct inf_build_node *node,
                            uint32_t *out_values, struct inf_error *err)
{
    struct inf_builder b = inf_tfjs_builder(scope, err);
    inf_build_emit(&b, node, out_values);
    return b.code;
}

enum inf_code inf_tfjs_binary(struct inf_tfjs_scope *scope, enum inf_binary_kind kind, uint32_t x,
                              uint32_t y, uint32_t *out_value, struct inf_error *err)
{
    struct inf_builder b = inf_tfjs_builder(scope, err);
    *out_value = inf_build_binary(&b, kind, x, y);
    return b.code;
}

enum inf_code inf_tfjs_add_ints(struct inf_tfjs_scope *scope, const int64_t *values, uint32_t count,
                                uint32_t *out_value, struct inf_error *err)
{
    struct inf_builder b = inf_tfjs_builder(scope, err);
    *out_value = inf_build_list(&b, values, count);
    return b.code;
}

enum inf_code inf_tfjs_add_scalar(struct inf_tfjs_scope *scope, enum inf_dtype dtype, double number,
                                  uint32_t *out_value, struct inf_error *err)
{
    struct inf_builder b = inf_tfjs_builder(scope, err);
    if (dtype != INF_DTYPE_F32 && dtype != INF_DTYPE_I32 && dtype != INF_DTYPE_BOOL &&
        !(dtype == INF_DTYPE_BYTES && number == 0))
        inf_build_fail(&b, INF_UNSUPPORTED, "element type %s", inf_dtype_name(dtype));
    *out_value = inf_build_scalar(&b, dtype, number);
    return b.code;
}

const struct inf_value *inf_tfjs_input(const struct inf_tfjs_scope *scope, uint32_t input)
{
    return &scope->graph->values[scope->inputs[input]];
}

enum inf_code inf_tfjs_const_ints(struct inf_tfjs_scope *scope, uint32_t input, const char *what,
                                  struct inf_tfjs_ints *out, struct inf_error *err)
{
    uint32_t value = scope->inputs[input];
    if (!inf_graph_is_const(scope->graph, value))
        return inf_tfjs_fail(scope, err, INF_UNSUPPORTED,
                             "%s is computed by other nodes, wanted a constant", what);
    if (!inf_graph_const_ints(scope->graph, value, out->values, INF_ARRAY_LENGTH(out->values),
                              &out->count)) {
        char text[INF_SHAPE_TEXT_SIZE];
        const struct inf_value *constant = inf_tfjs_input(scope, input);
        return inf_tfjs_fail(scope, err, INF_INVALID, "%s is %s %s, wanted at most %zu integers",
                             what, inf_dtype_name(constant->dtype),
                             inf_shape_print(&constant->shape, text),
                             INF_ARRAY_LENGTH(out->values));
    }
    return INF_OK;
}

enum inf_code inf_tfjs_const_axis(struct inf_tfjs_scope *scope, uint32_t input, int32_t *out_axis,
                                  struct inf_error *err)
{
    struct inf_tfjs_ints ints = {.count = 0};
    INF_TRY(inf_tfjs_const_ints(scope, input, "the axis", &ints, err));
    if (ints.count != 1)
        return inf_tfjs_fail(scope, err, INF_INVALID, "the axis has %u elements, wanted 1",
                             ints.count);
    if (ints.values[0] < -INF_LIMIT_RANK || ints.values[0] >= INF_LIMIT_RANK)
        return inf_tfjs_fail(scope, err, INF_INVALID, "the axis is %lld, wanted %d to %d",
                             (long long)ints.values[0], -INF_LIMIT_RANK, INF_LIMIT_RANK - 1);
    *out_axis = (int32_t)ints.values[0];
    return INF_OK;
}

enum inf_code inf_tfjs_const_axes(struct inf_tfjs_scope *scope, uint32_t input, const char *what,
                                  struct inf_ints *out, struct inf_error *err)
{
    struct inf_tfjs_ints ints = {.count = 0};
    INF_TRY(inf_tfjs_const_ints(scope, input, what, &ints, err));
    if (ints.count > INF_LIMIT_RANK)
        return inf_tfjs_fail(scope, err, INF_INVALID, "%s has %u elements, wanted at most %d", what,
                             ints.count, INF_LIMIT_RANK);
    out->count = (int32_t)ints.count;
    memcpy(out->values, ints.values, ints.count * sizeof *out->values);
    return INF_OK;
}

bool inf_tfjs_const_float(const struct inf_graph *graph, uint32_t value, float *out)
{
    const struct inf_value *constant = &graph->values[value];
    size_t count;
    if (!inf_graph_is_const(graph, value) || constant->dtype != INF_DTYPE_F32 ||
        !inf_shape_count(&constant->shape, &count) || count != 1)
        return false;
    memcpy(out, constant->data->data, sizeof *out);
    return true;
}
