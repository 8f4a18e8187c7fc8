// SPDX-License-Identifier: Apache-2.0
// Element-wise functions of one input, and prelu, on XNNPACK.
#include <math.h>

#include "backends/cpu/core/activation.h"
#include "backends/cpu/xnnpack/library.h"
#include "backends/cpu/xnnpack/unary_operator.h"

static enum inf_code unary_supports(const struct inf_graph *graph, const struct inf_node *node,
                                    struct inf_error *err)
{
    const struct inf_attrs_unary *attrs = &node->attrs.unary;
    INF_TRY(inf_cpu_need_f32(graph, node, 0, err));
    if (inf_xnn_unary_name(attrs->kind) == NULL)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: unary %s is not built",
                        inf_unary_name(attrs->kind));
    if (!inf_cpu_unary_alpha_ok(attrs->kind, attrs->alpha))
        return inf_fail(err, INF_UNSUPPORTED, "cpu: unary %s with alpha %g is not built",
                        inf_unary_name(attrs->kind), (double)attrs->alpha);
    return INF_OK;
}

static enum xnn_status unary_setup(struct inf_cpu_step *step)
{
    const struct inf_xnn_unary *unary = step->state;
    return unary->setup(step->op, unary->batch, step->inputs[0], step->output, step->pool);
}

static enum inf_code unary_create(struct inf_cpu_step *step, struct inf_error *err)
{
    const struct inf_attrs_unary *attrs = &step->node->attrs.unary;
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct inf_xnn_unary), err));
    struct inf_xnn_unary *unary = step->state;
    step->kernel = inf_xnn_unary_name(attrs->kind);
    step->setup = unary_setup;
    size_t count = inf_shape_elements(inf_cpu_output_shape(step->graph, step->node));
    enum xnn_status status = inf_xnn_unary_create(unary, attrs->kind, attrs->alpha, count);
    step->op = unary->op;
    return inf_xnn_check(status, step->node, step->kernel, err);
}

// --- operator prelu ---

// Returns the number of slopes if each slope belongs to one position in the last dimensions of x,
// so that XNNPACK can treat the positions as channels. Leading dimensions of 1 are ignored.
// Otherwise returns 0.
static size_t prelu_channels(const struct inf_graph *graph, const struct inf_node *node)
{
    const struct inf_shape *x = inf_cpu_input_shape(graph, node, 0);
    const struct inf_shape *slopes = inf_cpu_input_shape(graph, node, 1);
    size_t count = inf_shape_elements(slopes);
    size_t matched = 1;
    for (int32_t i = 1; matched < count; i++) {
        if (i > x->rank || i > slopes->rank ||
            slopes->dims[slopes->rank - i] != x->dims[x->rank - i])
            return 0;
        matched *= (size_t)x->dims[x->rank - i];
    }
    return matched;
}

static enum inf_code prelu_supports(const struct inf_graph *graph, const struct inf_node *node,
                                    struct inf_error *err)
{
    size_t count = inf_shape_elements(inf_cpu_input_shape(graph, node, 1));
    INF_TRY(inf_cpu_need_f32(graph, node, 0, err));
    INF_TRY(inf_cpu_need_const(graph, node, 1, count, err));
    char x[INF_SHAPE_TEXT_SIZE];
    char slopes[INF_SHAPE_TEXT_SIZE];
    if (prelu_channels(graph, node) == 0)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: prelu: slopes %s for %s are not built",
                        inf_shape_print(inf_cpu_input_shape(graph, node, 1), slopes),
                        inf_shape_print(inf_cpu_input_shape(graph, node, 0), x));
    if (count == 1 && !isfinite(*inf_cpu_const_f32(graph, node, 1)))
        return inf_fail(err, INF_UNSUPPORTED, "cpu: prelu: a slope is NaN or infinite");
    return INF_OK;
}

static enum inf_code prelu_create(struct inf_cpu_step *step, struct inf_error *err)
{
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct inf_xnn_unary), err));
    struct inf_xnn_unary *unary = step->state;
    step->setup = unary_setup;
    size_t count = inf_shape_elements(inf_cpu_output_shape(step->graph, step->node));
    size_t channels = prelu_channels(step->graph, step->node);
    const float *slopes = inf_cpu_const_f32(step->graph, step->node, 1);
    enum xnn_status status;
    if (channels == 1) {
        step->kernel = "xnn_leaky_relu";
        status = inf_xnn_unary_create(unary, INF_UNARY_LEAKY_RELU, slopes[0], count);
    } else {
        step->kernel = "xnn_prelu";
        unary->setup = xnn_setup_prelu_nc_f32;
        unary->batch = count / channels;
        status = xnn_create_prelu_nc_f32(channels, channels, channels, slopes, INF_XNN_FLAGS,
                                         &unary->op);
    }
    step->op = unary->op;
    return inf_xnn_check(status, step->node, step->kernel, err);
}

const struct inf_cpu_kernel inf_cpu_unary_kernels[] = {
    {INF_OP_UNARY, unary_supports, unary_create},
    {INF_OP_PRELU, prelu_supports, prelu_create},
    {0},
};
