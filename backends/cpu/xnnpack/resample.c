// SPDX-License-Identifier: Apache-2.0
// Operators of XNNPACK that change the shape of a tensor: pad, depth_to_space.
#include <string.h>

#include "backends/cpu/xnnpack/library.h"

#define XNN_AXES 6 // equals XNN_MAX_TENSOR_DIMS

// --- operator pad ---

// The padded axes. An axis without padding is merged into the previous one.
struct pad {
    size_t rank;
    size_t shape[INF_LIMIT_RANK], before[INF_LIMIT_RANK], after[INF_LIMIT_RANK];
    enum xnn_status (*setup)(xnn_operator_t op, size_t rank, const size_t *shape,
                             const size_t *before, const size_t *after, const void *input,
                             void *output, pthreadpool_t pool);
};

// Describes the node. Returns false if the paddings are not constant or one of them is negative.
static bool pad_describe(struct pad *pad, const struct inf_graph *graph,
                         const struct inf_node *node)
{
    const struct inf_shape *x = inf_cpu_input_shape(graph, node, 0);
    int64_t paddings[2 * INF_LIMIT_RANK];
    uint32_t count;
    *pad = (struct pad){0};
    if (!inf_graph_const_ints(graph, node->inputs[1], paddings, INF_ARRAY_LENGTH(paddings),
                              &count) ||
        count != 2 * (uint32_t)x->rank)
        return false;
    for (int32_t axis = 0; axis < x->rank; axis++) {
        int64_t before = paddings[2 * axis];
        int64_t after = paddings[2 * axis + 1];
        if (before < 0 || after < 0)
            return false;
        size_t size = (size_t)x->dims[axis];
        if (before == 0 && after == 0 && pad->rank > 0) {
            size_t last = pad->rank - 1;
            pad->shape[last] *= size;
            pad->before[last] *= size;
            pad->after[last] *= size;
            continue;
        }
        pad->shape[pad->rank] = size;
        pad->before[pad->rank] = (size_t)before;
        pad->after[pad->rank++] = (size_t)after;
    }
    return true;
}

static enum inf_code pad_supports(const struct inf_graph *graph, const struct inf_node *node,
                                  struct inf_error *err)
{
    const struct inf_value *x = &graph->values[node->inputs[0]];
    struct pad pad;
    if (node->attrs.pad.mode != INF_PAD_CONSTANT)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: pad: only constant padding is built");
    if (inf_dtype_size(x->dtype) > 4)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: pad: %s is not built",
                        inf_dtype_name(x->dtype));
    if (inf_cpu_has_input(node, 2) && !inf_graph_is_const(graph, node->inputs[2]))
        return inf_fail(err, INF_UNSUPPORTED, "cpu: pad: the value is no constant");
    if (!pad_describe(&pad, graph, node))
        return inf_fail(err, INF_UNSUPPORTED, "cpu: pad: paddings that are no constants, or < 0");
    if (pad.rank < 1 || pad.rank > XNN_AXES)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: pad: %zu padded axes are not built", pad.rank);
    return INF_OK;
}

static enum xnn_status pad_setup(struct inf_cpu_step *step)
{
    const struct pad *pad = step->state;
    return pad->setup(step->op, pad->rank, pad->shape, pad->before, pad->after, step->inputs[0],
                      step->output, step->pool);
}

static enum inf_code pad_create(struct inf_cpu_step *step, struct inf_error *err)
{
    const struct inf_node *node = step->node;
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct pad), err));
    struct pad *pad = step->state;
    if (!pad_describe(pad, step->graph, node))
        return inf_fail(err, INF_INTERNAL, "node '%s': paddings are no constants", node->name);
    step->kernel = "xnn_constant_pad_nd";
    step->setup = pad_setup;
    size_t element = inf_dtype_size(step->graph->values[node->inputs[0]].dtype);
    uint32_t value = 0;
    if (inf_cpu_has_input(node, 2))
        memcpy(&value, step->graph->values[node->inputs[2]].data->data, element);
    enum xnn_status status;
    if (element == 4) {
        pad->setup = xnn_setup_constant_pad_nd_x32;
        status = xnn_create_constant_pad_nd_x32(&value, INF_XNN_FLAGS, &step->op);
    } else if (element == 2) {
        pad->setup = xnn_setup_constant_pad_nd_x16;
        status = xnn_create_constant_pad_nd_x16(&value, INF_XNN_FLAGS, &step->op);
    } else {
        pad->setup = xnn_setup_constant_pad_nd_x8;
        status = xnn_create_constant_pad_nd_x8(&value, INF_XNN_FLAGS, &step->op);
    }
    return inf_xnn_check(status, node, step->kernel, err);
}

// --- operator depth_to_space ---

static enum inf_code depth_supports(const struct inf_graph *graph, const struct inf_node *node,
                                    struct inf_error *err)
{
    const struct inf_value *x = &graph->values[node->inputs[0]];
    if (inf_dtype_size(x->dtype) != 4)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: depth_to_space: %s is not built",
                        inf_dtype_name(x->dtype));
    if (node->attrs.depth_to_space.block < 2)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: depth_to_space: blocks of 1 are not built");
    return INF_OK;
}

static enum xnn_status depth_setup(struct inf_cpu_step *step)
{
    const struct inf_shape *x = inf_cpu_input_shape(step->graph, step->node, 0);
    return xnn_setup_depth_to_space_nhwc_x32(step->op, (size_t)x->dims[0], (size_t)x->dims[1],
                                             (size_t)x->dims[2], step->inputs[0], step->output,
                                             step->pool);
}

static enum inf_code depth_create(struct inf_cpu_step *step, struct inf_error *err)
{
    size_t inputs = (size_t)inf_cpu_input_shape(step->graph, step->node, 0)->dims[3];
    size_t outputs = (size_t)inf_cpu_output_shape(step->graph, step->node)->dims[3];
    step->kernel = "xnn_depth_to_space";
    step->setup = depth_setup;
    enum xnn_status status = xnn_create_depth_to_space_nhwc_x32(
        outputs, inputs, outputs, (uint32_t)step->node->attrs.depth_to_space.block, INF_XNN_FLAGS,
        &step->op);
    return inf_xnn_check(status, step->node, step->kernel, err);
}

const struct inf_cpu_kernel inf_cpu_resample_kernels[] = {
    {INF_OP_PAD, pad_supports, pad_create},
    {INF_OP_DEPTH_TO_SPACE, depth_supports, depth_create},
    {0},
};
