// SPDX-License-Identifier: Apache-2.0
// Handles the data_format of a node: transposes of inputs and results, and the order of lists that
// have one element for each dimension.
#include "backends/import/tfjs/layout.h"

#include <string.h>

#include "backends/graph/build/operators.h"

enum format {
    CHANNELS_LAST,
    CHANNELS_FIRST,
    NO_FORMAT
};

static enum format find_format(const char *name)
{
    static const struct {
        const char *name;
        enum format format;
    } formats[] = {
        {"nhwc", CHANNELS_LAST},  {"ndhwc", CHANNELS_LAST},  {"nwc", CHANNELS_LAST},
        {"nchw", CHANNELS_FIRST}, {"ncdhw", CHANNELS_FIRST}, {"ncw", CHANNELS_FIRST},
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(formats); i++)
        if (strcmp(formats[i].name, name) == 0)
            return formats[i].format;
    return NO_FORMAT;
}

// Returns the permutation in which axis i of a tensor with channels last is axis order[i] of the
// tensor with channels first.
static struct inf_ints last_from_first(int32_t rank)
{
    struct inf_ints order = {.count = rank, .values = {0}};
    for (int32_t i = 1; i < rank; i++)
        order.values[i] = i + 1 < rank ? i + 1 : 1;
    return order;
}

static struct inf_ints first_from_last(int32_t rank)
{
    struct inf_ints order = {.count = rank, .values = {0}};
    for (int32_t i = 1; i < rank; i++)
        order.values[i] = i > 1 ? i - 1 : rank - 1;
    return order;
}

static enum inf_code transpose_value(struct inf_tfjs_scope *scope, const struct inf_ints *order,
                                     uint32_t *value, struct inf_error *err)
{
    struct inf_builder b = inf_tfjs_builder(scope, err);
    *value = inf_build_transpose(&b, *value, order->values, order->count);
    return b.code;
}

enum inf_code inf_tfjs_channels_last(struct inf_tfjs_scope *scope, uint32_t input, int32_t rank,
                                     struct inf_error *err)
{
    struct inf_tfjs_text name = {"nhwc"};
    INF_TRY(inf_tfjs_attr_text(scope->node, "data_format", &name, err));
    enum format format = find_format(name.text);
    if (format == NO_FORMAT)
        return inf_tfjs_fail(scope, err, INF_UNSUPPORTED,
                             "data_format '%s', wanted NHWC, NCHW, NDHWC, NCDHW, NWC or NCW",
                             name.text);
    if (format == CHANNELS_LAST)
        return INF_OK;
    if (rank == 0)
        rank = inf_tfjs_input(scope, input)->shape.rank;
    if (rank < 0)
        return inf_tfjs_fail(scope, err, INF_UNSUPPORTED,
                             "data_format '%s', and the rank of its input is not known", name.text);
    if (rank < 3)
        return INF_OK; // with less than 3 axes there are no spatial axes to move
    struct inf_ints order = last_from_first(rank);
    scope->channels_first = rank;
    return transpose_value(scope, &order, &scope->inputs[input], err);
}

uint32_t inf_tfjs_spatial(const struct inf_tfjs_scope *scope, uint32_t axis)
{
    return scope->channels_first != 0 ? axis + 2 : axis + 1;
}

uint32_t inf_tfjs_channel(const struct inf_tfjs_scope *scope, uint32_t rank)
{
    return scope->channels_first != 0 ? 1 : rank - 1;
}

enum inf_code inf_tfjs_list_channels_last(struct inf_tfjs_scope *scope, uint32_t *value,
                                          struct inf_error *err)
{
    if (scope->channels_first == 0)
        return INF_OK;
    struct inf_ints order = last_from_first(scope->channels_first);
    struct inf_builder b = inf_tfjs_builder(scope, err);
    uint32_t indices = inf_build_list(&b, order.values, (uint32_t)order.count);
    *value = inf_build_gather(&b, *value, indices, 0);
    return b.code;
}

enum inf_code inf_tfjs_channels_first(struct inf_tfjs_scope *scope, uint32_t *value,
                                      struct inf_error *err)
{
    struct inf_ints order = first_from_last(scope->channels_first);
    return transpose_value(scope, &order, value, err);
}
