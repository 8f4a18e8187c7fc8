// SPDX-License-Identifier: Apache-2.0
// Shapes of recurrent networks.
#include "backends/graph/shape/rules.h"

#define INPUTS 8

// The expected shapes of rnn's inputs, in order. Each letter is one dimension, named as in the
// operator's text in ops.def, such as t for steps, b for batch and h for the hidden size.
static const char *const wanted[INPUTS] = {"tbi", "dgi", "dgh", "dG", "b", "dbh", "dbh", "dP"};

// The size for each letter of `wanted`. A size is unknown until an input determines it.
struct sizes {
    int64_t of[128];
};

static enum inf_code check_input(struct inf_infer *infer, uint32_t index, struct sizes *sizes)
{
    const struct inf_shape *shape = inf_infer_input(infer, index);
    char text[INF_SHAPE_TEXT_SIZE];
    int32_t rank = 0;
    while (wanted[index][rank] != '\0')
        rank++;
    if (shape->rank < 0)
        return INF_OK;
    if (shape->rank != rank)
        return inf_shape_fault(infer, "input %u has shape %s, wanted rank %d", index,
                               inf_shape_print(shape, text), rank);
    for (int32_t i = 0; i < rank; i++) {
        int64_t *size = &sizes->of[(unsigned char)wanted[index][i]];
        if (!inf_dim_merge(shape->dims[i], *size, size))
            return inf_shape_fault(infer, "input %u has shape %s, wanted %lld at %d", index,
                                   inf_shape_print(shape, text), (long long)*size, i);
    }
    return INF_OK;
}

static enum inf_code check_attributes(struct inf_infer *infer, int32_t directions)
{
    const struct inf_attrs_rnn *attrs = &infer->node->attrs.rnn;
    static const int32_t activations[] = {3, 2, 1};
    int32_t count = directions * activations[attrs->kind];
    if (attrs->activations.count != 0 && attrs->activations.count != count)
        return inf_fail(infer->err, INF_INVALID, "there are %d activations, wanted %d",
                        attrs->activations.count, count);
    for (int32_t i = 0; i < attrs->activations.count; i++)
        if (attrs->activations.values[i] < 0 || attrs->activations.values[i] >= INF_UNARY_COUNT)
            return inf_fail(infer->err, INF_INVALID, "activation %d is %lld, no unary kind", i,
                            (long long)attrs->activations.values[i]);
    if (attrs->kind != INF_RNN_LSTM &&
        (inf_infer_has_input(infer, 6) || inf_infer_has_input(infer, 7)))
        return inf_fail(infer->err, INF_INVALID, "only an lstm has a cell state and peepholes");
    uint32_t outputs = attrs->kind == INF_RNN_LSTM ? 3 : 2;
    if (infer->node->output_count != outputs)
        return inf_fail(infer->err, INF_INVALID, "it has %u outputs, wanted %u",
                        infer->node->output_count, outputs);
    return INF_OK;
}

// Computes the sizes that are multiples of the hidden size, such as the gates, before the inputs
// are compared with the sizes.
static enum inf_code derive_shapes(struct inf_infer *infer, struct sizes *sizes)
{
    static const int64_t gates[] = {4, 3, 1};
    int64_t factor = gates[infer->node->attrs.rnn.kind];
    const struct inf_shape *r = inf_infer_input(infer, 2);
    int64_t hidden = r->rank == 3 ? r->dims[2] : INF_DIM_UNKNOWN;
    if (!inf_dim_product(hidden, factor, &sizes->of['g']) ||
        !inf_dim_product(hidden, 2 * factor, &sizes->of['G']) ||
        !inf_dim_product(hidden, 3, &sizes->of['P']))
        return inf_shape_fault(infer, "%lld hidden elements are too many", (long long)hidden);
    return INF_OK;
}

enum inf_code inf_infer_rnn(struct inf_infer *infer)
{
    int32_t directions = infer->node->attrs.rnn.direction == INF_DIRECTION_BIDIRECTIONAL ? 2 : 1;
    struct sizes sizes;
    for (size_t i = 0; i < INF_ARRAY_LENGTH(sizes.of); i++)
        sizes.of[i] = INF_DIM_UNKNOWN;
    sizes.of['d'] = directions;
    INF_TRY(check_attributes(infer, directions));
    INF_TRY(derive_shapes(infer, &sizes));
    for (uint32_t i = 0; i < INPUTS; i++)
        if (inf_infer_has_input(infer, i))
            INF_TRY(check_input(infer, i, &sizes));
    int64_t steps = sizes.of['t'], batch = sizes.of['b'], hidden = sizes.of['h'];
    INF_TRY(inf_infer_output(infer, 0, &INF_SHAPE(steps, directions, batch, hidden)));
    for (uint32_t i = 1; i < infer->node->output_count; i++)
        INF_TRY(inf_infer_output(infer, i, &INF_SHAPE(directions, batch, hidden)));
    return INF_OK;
}
