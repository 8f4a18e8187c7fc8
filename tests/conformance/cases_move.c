// SPDX-License-Identifier: Apache-2.0
// Cases of operators that move or create data.
#include "tests/conformance/cases.h"

#include <criterion/criterion.h>
#include <stdlib.h>

// Adds the operand x of any type, with at least `rank_min` axes. Returns the shape of x.
static struct inf_shape add_any(struct one_node *one, struct random *random, int32_t rank_min)
{
    struct operand x = {.dtype = random_dtype(random, DTYPES_ANY),
                        .shape = random_shape(random, random_rank(random, rank_min, 5)),
                        .extremes = EXTREME_ALL};
    add_operand(one, random, &x);
    return x.shape;
}

static int32_t random_axis(struct random *random, int32_t rank)
{
    return (int32_t)random_in(random, -rank, rank - 1);
}

void make_identity(struct one_node *one, struct random *random, uint32_t number)
{
    (void)number;
    add_any(one, random, 0);
}

void make_shape(struct one_node *one, struct random *random, uint32_t number)
{
    (void)number;
    add_any(one, random, 0);
}

void make_reshape(struct one_node *one, struct random *random, uint32_t number)
{
    struct inf_shape shape = add_any(one, random, 0);
    int32_t wanted[INF_LIMIT_RANK];
    for (int32_t i = 0; i < shape.rank; i++) // the new shape has the same sizes in reverse order
        wanted[i] = (int32_t)shape.dims[shape.rank - 1 - i];
    if (shape.rank != 0 && number % 3 == 0)
        wanted[0] = -1;
    add_list(one, wanted, shape.rank);
}

void make_expand_dims(struct one_node *one, struct random *random, uint32_t number)
{
    struct inf_shape shape = add_any(one, random, 0);
    int32_t axis = number % 2 == 0 ? (int32_t)random_in(random, 0, shape.rank) : -1;
    one->attrs.expand_dims.axes = (struct inf_ints){.count = 1, .values = {axis}};
}

void make_squeeze(struct one_node *one, struct random *random, uint32_t number)
{
    struct inf_shape shape = add_any(one, random, 1);
    struct inf_ints *axes = &one->attrs.squeeze.axes;
    for (int32_t i = 0; i < shape.rank && number % 2 == 0; i++)
        if (shape.dims[i] == 1 && random_once_in(random, 2))
            axes->values[axes->count++] = i;
}

void make_transpose(struct one_node *one, struct random *random, uint32_t number)
{
    struct inf_shape shape = add_any(one, random, 0);
    struct inf_ints *perm = &one->attrs.transpose.perm;
    if (number % 10 == 0)
        return;
    for (int32_t i = 0; i < shape.rank; i++) {
        int64_t place = random_in(random, 0, i);
        perm->values[i] = perm->values[place];
        perm->values[place] = i;
    }
    perm->count = shape.rank;
}

void make_concat(struct one_node *one, struct random *random, uint32_t number)
{
    (void)number;
    struct operand x = {.dtype = random_dtype(random, DTYPES_ANY),
                        .shape = random_shape(random, random_rank(random, 1, 4)),
                        .extremes = EXTREME_ALL};
    int32_t axis = random_axis(random, x.shape.rank);
    one->attrs.concat.axis = axis;
    for (int64_t i = random_in(random, 1, random_once_in(random, 5) ? 11 : 4); i > 0; i--) {
        x.shape.dims[axis < 0 ? axis + x.shape.rank : axis] = random_dim(random);
        x.constant = random_once_in(random, 5);
        add_operand(one, random, &x);
    }
}

void make_split(struct one_node *one, struct random *random, uint32_t number)
{
    struct operand x = {.dtype = random_dtype(random, DTYPES_ANY),
                        .shape = random_shape(random, random_rank(random, 1, 4)),
                        .extremes = EXTREME_ALL};
    int32_t axis = random_axis(random, x.shape.rank);
    int64_t *dim = &x.shape.dims[axis < 0 ? axis + x.shape.rank : axis];
    one->attrs.split.axis = axis;
    one->output_count = (uint32_t)random_in(random, 1, ONE_NODE_OUTPUTS);
    int32_t sizes[ONE_NODE_OUTPUTS];
    *dim = number % 2 == 0 ? random_in(random, 1, 9) * one->output_count : 0;
    for (uint32_t i = 0; i < one->output_count && number % 2 != 0; i++) {
        sizes[i] = (int32_t)random_in(random, 0, 9);
        *dim += sizes[i];
    }
    add_operand(one, random, &x);
    if (number % 2 != 0)
        add_list(one, sizes, one->output_count);
}

