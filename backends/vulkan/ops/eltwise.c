// SPDX-License-Identifier: Apache-2.0
// Element-wise operators: unary, binary, compare, select, cast.
#include "backends/vulkan/ops/eltwise.h"
#include "backends/vulkan/ops/broadcast.h"
#include "backends/vulkan/ops/ops.h"

// The tables below hold the number of each shader function plus one, so that 0 marks an operator
// for which there is no shader function.
#define BUILT(number) ((number) + 1)

static const uint8_t unary_functions[INF_UNARY_COUNT] = {
    [INF_UNARY_NEG] = BUILT(FN_NEG),
    [INF_UNARY_ABS] = BUILT(FN_ABS),
    [INF_UNARY_SIGN] = BUILT(FN_SIGN),
    [INF_UNARY_FLOOR] = BUILT(FN_FLOOR),
    [INF_UNARY_CEIL] = BUILT(FN_CEIL),
    [INF_UNARY_ROUND] = BUILT(FN_ROUND),
    [INF_UNARY_TRUNC] = BUILT(FN_TRUNC),
    [INF_UNARY_SQUARE] = BUILT(FN_SQUARE),
    [INF_UNARY_SQRT] = BUILT(FN_SQRT),
    [INF_UNARY_RSQRT] = BUILT(FN_RSQRT),
    [INF_UNARY_RECIPROCAL] = BUILT(FN_RECIPROCAL),
    [INF_UNARY_EXP] = BUILT(FN_EXP),
    [INF_UNARY_EXPM1] = BUILT(FN_EXPM1),
    [INF_UNARY_LOG] = BUILT(FN_LOG),
    [INF_UNARY_LOG1P] = BUILT(FN_LOG1P),
    [INF_UNARY_SIN] = BUILT(FN_SIN),
    [INF_UNARY_COS] = BUILT(FN_COS),
    [INF_UNARY_TAN] = BUILT(FN_TAN),
    [INF_UNARY_ASIN] = BUILT(FN_ASIN),
    [INF_UNARY_ACOS] = BUILT(FN_ACOS),
    [INF_UNARY_ATAN] = BUILT(FN_ATAN),
    [INF_UNARY_SINH] = BUILT(FN_SINH),
    [INF_UNARY_COSH] = BUILT(FN_COSH),
    [INF_UNARY_TANH] = BUILT(FN_TANH),
    [INF_UNARY_ASINH] = BUILT(FN_ASINH),
    [INF_UNARY_ACOSH] = BUILT(FN_ACOSH),
    [INF_UNARY_ATANH] = BUILT(FN_ATANH),
    [INF_UNARY_ERF] = BUILT(FN_ERF),
    [INF_UNARY_SIGMOID] = BUILT(FN_SIGMOID),
    [INF_UNARY_SOFTPLUS] = BUILT(FN_SOFTPLUS),
    [INF_UNARY_RELU] = BUILT(FN_CLIP),
    [INF_UNARY_RELU6] = BUILT(FN_CLIP),
    [INF_UNARY_ELU] = BUILT(FN_ELU),
    [INF_UNARY_SELU] = BUILT(FN_SELU),
    [INF_UNARY_LEAKY_RELU] = BUILT(FN_LEAKY_RELU),
    [INF_UNARY_HARD_SWISH] = BUILT(FN_HARD_SWISH),
    [INF_UNARY_IS_NAN] = BUILT(FN_IS_NAN),
    [INF_UNARY_GELU] = BUILT(FN_GELU),
    [INF_UNARY_GELU_TANH] = BUILT(FN_GELU_TANH),
    [INF_UNARY_SILU] = BUILT(FN_SILU),
};

