// SPDX-License-Identifier: Apache-2.0
// TensorScatter: writes rows over a part of a cache, at a position of its own for each item of the
// batch. In circular mode, rows behind the last one of the cache go to its beginning.
#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/heads.h"
#include "backends/import/onnx/op_table.h"

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
    struct inf_build_node node = inf_build_describe(INF_OP_APPEND, cache, positions, rows);
    node.attrs.append.axis = axis;
    node.attrs.append.ring = circular;
    s->outputs[0] = inf_build_value(&s->b, &node);
}

static const struct inf_onnx_op ops[] = {
    {"TensorScatter", lower_tensor_scatter, 2, 3, 1, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_tensor_scatter = {ops, INF_ARRAY_LENGTH(ops)};