void make_slice(struct one_node *one, struct random *random, uint32_t number)
{
    struct inf_shape shape = add_any(one, random, 1);
    int32_t begin[INF_LIMIT_RANK], end[INF_LIMIT_RANK], stride[INF_LIMIT_RANK];
    int64_t named = random_in(random, 1, shape.rank);
    for (int64_t i = 0; i < named; i++) {
        int64_t dim = shape.dims[i];
        begin[i] = (int32_t)random_in(random, -dim, dim);
        end[i] = (int32_t)random_in(random, -dim - 1, dim + 1);
        stride[i] = (int32_t)(random_once_in(random, 2) ? 1 : random_in(random, 1, 3));
        if (random_once_in(random, 4))
            stride[i] = -stride[i];
    }
    if (number % 2 == 0) { // frequent in networks: a slice that begins at the first element
        for (int64_t i = 0; i < named; i++) {
            begin[i] = 0;
            end[i] = (int32_t)((shape.dims[i] + 1) / 2);
            stride[i] = 1;
        }
    }
    struct inf_attrs_slice *attrs = &one->attrs.slice;
    attrs->begin_mask = random_once_in(random, 3) ? (int32_t)random_in(random, 0, 255) : 0;
    attrs->end_mask = random_once_in(random, 3) ? (int32_t)random_in(random, 0, 255) : 0;
    attrs->shrink_axis_mask = random_once_in(random, 4) ? 1 << random_in(random, 0, 3) : 0;
    attrs->new_axis_mask = random_once_in(random, 6) ? 1 << random_in(random, 0, 3) : 0;
    attrs->ellipsis_mask = random_once_in(random, 6) ? 1 << random_in(random, 0, 3) : 0;
    add_list(one, begin, named);
    add_list(one, end, named);
    add_list(one, stride, named);
}

void make_pad(struct one_node *one, struct random *random, uint32_t number)
{
    struct operand x = {.dtype = random_dtype(random, DTYPES_ANY),
                        .shape = random_shape(random, random_rank(random, 1, 5))};
    one->attrs.pad.mode = number % INF_PAD_COUNT;
    int32_t paddings[INF_LIMIT_RANK][2];
    for (int32_t i = 0; i < x.shape.rank; i++) {
        int64_t most = 4;
        if (one->attrs.pad.mode == INF_PAD_REFLECT)
            most = INF_MIN(most, INF_MAX(x.shape.dims[i] - 1, (int64_t)0));
        else if (one->attrs.pad.mode != INF_PAD_CONSTANT)
            most = INF_MIN(most, x.shape.dims[i]);
        for (int32_t side = 0; side < 2; side++)
            paddings[i][side] =
                (int32_t)(random_once_in(random, 2) ? 0 : random_in(random, 0, most));
    }
    add_operand(one, random, &x);
    one_node_const(one, INF_DTYPE_I32, INF_SHAPE(x.shape.rank, 2), paddings);
    struct operand value = {.dtype = x.dtype, .constant = true};
    if (random_once_in(random, 2) && one->attrs.pad.mode == INF_PAD_CONSTANT)
        add_operand(one, random, &value);
}

void make_tile(struct one_node *one, struct random *random, uint32_t number)
{
    (void)number;
    struct inf_shape shape = add_any(one, random, 1);
    int32_t multiples[INF_LIMIT_RANK];
    for (int32_t i = 0; i < shape.rank; i++)
        multiples[i] = (int32_t)(random_once_in(random, 2) ? 1 : random_in(random, 1, 3));
    if (random_once_in(random, 20))
        multiples[0] = 0;
    add_list(one, multiples, shape.rank);
}

void make_broadcast(struct one_node *one, struct random *random, uint32_t number)
{
    (void)number;
    struct inf_shape wanted = random_shape(random, random_rank(random, 0, 5));
    struct operand x = {.dtype = random_dtype(random, DTYPES_ANY),
                        .shape = random_broadcastable(random, &wanted),
                        .extremes = EXTREME_ALL};
    int32_t sizes[INF_LIMIT_RANK];
    for (int32_t i = 0; i < wanted.rank; i++)
        sizes[i] = (int32_t)wanted.dims[i];
    add_operand(one, random, &x);
    add_list(one, sizes, wanted.rank);
}

// Adds an operand of indices below `bound`.
static void add_indices(struct one_node *one, struct random *random, const struct inf_shape *shape,
                        int64_t bound)
{
    bool wide = random_once_in(random, 2);
    size_t count = inf_shape_elements(shape);
    int64_t *indices = calloc(count + 1, sizeof(*indices));
    cr_assert_not_null(indices);
    for (size_t i = 0; i < count; i++) {
        int64_t index = random_in(random, 0, bound - 1);
        if (wide)
            indices[i] = index;
        else
            ((int32_t *)indices)[i] = (int32_t)index;
    }
    if (random_once_in(random, 3))
        one_node_const(one, wide ? INF_DTYPE_I64 : INF_DTYPE_I32, *shape, indices);
    else
        one_node_input(one, wide ? INF_DTYPE_I64 : INF_DTYPE_I32, *shape, indices);
    free(indices);
}