static const uint8_t binary_kinds[INF_BINARY_COUNT] = {
    [INF_BINARY_ADD] = BUILT(BINARY_ADD),
    [INF_BINARY_SUB] = BUILT(BINARY_SUB),
    [INF_BINARY_MUL] = BUILT(BINARY_MUL),
    [INF_BINARY_DIV] = BUILT(BINARY_DIV),
    [INF_BINARY_DIV_NO_NAN] = BUILT(BINARY_DIV_NO_NAN),
    [INF_BINARY_FLOOR_DIV] = BUILT(BINARY_FLOOR_DIV),
    [INF_BINARY_FLOOR_MOD] = BUILT(BINARY_FLOOR_MOD),
    [INF_BINARY_MOD] = BUILT(BINARY_MOD),
    [INF_BINARY_POW] = BUILT(BINARY_POW),
    [INF_BINARY_MIN] = BUILT(BINARY_MIN),
    [INF_BINARY_MAX] = BUILT(BINARY_MAX),
    [INF_BINARY_SQUARED_DIFFERENCE] = BUILT(BINARY_SQUARED_DIFFERENCE),
};

static const uint8_t compare_kinds[INF_COMPARE_COUNT] = {
    [INF_COMPARE_EQUAL] = BUILT(COMPARE_EQUAL),
    [INF_COMPARE_NOT_EQUAL] = BUILT(COMPARE_NOT_EQUAL),
    [INF_COMPARE_LESS] = BUILT(COMPARE_LESS),
    [INF_COMPARE_LESS_EQUAL] = BUILT(COMPARE_LESS_EQUAL),
    [INF_COMPARE_GREATER] = BUILT(COMPARE_GREATER),
    [INF_COMPARE_GREATER_EQUAL] = BUILT(COMPARE_GREATER_EQUAL),
};

// --- operators of one input: unary functions and clamping ---

static enum inf_code emit_unary(struct vk_lowering *lowering, uint32_t function, float low,
                                float high, struct inf_error *err)
{
    INF_TRY(vk_need_f32(lowering, 0, err));
    struct {
        uint32_t vectors;
        float low, high;
    } push = {vk_vector_count(vk_output_shape(lowering, 0)), low, high};
    struct vk_dispatch dispatch = {.variant = {INF_SHADER_UNARY, {function}},
                                   .invocations = push.vectors};
    vk_set_push_constants(&dispatch, &push, sizeof(push));
    INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->inputs[0], err));
    vk_read_through_view(lowering, &dispatch, 0, true);
    INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->outputs[0], err));
    return vk_emit_dispatch(lowering, &dispatch, VK_FEW_ITERATIONS, err);
}

static bool unary_call(const struct inf_node *node, struct vk_element_call *call)
{
    const struct inf_attrs_unary *attrs = &node->attrs.unary;
    *call = (struct vk_element_call){.operands = 1, .low = attrs->alpha};
    if (unary_functions[attrs->kind] == 0)
        return false;
    call->function = unary_functions[attrs->kind] - 1u;
    if (attrs->kind == INF_UNARY_RELU || attrs->kind == INF_UNARY_RELU6) {
        call->low = 0;
        call->high = attrs->kind == INF_UNARY_RELU ? __builtin_inff() : 6;
    }
    return true;
}

enum inf_code vk_lower_unary(struct vk_lowering *lowering, struct inf_error *err)
{
    struct vk_element_call call;
    if (!unary_call(lowering->node, &call))
        return vk_decline(lowering, err, "kind %s is not built",
                          inf_unary_name(lowering->node->attrs.unary.kind));
    return emit_unary(lowering, call.function, call.low, call.high, err);
}

enum inf_code vk_lower_clip(struct vk_lowering *lowering, struct inf_error *err)
{
    const struct inf_attrs_clip *attrs = &lowering->node->attrs.clip;
    return emit_unary(lowering, FN_CLIP, attrs->min, attrs->max, err);
}

