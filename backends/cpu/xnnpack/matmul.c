// SPDX-License-Identifier: Apache-2.0
// Matrix products with a constant right operand, on XNNPACK's fully connected operator.
#include "backends/cpu/core/activation.h"
#include "backends/cpu/xnnpack/library.h"
#include "backends/cpu/xnnpack/unary_operator.h"

struct matmul {
    size_t rows, inner, columns; // a is [rows, inner]; leading dimensions are merged
};

static struct inf_cpu_activation matmul_activation(const struct inf_node *node)
{
    const struct inf_attrs_matmul *attrs = &node->attrs.matmul;
    return (struct inf_cpu_activation){.kind = attrs->activation,
                                       .alpha = attrs->activation_alpha,
                                       .min = attrs->activation_min,
                                       .max = attrs->activation_max};
}

static struct matmul matmul_describe(const struct inf_graph *graph, const struct inf_node *node)
{
    const struct inf_shape *b = inf_cpu_input_shape(graph, node, 1);
    bool transposed = node->attrs.matmul.transpose_b;
    struct matmul matmul = {
        .inner = (size_t)b->dims[b->rank - (transposed ? 1 : 2)],
        .columns = (size_t)b->dims[b->rank - (transposed ? 2 : 1)],
    };
    matmul.rows = inf_shape_elements(inf_cpu_input_shape(graph, node, 0)) / matmul.inner;
    return matmul;
}

static enum inf_code matmul_supports(const struct inf_graph *graph, const struct inf_node *node,
                                     struct inf_error *err)
{
    const struct inf_shape *a = inf_cpu_input_shape(graph, node, 0);
    const struct inf_shape *b = inf_cpu_input_shape(graph, node, 1);
    if (a->rank < 2 || b->rank < 2)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: matmul: ranks %d and %d are not built",
                        (int)a->rank, (int)b->rank);
    INF_TRY(inf_cpu_need_f32(graph, node, 0, err));
    struct matmul matmul = matmul_describe(graph, node);
    // All matrices of a must be multiplied with the same matrix b.
    INF_TRY(inf_cpu_need_const(graph, node, 1, matmul.inner * matmul.columns, err));
    INF_TRY(inf_cpu_need_const(graph, node, 2, matmul.columns, err));
    bool vector = a->dims[a->rank - 1] == 1 || a->dims[a->rank - 2] == 1;
    if (node->attrs.matmul.transpose_a && !vector)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: matmul: a transposed is not built");
    struct inf_cpu_activation activation = matmul_activation(node);
    return inf_cpu_activation_check(graph, node, &activation, 3, matmul.columns, err);
}

static enum xnn_status matmul_setup(struct inf_cpu_step *step)
{
    const struct matmul *matmul = step->state;
    return xnn_setup_fully_connected_nc_f32(step->op, matmul->rows, step->inputs[0], step->output,
                                            step->pool);
}

static enum inf_code matmul_create(struct inf_cpu_step *step, struct inf_error *err)
{
    const struct inf_node *node = step->node;
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct matmul), err));
    struct matmul *matmul = step->state;
    *matmul = matmul_describe(step->graph, node);
    step->kernel = "xnn_fully_connected";
    step->setup = matmul_setup;
    struct inf_cpu_activation activation = matmul_activation(node);
    float min;
    float max;
    inf_cpu_activation_bounds(&activation, &min, &max);
    // Do not transpose a weight matrix that is stored as [columns, inner], because XNNPACK expects
    // this layout.
    uint32_t flags = node->attrs.matmul.transpose_b ? 0 : XNN_FLAG_TRANSPOSE_WEIGHTS;
    enum xnn_status status = xnn_create_fully_connected_nc_f32(
        matmul->inner, matmul->columns, matmul->inner, matmul->columns,
        inf_cpu_const_f32(step->graph, node, 1), inf_cpu_const_f32(step->graph, node, 2), min, max,
        INF_XNN_FLAGS | flags, &step->op);
    INF_TRY(inf_xnn_check(status, node, step->kernel, err));
    return inf_xnn_add_post_op(step, &activation, inf_cpu_const_f32(step->graph, node, 3),
                               matmul->columns, err);
}

const struct inf_cpu_kernel inf_cpu_matmul_kernels[] = {
    {INF_OP_MATMUL, matmul_supports, matmul_create},
    {0},
};
