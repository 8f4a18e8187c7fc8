// SPDX-License-Identifier: Apache-2.0
// Recognises padding for the pass `recognize`: a concatenation of one computed tensor with
// constants whose elements are all the same number. Converters write it where the source network
// pads channels, because the padding operators of some formats pad only height and width.
//
//     concat(x, zeros)                  pad(x, behind the last channel)
//     concat(twos, x, twos)             pad(x, on both sides, with 2)
//
// A padding can become part of the operator that reads it, which a concatenation cannot.
#include <string.h>

#include "backends/graph/pass/recognize.h"

struct padding {
    uint32_t x;         // the computed tensor
    int64_t amounts[2]; // elements before and behind x along the axis
    float number;
    bool has_number; // a constant was seen, and `number` is its element
};

// Notes the elements of a constant. Returns false if it has no elements, or if not all of them have
// the bits of one number, which is also that of the constants before.
static bool note_constant(struct padding *padding, const struct inf_value *value)
{
    const float *elements = value->data->data;
    size_t count = inf_shape_elements(&value->shape);
    if (count == 0)
        return false;
    if (!padding->has_number)
        padding->number = elements[0];
    padding->has_number = true;
    for (size_t i = 0; i < count; i++)
        if (memcmp(&elements[i], &padding->number, sizeof padding->number) != 0)
            return false;
    return true;
}

// Describes a concatenation as a padding. Returns false if it is none. The shape of x must be
// known: a constant demands the sizes of the other axes, and a padding accepts any.
static bool find_padding(const struct inf_graph *graph, const struct inf_node *node, int32_t axis,
                         struct padding *padding)
{
    *padding = (struct padding){.x = INF_VALUE_NONE};
    for (uint32_t i = 0; i < node->input_count; i++) {
        const struct inf_value *value = &graph->values[node->inputs[i]];
        if (value->dtype != INF_DTYPE_F32 || !inf_shape_known(&value->shape))
            return false;
        if (!inf_graph_is_const(graph, node->inputs[i])) {
            if (padding->x != INF_VALUE_NONE)
                return false;
            padding->x = node->inputs[i];
            continue;
        }
        if (!note_constant(padding, value))
            return false;
        padding->amounts[padding->x != INF_VALUE_NONE] += value->shape.dims[axis];
    }
    return padding->x != INF_VALUE_NONE && padding->has_number &&
           padding->amounts[0] <= INT32_MAX && padding->amounts[1] <= INT32_MAX;
}

// Adds the operand of a pad node that pads one of `rank` axes.
static enum inf_code add_amounts(struct inf_rewrite *rewrite, const struct padding *padding,
                                 int32_t rank, int32_t axis, uint32_t *out_value)
{
    struct inf_shape shape = INF_SHAPE(rank, 2);
    int32_t amounts[2 * INF_LIMIT_RANK] = {0};
    amounts[2 * axis] = (int32_t)padding->amounts[0];
    amounts[2 * axis + 1] = (int32_t)padding->amounts[1];
    struct inf_blob *data = inf_blob_create((size_t)rank * 2 * sizeof *amounts);
    if (data != NULL)
        memcpy(data->data, amounts, data->size_bytes);
    return inf_rewrite_add_const(rewrite, "paddings", INF_DTYPE_I32, &shape, data, out_value);
}

enum inf_code inf_recognize_pad(struct inf_rewrite *rewrite, uint32_t index)
{
    struct inf_graph *graph = rewrite->graph;
    struct inf_node *node = &graph->nodes[index];
    struct padding padding;
    uint32_t amounts, number;
    if (node->op != INF_OP_CONCAT)
        return INF_OK;
    int32_t rank = graph->values[node->inputs[0]].shape.rank;
    int32_t axis = node->attrs.concat.axis + (node->attrs.concat.axis < 0 ? rank : 0);
    if (rank < 1 || !find_padding(graph, node, axis, &padding))
        return INF_OK;
    struct inf_blob *data = inf_blob_create(sizeof padding.number);
    if (data != NULL)
        memcpy(data->data, &padding.number, data->size_bytes);
    INF_TRY(inf_rewrite_add_const(rewrite, "padding", INF_DTYPE_F32, &(struct inf_shape){0}, data,
                                  &number));
    INF_TRY(add_amounts(rewrite, &padding, rank, axis, &amounts));
    INF_TRY(inf_recognize_replace(rewrite, index, INF_OP_PAD, padding.x));
    INF_TRY(inf_rewrite_set_input(rewrite, index, 1, amounts));
    return inf_rewrite_set_input(rewrite, index, 2, number);
}