static bool binary_call(const struct inf_node *node, struct vk_element_call *call)
{
    struct vk_activation activation = vk_node_activation(node);
    *call = (struct vk_element_call){.operands = 2,
                                     .function = activation.function,
                                     .low = activation.low,
                                     .high = activation.high};
    if (binary_kinds[node->attrs.binary.kind] == 0 || activation.prelu ||
        activation.function == UINT32_MAX)
        return false;
    call->kind = binary_kinds[node->attrs.binary.kind] - 1u;
    return true;
}

bool vk_element_call_of(const struct vk_lowering *lowering, struct vk_element_call *call)
{
    const struct inf_node *node = lowering->node;
    *call = (struct vk_element_call){0};
    switch (node->op) {
    case INF_OP_UNARY:
        return unary_call(node, call);
    case INF_OP_CLIP:
        *call = (struct vk_element_call){.operands = 1,
                                         .function = FN_CLIP,
                                         .low = node->attrs.clip.min,
                                         .high = node->attrs.clip.max};
        return true;
    case INF_OP_BINARY:
        return binary_call(node, call);
    case INF_OP_PRELU:
        *call = (struct vk_element_call){.operands = 2, .kind = BINARY_PRELU, .function = FN_NONE};
        return true;
    default:
        return false;
    }
}

// --- operators with broadcast inputs ---

// Returns true if this kind divides integers. A division by 0 fails the run.
static bool is_division(enum inf_binary_kind kind)
{
    return kind == INF_BINARY_DIV || kind == INF_BINARY_FLOOR_DIV || kind == INF_BINARY_FLOOR_MOD ||
           kind == INF_BINARY_MOD;
}

// Emits binary.comp for floats, or for integers if `integers` is set.
static enum inf_code emit_binary(struct vk_lowering *lowering, uint32_t kind, bool integers,
                                 struct inf_error *err)
{
    enum inf_dtype dtype = vk_input_dtype(lowering, 0);
    if (dtype != INF_DTYPE_F32 && !(integers && dtype == INF_DTYPE_I32))
        return vk_decline(lowering, err, "%s is not built", inf_dtype_name(dtype));
    struct vk_activation activation = vk_node_activation(lowering->node);
    if (activation.function == UINT32_MAX || activation.prelu)
        return vk_decline(lowering, err, "its activation is not built");
    struct vk_broadcast shape = {.low = activation.low, .high = activation.high};
    INF_TRY(vk_broadcast_fill(&shape, lowering, (const uint32_t[]){0, 1}, 2, err));
    struct vk_dispatch dispatch = {.variant = {INF_SHADER_BINARY,
                                               {kind, dtype == INF_DTYPE_F32 ? TYPE_F32 : TYPE_I32,
                                                vk_broadcast_mode(&shape, 0),
                                                vk_broadcast_mode(&shape, 1), activation.function}},
                                   .invocations = shape.vectors,
                                   .checks = dtype == INF_DTYPE_I32 &&
                                             is_division(lowering->node->attrs.binary.kind)};
    vk_set_push_constants(&dispatch, &shape, sizeof(shape));
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t mode = vk_broadcast_mode(&shape, i);
        INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->inputs[i], err));
        vk_read_through_view(lowering, &dispatch, i,
                             mode == MODE_FLAT || mode == MODE_ROW || mode == MODE_INNER_VECTOR);
    }
    INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->outputs[0], err));
    return vk_emit_dispatch(lowering, &dispatch, VK_FEW_ITERATIONS, err);
}

static bool has_integers(enum inf_binary_kind kind)
{
    switch (kind) {
    case INF_BINARY_ADD:
    case INF_BINARY_SUB:
    case INF_BINARY_MUL:
    case INF_BINARY_MIN:
    case INF_BINARY_MAX:
    case INF_BINARY_SQUARED_DIFFERENCE:
        return true;
    default:
        return is_division(kind);
    }
}

enum inf_code vk_lower_binary(struct vk_lowering *lowering, struct inf_error *err)
{
    enum inf_binary_kind kind = lowering->node->attrs.binary.kind;
    if (binary_kinds[kind] == 0)
        return vk_decline(lowering, err, "kind %s is not built", inf_binary_name(kind));
    return emit_binary(lowering, binary_kinds[kind] - 1u, has_integers(kind), err);
}

