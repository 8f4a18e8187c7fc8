// SPDX-License-Identifier: Apache-2.0
// TensorScatter: writes rows over a part of a cache, at a position of its own for each item of the
// batch. In circular mode, rows behind the last one of the cache go to its beginning. The cache
// gets room for such rows at its end first, and they are moved from there:
//
//     cache, with room   c0 c1 c2 c3 | 0  0      3 rows at position 3
//     written            c0 c1 c2 n0 | n1 n2
//     wrapped            n1 n2 c2 n0             where the position in the cache is below 3 + 3 - 4
#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/heads.h"
#include "backends/import/onnx/op_table.h"

// Adds a node that writes `rows` over x along `axis`.
static uint32_t write_rows(struct inf_onnx_scope *s, uint32_t x, uint32_t positions, uint32_t rows,
                           int32_t axis)
{
    struct inf_build_node node = inf_build_describe(INF_OP_APPEND, x, positions, rows);
    node.attrs.append.axis = axis;
    return inf_build_value(&s->b, &node);
}

// Adds nodes that give x [n] so many axes of size 1 behind its axis.
static uint32_t add_axes_behind(struct inf_onnx_scope *s, uint32_t x, int32_t count)
{
    int64_t axes[INF_LIMIT_RANK];
    for (int32_t i = 0; i < count; i++)
        axes[i] = i + 1;
    return count > 0 ? inf_build_expand_dims(&s->b, x, axes, count) : x;
}

// Adds nodes that write rows over the cache in circular mode. `positions` is i32.
static uint32_t write_circular(struct inf_onnx_scope *s, uint32_t cache, uint32_t positions,
                               uint32_t rows, int32_t axis)
{
    int32_t rank = inf_build_rank(&s->b, cache);
    uint32_t size = inf_build_dim_value(&s->b, cache, axis);
    uint32_t count = inf_build_dim_value(&s->b, rows, axis);
    uint32_t zero = inf_build_scalar(&s->b, inf_build_dtype(&s->b, rows), 0);
    uint32_t room = inf_build_fill(&s->b, inf_build_shape(&s->b, rows), zero);
    positions = inf_build_binary(&s->b, INF_BINARY_FLOOR_MOD, positions, size);
    uint32_t all = inf_build_concat(&s->b, (uint32_t[]){cache, room}, 2, axis);
    all = write_rows(s, all, positions, rows, axis);
    uint32_t index = inf_onnx_add_range(s, cache, axis);
    uint32_t behind = inf_build_add(&s->b, inf_onnx_add_range(s, rows, axis), size);
    uint32_t written = inf_build_gather(&s->b, all, index, axis);
    behind = inf_build_gather(&s->b, all, behind, axis);
    uint32_t wrapped =
        write_rows(s, written, inf_build_list(&s->b, (int64_t[]){0}, 1), behind, axis);
    uint32_t end = inf_build_sub(&s->b, inf_build_add(&s->b, positions, count), size);
    uint32_t is_wrapped =
        inf_build_compare(&s->b, INF_COMPARE_LESS, add_axes_behind(s, index, rank - axis - 1),
                          add_axes_behind(s, end, rank - 1));
    return inf_build_select(&s->b, is_wrapped, wrapped, written);
}

// Lowers TensorScatter. Inputs: cache, rows, positions [batch].
static void lower_tensor_scatter(struct inf_onnx_scope *s)
{
    uint32_t cache = s->inputs[0], rows = s->inputs[1], positions = inf_onnx_input(s, 2);
    const char *mode = inf_onnx_attr_text(s, "mode", "linear");
    int32_t axis =
        inf_build_axis(&s->b, inf_onnx_attr_int(s, "axis", -2), inf_build_rank(&s->b, cache));
    bool circular = strcmp(mode, "circular") == 0;
    if (!circular && strcmp(mode, "linear") != 0)
        inf_build_fail(&s->b, INF_INVALID, "mode is '%.20s'", mode);
    if (inf_build_ok(&s->b) && axis == 0)
        inf_build_fail(&s->b, INF_INVALID, "axis 0 is that of the batch");
    if (!inf_build_ok(&s->b))
        return;
    if (positions == INF_VALUE_NONE)
        positions = inf_build_list(&s->b, (int64_t[]){0}, 1);
    if (!circular) {
        s->outputs[0] = write_rows(s, cache, positions, rows, axis);
        return;
    }
    positions = inf_build_cast(&s->b, positions, INF_DTYPE_I32);
    s->outputs[0] = write_circular(s, cache, positions, rows, axis);
}

static const struct inf_onnx_op ops[] = {
    {"TensorScatter", lower_tensor_scatter, 2, 3, 1, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_tensor_scatter = {ops, INF_ARRAY_LENGTH(ops)};
