// SPDX-License-Identifier: Apache-2.0
// Shapes of space_to_batch and batch_to_space.
#include "backends/graph/shape/rules.h"

// The operands of both operators: block sizes, and the padding or cropping.
struct blocks {
    bool known;
    int64_t count; // number of spatial axes
    int64_t sizes[INF_LIMIT_RANK];
    int64_t edges[2 * INF_LIMIT_RANK]; // padding or cropping before and after each axis
    int64_t product;                   // product of all block sizes
};

static enum inf_code read_blocks(struct inf_infer *infer, const struct inf_shape *x,
                                 struct blocks *blocks)
{
    struct inf_operand sizes;
    struct inf_operand edges;
    INF_TRY(inf_infer_operand(infer, 1, 0, &sizes));
    INF_TRY(inf_infer_operand(infer, 2, 2, &edges));
    *blocks = (struct blocks){.known = sizes.known && edges.known, .product = 1};
    if (!inf_dim_merge(sizes.count, edges.count, &blocks->count))
        return inf_shape_fault(infer, "%lld blocks, but %lld rows of input 2",
                               (long long)sizes.count, (long long)edges.count);
    if (x->rank >= 0 && blocks->count >= x->rank)
        return inf_shape_fault(infer, "%lld blocks for x of rank %d", (long long)blocks->count,
                               x->rank);
    for (int64_t i = 0; blocks->known && i < blocks->count; i++) {
        blocks->sizes[i] = sizes.values[i];
        blocks->edges[2 * i] = edges.values[2 * i];
        blocks->edges[2 * i + 1] = edges.values[2 * i + 1];
        for (int side = 0; side < 2; side++)
            if (edges.values[2 * i + side] < 0 || edges.values[2 * i + side] >= INF_LIMIT_DIM)
                return inf_shape_fault(infer, "input 2 has %lld, wanted 0 or more",
                                       (long long)edges.values[2 * i + side]);
        if (sizes.values[i] < 1 ||
            !inf_dim_product(blocks->product, sizes.values[i], &blocks->product))
            return inf_shape_fault(infer, "block %lld of axis %lld is no size",
                                   (long long)sizes.values[i], (long long)i + 1);
    }
    return INF_OK;
}

// Sets y to a shape with the same rank as x, in which every dimension is unknown. Called if the
// block sizes are not constant yet.
static enum inf_code is_undecided(struct inf_infer *infer, const struct inf_shape *x)
{
    struct inf_shape y = *x;
    for (int32_t i = 0; i < y.rank; i++)
        y.dims[i] = INF_DIM_UNKNOWN;
    return inf_infer_output(infer, 0, &y);
}

enum inf_code inf_infer_space_to_batch(struct inf_infer *infer)
{
    struct inf_shape y = *inf_infer_input(infer, 0);
    struct blocks blocks;
    INF_TRY(read_blocks(infer, &y, &blocks));
    if (!blocks.known || y.rank < 0)
        return is_undecided(infer, &y);
    if (!inf_dim_product(y.dims[0], blocks.product, &y.dims[0]))
        return inf_shape_fault(infer, "the batch becomes too large");
    for (int64_t i = 0; i < blocks.count; i++) {
        int64_t *dim = &y.dims[1 + i];
        if (*dim < 0)
            continue;
        *dim += blocks.edges[2 * i] + blocks.edges[2 * i + 1];
        if (*dim % blocks.sizes[i] != 0)
            return inf_shape_fault(infer, "axis %lld of padded size %lld is no multiple of %lld",
                                   (long long)i + 1, (long long)*dim, (long long)blocks.sizes[i]);
        *dim /= blocks.sizes[i];
    }
    return inf_infer_output(infer, 0, &y);
}

enum inf_code inf_infer_batch_to_space(struct inf_infer *infer)
{
    struct inf_shape y = *inf_infer_input(infer, 0);
    struct blocks blocks;
    INF_TRY(read_blocks(infer, &y, &blocks));
    if (!blocks.known || y.rank < 0)
        return is_undecided(infer, &y);
    if (y.dims[0] >= 0 && y.dims[0] % blocks.product != 0)
        return inf_shape_fault(infer, "a batch of %lld does not divide into blocks of %lld",
                               (long long)y.dims[0], (long long)blocks.product);
    y.dims[0] = y.dims[0] < 0 ? INF_DIM_UNKNOWN : y.dims[0] / blocks.product;
    for (int64_t i = 0; i < blocks.count; i++) {
        int64_t *dim = &y.dims[1 + i];
        if (!inf_dim_product(*dim, blocks.sizes[i], dim))
            return inf_shape_fault(infer, "axis %lld becomes too large", (long long)i + 1);
        if (*dim < 0)
            continue;
        *dim -= blocks.edges[2 * i] + blocks.edges[2 * i + 1];
        if (*dim < 0)
            return inf_shape_fault(infer, "more is cropped from axis %lld than there is",
                                   (long long)i + 1);
    }
    return inf_infer_output(infer, 0, &y);
}