enum inf_code vk_lower_prelu(struct vk_lowering *lowering, struct inf_error *err)
{
    return emit_binary(lowering, BINARY_PRELU, false, err);
}

enum inf_code vk_lower_compare(struct vk_lowering *lowering, struct inf_error *err)
{
    enum inf_compare_kind kind = lowering->node->attrs.compare.kind;
    enum inf_dtype dtype = vk_input_dtype(lowering, 0);
    if (compare_kinds[kind] == 0 || (dtype != INF_DTYPE_F32 && dtype != INF_DTYPE_I32))
        return vk_decline(lowering, err, "this kind of %s is not built", inf_dtype_name(dtype));
    struct vk_broadcast shape = {0};
    INF_TRY(vk_broadcast_fill(&shape, lowering, (const uint32_t[]){0, 1}, 2, err));
    struct vk_dispatch dispatch = {
        .variant = {INF_SHADER_COMPARE,
                    {compare_kinds[kind] - 1u, dtype == INF_DTYPE_F32 ? TYPE_F32 : TYPE_I32}},
        .invocations = shape.vectors};
    vk_set_push_constants(&dispatch, &shape, sizeof(shape));
    INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->inputs[0], err));
    INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->inputs[1], err));
    INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->outputs[0], err));
    return vk_emit_dispatch(lowering, &dispatch, VK_FEW_ITERATIONS, err);
}

enum inf_code vk_lower_select(struct vk_lowering *lowering, struct inf_error *err)
{
    if (inf_dtype_size(vk_output_dtype(lowering, 0)) != 4)
        return vk_decline(lowering, err, "%s is not built",
                          inf_dtype_name(vk_output_dtype(lowering, 0)));
    struct vk_broadcast shape = {0};
    INF_TRY(vk_broadcast_fill(&shape, lowering, (const uint32_t[]){1, 2, 0}, 3, err));
    struct vk_dispatch dispatch = {.variant = {INF_SHADER_SELECT, {0}},
                                   .invocations = shape.vectors};
    vk_set_push_constants(&dispatch, &shape, sizeof(shape));
    INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->inputs[1], err));
    INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->inputs[2], err));
    INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->inputs[0], err));
    INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->outputs[0], err));
    return vk_emit_dispatch(lowering, &dispatch, VK_FEW_ITERATIONS, err);
}

// --- operator cast ---

static uint32_t cast_type(enum inf_dtype dtype)
{
    switch (dtype) {
    case INF_DTYPE_F32:
        return TYPE_F32;
    case INF_DTYPE_I32:
        return TYPE_I32;
    case INF_DTYPE_U8:
        return TYPE_U8;
    case INF_DTYPE_BOOL:
        return TYPE_BOOL;
    default:
        return UINT32_MAX;
    }
}

enum inf_code vk_lower_cast(struct vk_lowering *lowering, struct inf_error *err)
{
    enum inf_dtype from = vk_input_dtype(lowering, 0), to = vk_output_dtype(lowering, 0);
    if (from == to)
        return vk_lower_copy(lowering, err);
    if (cast_type(from) == UINT32_MAX || cast_type(to) == UINT32_MAX)
        return vk_decline(lowering, err, "%s to %s is not built", inf_dtype_name(from),
                          inf_dtype_name(to));
    uint32_t count = vk_vector_count(vk_output_shape(lowering, 0));
    struct vk_dispatch dispatch = {.variant = {INF_SHADER_CAST, {cast_type(from), cast_type(to)}},
                                   .invocations = count};
    vk_set_push_constants(&dispatch, &count, sizeof(count));
    INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->inputs[0], err));
    INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->outputs[0], err));
    return vk_emit_dispatch(lowering, &dispatch, VK_FEW_ITERATIONS, err);
}
