// SPDX-License-Identifier: Apache-2.0
// Checks a node against ops.def: number of operands, indices and attribute ranges.
#include <math.h>
#include <string.h>

#include "backends/graph/shape/rules.h"

static enum inf_code check_inputs(const struct inf_graph *graph, const struct inf_node *node,
                                  struct inf_error *err)
{
    const struct inf_op_info *info = inf_op_info(node->op);
    bool variadic = info->inputs_max == INF_VARIADIC;
    uint32_t inputs_max = variadic ? INF_LIMIT_NODE_INPUTS : info->inputs_max;
    if (node->input_count < info->inputs_min || node->input_count > inputs_max)
        return inf_fail(err, INF_INVALID, "node '%s': %s has %u inputs, wanted %u to %u",
                        node->name, info->name, node->input_count, info->inputs_min, inputs_max);
    for (uint32_t i = 0; i < node->input_count; i++) {
        uint32_t value = node->inputs[i];
        if (value == INF_VALUE_NONE && (variadic || i < info->inputs_min))
            return inf_fail(err, INF_INVALID, "node '%s': %s lacks input %u", node->name,
                            info->name, i);
        if (value != INF_VALUE_NONE && value >= graph->value_count)
            return inf_fail(err, INF_INVALID, "node '%s': input %u is value %u of %u", node->name,
                            i, value, graph->value_count);
    }
    return INF_OK;
}

static enum inf_code check_outputs(const struct inf_graph *graph, const struct inf_node *node,
                                   struct inf_error *err)
{
    const struct inf_op_info *info = inf_op_info(node->op);
    uint32_t least = info->outputs == INF_VARIADIC ? 1 : info->outputs;
    uint32_t most = info->outputs == INF_VARIADIC ? INF_LIMIT_NODE_INPUTS : info->outputs;
    if (node->output_count < least || node->output_count > most)
        return inf_fail(err, INF_INVALID, "node '%s': %s has %u outputs, wanted %u to %u",
                        node->name, info->name, node->output_count, least, most);
    for (uint32_t i = 0; i < node->output_count; i++)
        if (node->outputs[i] >= graph->value_count)
            return inf_fail(err, INF_INVALID, "node '%s': output %u is value %u of %u", node->name,
                            i, node->outputs[i], graph->value_count);
    return INF_OK;
}

static enum inf_code check_ints(const struct inf_node *node, const struct inf_attr_info *attr,
                                const unsigned char *at, struct inf_error *err)
{
    struct inf_ints ints;
    memcpy(&ints, at, sizeof ints);
    if (ints.count < 0 || ints.count > INF_LIMIT_RANK)
        return inf_fail(err, INF_INVALID, "node '%s': %s has %d elements, wanted 0 to %d",
                        node->name, attr->name, ints.count, INF_LIMIT_RANK);
    return INF_OK;
}

static enum inf_code check_attr(const struct inf_node *node, const struct inf_attr_info *attr,
                                struct inf_error *err)
{
    const unsigned char *at = (const unsigned char *)&node->attrs + attr->offset;
    // For a bool, only the first byte of the attribute is valid, so read one byte. The cases of the
    // switch read attributes of other types again with their own type.
    int32_t integer = *at;
    float real;
    switch (attr->type) {
    case INF_ATTR_TYPE_INT:
    case INF_ATTR_TYPE_ENUM:
        memcpy(&integer, at, sizeof integer);
        break;
    case INF_ATTR_TYPE_BOOL:
        break;
    case INF_ATTR_TYPE_FLOAT:
        memcpy(&real, at, sizeof real);
        return isnan(real) ? inf_fail(err, INF_INVALID, "node '%s': %s is not a number", node->name,
                                      attr->name)
                           : INF_OK;
    case INF_ATTR_TYPE_INTS:
        return check_ints(node, attr, at, err);
    }
    if (integer < attr->min || integer > attr->max)
        return inf_fail(err, INF_INVALID, "node '%s': %s is %d, wanted %d to %d", node->name,
                        attr->name, integer, attr->min, attr->max);
    return INF_OK;
}

enum inf_code inf_node_check(const struct inf_graph *graph, const struct inf_node *node,
                             struct inf_error *err)
{
    if ((uint32_t)node->op >= INF_OP_COUNT)
        return inf_fail(err, INF_INVALID, "node '%s': no operator has number %u", node->name,
                        (uint32_t)node->op);
    INF_TRY(check_inputs(graph, node, err));
    INF_TRY(check_outputs(graph, node, err));
    const struct inf_op_info *info = inf_op_info(node->op);
    for (size_t i = 0; i < info->attr_count; i++)
        INF_TRY(check_attr(node, &info->attrs[i], err));
    return INF_OK;
}
