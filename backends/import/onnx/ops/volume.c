// SPDX-License-Identifier: Apache-2.0
// Sampling of volumes: GridSample of x [n, c, d, h, w], as gathers of the elements around each
// position. Nearest takes one element, linear the eight corners of a cell with their weights.
#include "backends/import/onnx/ops/volume.h"

#include "backends/graph/build/operators.h"

// A GridSample whose positions are converted to elements. Axis 0 is depth, 1 height, 2 width.
struct volume {
    const struct inf_onnx_volume *what;
    uint32_t x;       // channels last
    uint32_t at[3];   // positions in elements, [n, d', h', w', 1]
    uint32_t last[3]; // number of the last element along each axis, as scalars of the type of `at`
    enum inf_dtype dtype; // of the positions
};

// Adds nodes that convert positions from -1 to 1 along axis `axis` to elements.
static void add_positions(struct inf_onnx_scope *s, struct volume *volume, uint32_t grid,
                          int32_t axis)
{
    uint32_t size =
        inf_build_reshape(&s->b, inf_build_dim_value(&s->b, volume->x, axis + 1), NULL, 0);
    size = inf_build_cast(&s->b, size, volume->dtype);
    volume->last[axis] = inf_build_binary_number(&s->b, INF_BINARY_SUB, size, 1);
    // The grid names the width first.
    uint32_t at = inf_build_gather(&s->b, grid, inf_build_list(&s->b, (int64_t[]){2 - axis}, 1), 4);
    at = inf_build_binary_number(&s->b, INF_BINARY_ADD, at, 1);
    uint32_t range = volume->what->align_corners ? volume->last[axis] : size;
    at = inf_build_binary_number(&s->b, INF_BINARY_MUL, inf_build_mul(&s->b, at, range), 0.5);
    if (!volume->what->align_corners)
        at = inf_build_binary_number(&s->b, INF_BINARY_SUB, at, 0.5);
    if (volume->what->clamps) {
        at = inf_build_binary_number(&s->b, INF_BINARY_MAX, at, 0);
        at = inf_build_binary(&s->b, INF_BINARY_MIN, at, volume->last[axis]);
    }
    volume->at[axis] = at;
}

// Adds the elements at whole numbers `cell`. Elements outside of the volume are 0.
static uint32_t add_elements(struct inf_onnx_scope *s, const struct volume *volume,
                             const uint32_t *cell)
{
    uint32_t indices[3], inside = INF_VALUE_NONE;
    for (int32_t i = 0; i < 3; i++) {
        // NaN and infinity are outside, and are clamped to a valid index.
        uint32_t clamped = inf_build_binary(
            &s->b, INF_BINARY_MIN, inf_build_binary_number(&s->b, INF_BINARY_MAX, cell[i], 0),
            volume->last[i]);
        uint32_t own = inf_build_compare(&s->b, INF_COMPARE_EQUAL, clamped, cell[i]);
        inside = i == 0 ? own : inf_build_binary(&s->b, INF_BINARY_LOGICAL_AND, inside, own);
        indices[i] = inf_build_cast(&s->b, clamped, INF_DTYPE_I32);
    }
    const uint32_t inputs[] = {volume->x, inf_build_concat(&s->b, indices, 3, 4)};
    struct inf_build_node node = inf_build_describe_list(INF_OP_GATHER_ND, inputs, 2);
    node.attrs.gather_nd.batch_dims = 1;
    enum inf_dtype dtype = inf_build_dtype(&s->b, volume->x);
    return inf_build_select(&s->b, inside, inf_build_value(&s->b, &node),
                            inf_build_scalar(&s->b, dtype, 0));
}

// Adds the sum of the eight corners around each position, each times its weight.
static uint32_t add_corners(struct inf_onnx_scope *s, const struct volume *volume)
{
    uint32_t floors[3], parts[3], cell[3], sum = INF_VALUE_NONE;
    for (int32_t i = 0; i < 3; i++) {
        floors[i] = inf_build_unary(&s->b, INF_UNARY_FLOOR, volume->at[i]);
        parts[i] = inf_build_sub(&s->b, volume->at[i], floors[i]);
    }
    for (uint32_t corner = 0; inf_build_ok(&s->b) && corner < 8; corner++) {
        uint32_t weight = INF_VALUE_NONE;
        for (int32_t i = 0; i < 3; i++) {
            bool upper = corner >> i & 1;
            cell[i] = inf_build_binary_number(&s->b, INF_BINARY_ADD, floors[i], upper ? 1 : 0);
            uint32_t own =
                upper ? parts[i]
                      : inf_build_sub(&s->b, inf_build_scalar(&s->b, volume->dtype, 1), parts[i]);
            weight = i == 0 ? own : inf_build_mul(&s->b, weight, own);
        }
        uint32_t term = inf_build_mul(&s->b, add_elements(s, volume, cell), weight);
        sum = corner == 0 ? term : inf_build_add(&s->b, sum, term);
    }
    return sum;
}

uint32_t inf_onnx_sample_volume(struct inf_onnx_scope *s, uint32_t x, uint32_t grid,
                                const struct inf_onnx_volume *what)
{
    enum inf_dtype dtype = inf_build_dtype(&s->b, x);
    struct volume volume = {.what = what, .dtype = dtype == INF_DTYPE_F64 ? dtype : INF_DTYPE_F32};
    if (inf_build_ok(&s->b) && !inf_dtype_is_float(dtype))
        inf_build_fail(&s->b, INF_UNSUPPORTED, "x is %s, wanted a float", inf_dtype_name(dtype));
    if (inf_build_rank(&s->b, grid) != 5)
        inf_build_fail(&s->b, INF_INVALID, "the grid is not of rank 5");
    volume.x = inf_build_channels_last(&s->b, inf_build_cast(&s->b, x, volume.dtype));
    grid = inf_build_cast(&s->b, grid, volume.dtype);
    for (int32_t i = 0; inf_build_ok(&s->b) && i < 3; i++)
        add_positions(s, &volume, grid, i);
    uint32_t y = INF_VALUE_NONE, cell[3];
    if (what->is_linear) {
        y = add_corners(s, &volume);
    } else {
        for (int32_t i = 0; i < 3; i++)
            cell[i] = inf_build_unary(&s->b, INF_UNARY_ROUND, volume.at[i]);
        y = add_elements(s, &volume, cell);
    }
    return inf_build_cast(&s->b, inf_build_channels_first(&s->b, y), dtype);
}