void make_gather(struct one_node *one, struct random *random, uint32_t number)
{
    struct inf_attrs_gather *attrs = &one->attrs.gather;
    struct inf_shape shape = add_any(one, random, 1);
    int32_t axis = (int32_t)random_in(random, 0, shape.rank - 1);
    attrs->axis = random_once_in(random, 3) ? axis - shape.rank : axis;
    attrs->batch_dims = number % 3 == 0 ? (int32_t)random_in(random, 0, axis) : 0;
    struct inf_shape picked = {.rank = attrs->batch_dims};
    for (int32_t i = 0; i < picked.rank; i++)
        picked.dims[i] = shape.dims[i];
    for (int64_t i = random_in(random, 0, 2); i > 0; i--)
        picked.dims[picked.rank++] = random_in(random, 0, 7);
    if (shape.dims[axis] == 0) // no index is valid on an empty axis
        picked = (struct inf_shape){.rank = attrs->batch_dims + 1};
    add_indices(one, random, &picked, INF_MAX(shape.dims[axis], (int64_t)1));
}

void make_space_to_depth(struct one_node *one, struct random *random, uint32_t number)
{
    (void)number;
    int64_t block = random_in(random, 1, 3);
    one->attrs.space_to_depth.block = (int32_t)block;
    struct operand x = {.dtype = random_dtype(random, DTYPES_ANY),
                        .shape = INF_SHAPE(random_in(random, 1, 2), random_in(random, 1, 7) * block,
                                           random_in(random, 1, 7) * block, random_dim(random)),
                        .extremes = EXTREME_ALL};
    add_operand(one, random, &x);
}

void make_depth_to_space(struct one_node *one, struct random *random, uint32_t number)
{
    (void)number;
    int64_t block = random_in(random, 1, 3);
    one->attrs.depth_to_space.block = (int32_t)block;
    struct operand x = {.dtype = random_dtype(random, DTYPES_ANY),
                        .shape = INF_SHAPE(random_in(random, 1, 2), random_dim(random),
                                           random_in(random, 1, 9),
                                           random_in(random, 1, 9) * block * block),
                        .extremes = EXTREME_ALL};
    add_operand(one, random, &x);
}

void make_fill(struct one_node *one, struct random *random, uint32_t number)
{
    (void)number;
    struct inf_shape shape = random_shape(random, random_rank(random, 0, 5));
    int32_t sizes[INF_LIMIT_RANK];
    for (int32_t i = 0; i < shape.rank; i++)
        sizes[i] = (int32_t)shape.dims[i];
    add_list(one, sizes, shape.rank);
    struct operand value = {.dtype = random_dtype(random, DTYPES_ANY),
                            .extremes = EXTREME_ALL,
                            .constant = random_once_in(random, 2)};
    add_operand(one, random, &value);
}

void make_range(struct one_node *one, struct random *random, uint32_t number)
{
    int32_t start = (int32_t)random_in(random, -20, 20),
            limit = (int32_t)random_in(random, -20, 20);
    int32_t delta = (int32_t)random_in(random, 1, 5) * (limit < start ? -1 : 1);
    const int32_t ends[] = {start, limit, delta};
    for (uint32_t i = 0; i < 3; i++) {
        float real = (float)ends[i] / 4;
        int64_t wide = ends[i];
        if (number % 3 == 0)
            one_node_const(one, INF_DTYPE_F32, (struct inf_shape){0}, &real);
        else if (number % 3 == 1)
            one_node_const(one, INF_DTYPE_I32, (struct inf_shape){0}, &ends[i]);
        else
            one_node_const(one, INF_DTYPE_I64, (struct inf_shape){0}, &wide);
    }
}

// The node always has a seed, because without one the devices would draw different numbers.
void make_random(struct one_node *one, struct random *random, uint32_t number)
{
    struct inf_shape shape = random_shape(random, random_rank(random, 0, 4));
    int32_t sizes[INF_LIMIT_RANK];
    for (int32_t i = 0; i < shape.rank; i++)
        sizes[i] = (int32_t)shape.dims[i];
    one->attrs.random.kind = (enum inf_random_kind)(number % INF_RANDOM_COUNT);
    one->attrs.random.seed = (int32_t)random_in(random, 1, INT32_MAX);
    add_list(one, sizes, shape.rank);
}
