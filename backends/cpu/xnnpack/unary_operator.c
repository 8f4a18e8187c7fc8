// SPDX-License-Identifier: Apache-2.0
// The table of XNNPACK's unary operators, which includes the operators for activations.
#include "backends/cpu/xnnpack/unary_operator.h"

#include "backends/cpu/core/activation.h"
#include "backends/cpu/xnnpack/library.h"

typedef enum xnn_status create_fn(size_t channels, size_t input_stride, size_t output_stride,
                                  uint32_t flags, xnn_operator_t *op);
typedef enum xnn_status create_alpha_fn(size_t channels, size_t input_stride, size_t output_stride,
                                        float alpha, uint32_t flags, xnn_operator_t *op);
typedef enum xnn_status setup_fn(xnn_operator_t op, size_t batch, const float *input, float *output,
                                 pthreadpool_t pool);

struct unary_row {
    const char *name;
    create_fn *create;
    create_alpha_fn *create_alpha; // used instead of `create` for kinds that have an alpha
    setup_fn *setup;
};

static const struct unary_row unary_rows[INF_UNARY_COUNT] = {
    [INF_UNARY_NEG] = {"xnn_negate", xnn_create_negate_nc_f32, NULL, xnn_setup_negate_nc_f32},
    [INF_UNARY_ABS] = {"xnn_abs", xnn_create_abs_nc_f32, NULL, xnn_setup_abs_nc_f32},
    [INF_UNARY_FLOOR] = {"xnn_floor", xnn_create_floor_nc_f32, NULL, xnn_setup_floor_nc_f32},
    [INF_UNARY_CEIL] = {"xnn_ceiling", xnn_create_ceiling_nc_f32, NULL, xnn_setup_ceiling_nc_f32},
    [INF_UNARY_ROUND] = {"xnn_bankers_rounding", xnn_create_bankers_rounding_nc_f32, NULL,
                         xnn_setup_bankers_rounding_nc_f32},
    [INF_UNARY_TRUNC] = {"xnn_truncation", xnn_create_truncation_nc_f32, NULL,
                         xnn_setup_truncation_nc_f32},
    [INF_UNARY_SQUARE] = {"xnn_square", xnn_create_square_nc_f32, NULL, xnn_setup_square_nc_f32},
    [INF_UNARY_SQRT] = {"xnn_square_root", xnn_create_square_root_nc_f32, NULL,
                        xnn_setup_square_root_nc_f32},
    [INF_UNARY_HARD_SWISH] = {"xnn_hardswish", xnn_create_hardswish_nc_f32, NULL,
                              xnn_setup_hardswish_nc_f32},
    [INF_UNARY_ELU] = {"xnn_elu", NULL, xnn_create_elu_nc_f32, xnn_setup_elu_nc_f32},
    [INF_UNARY_LEAKY_RELU] = {"xnn_leaky_relu", NULL, xnn_create_leaky_relu_nc_f32,
                              xnn_setup_leaky_relu_nc_f32},
};

const char *inf_xnn_unary_name(enum inf_unary_kind kind)
{
    return unary_rows[kind].name;
}

enum xnn_status inf_xnn_unary_create(struct inf_xnn_unary *unary, enum inf_unary_kind kind,
                                     float alpha, size_t count)
{
    const struct unary_row *row = &unary_rows[kind];
    unary->setup = row->setup;
    unary->batch = count;
    if (row->create_alpha != NULL)
        return row->create_alpha(1, 1, 1, alpha, INF_XNN_FLAGS, &unary->op);
    return row->create(1, 1, 1, INF_XNN_FLAGS, &unary->op);
}

enum inf_code inf_xnn_add_post_op(struct inf_cpu_step *step,
                                  const struct inf_cpu_activation *activation, const float *prelu,
                                  size_t channels, struct inf_error *err)
{
    struct inf_cpu_post_op *post_op = &step->post_op;
    post_op->count = inf_shape_elements(inf_cpu_output_shape(step->graph, step->node));
    post_op->map = inf_cpu_activation_map(activation->kind, step->isa->simd);
    if (activation->kind == INF_ACTIVATION_PRELU) {
        post_op->unary.setup = xnn_setup_prelu_nc_f32;
        post_op->unary.batch = post_op->count / channels;
        return inf_xnn_check(xnn_create_prelu_nc_f32(channels, channels, channels, prelu,
                                                     INF_XNN_FLAGS, &post_op->unary.op),
                             step->node, "xnn_prelu", err);
    }
    enum inf_unary_kind kind = inf_cpu_activation_unary(activation->kind);
    if (kind == INF_UNARY_COUNT)
        return INF_OK;
    return inf_xnn_check(
        inf_xnn_unary_create(&post_op->unary, kind, activation->alpha, post_op->count), step->node,
        inf_xnn_unary_name(kind), err);
}
