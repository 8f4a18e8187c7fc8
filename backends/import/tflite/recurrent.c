// SPDX-License-Identifier: Apache-2.0
// What recurrent operators share. Time steps are lowered one after the other, because TFLite's
// cells have projections, normalisations and quantised states that the graph's own recurrent
// operator has not.
#include "backends/import/tflite/recurrent.h"

#include "backends/graph/build/operators.h"
#include "backends/import/tflite/quantize.h"
#include "backends/import/tflite/tensor.h"

struct inf_tflite_sequence inf_tflite_sequence_cut(struct inf_tflite_scope *s, uint32_t index,
                                                   bool time_major)
{
    struct inf_tflite_sequence sequence = {0};
    uint32_t x = inf_tflite_real(s, index);
    int64_t axis = time_major ? 0 : 1, count = 0;
    if (inf_build_ok(&s->b) && inf_build_rank(&s->b, x) != 3)
        inf_build_fail(&s->b, INF_INVALID, "its input has %d axes, wanted 3",
                       inf_build_rank(&s->b, x));
    if (inf_build_ok(&s->b))
        count = inf_build_known_dim(&s->b, x, (int32_t)axis);
    if (inf_build_ok(&s->b) && (count < 1 || count > INF_TFLITE_STEPS_MAX))
        inf_build_fail(&s->b, INF_UNSUPPORTED, "has %lld time steps, wanted 1 to %d",
                       (long long)count, INF_TFLITE_STEPS_MAX);
    if (!inf_build_ok(&s->b))
        return sequence;
    sequence.steps = inf_arena_alloc(s->import->arena, (size_t)count * sizeof *sequence.steps);
    if (sequence.steps == NULL) {
        inf_build_fail(&s->b, INF_EXHAUSTED, "no memory for %lld time steps", (long long)count);
        return sequence;
    }
    sequence.count = (uint32_t)count;
    struct inf_build_node node =
        inf_build_describe(INF_OP_SPLIT, x, INF_VALUE_NONE, INF_VALUE_NONE);
    node.attrs.split.axis = (int32_t)axis;
    node.output_count = sequence.count;
    inf_build_emit(&s->b, &node, sequence.steps);
    for (uint32_t i = 0; i < sequence.count; i++)
        sequence.steps[i] = inf_build_squeeze(&s->b, sequence.steps[i], &axis, 1);
    return sequence;
}

uint32_t inf_tflite_sequence_join(struct inf_tflite_scope *s,
                                  const struct inf_tflite_sequence *sequence, bool time_major)
{
    int64_t axis = time_major ? 0 : 1;
    if (!inf_build_ok(&s->b))
        return INF_VALUE_NONE;
    for (uint32_t i = 0; i < sequence->count; i++)
        sequence->steps[i] = inf_build_expand_dims(&s->b, sequence->steps[i], &axis, 1);
    return inf_build_concat(&s->b, sequence->steps, sequence->count, (int32_t)axis);
}

uint32_t inf_tflite_weight(struct inf_tflite_scope *s, uint32_t index)
{
    const struct inf_tflite_tensor *tensor = inf_tflite_input_tensor(s, index);
    if (tensor == NULL)
        return INF_VALUE_NONE;
    if (!inf_tflite_tensor_is_const(tensor))
        return inf_tflite_real(s, index);
    const struct inf_tflite_tensor weights =
        inf_tflite_tensor_as_weights(tensor, inf_tflite_input_tensor(s, 0));
    return inf_tflite_add_floats(s, &weights, NULL);
}

uint32_t inf_tflite_project(struct inf_tflite_scope *s, uint32_t x, uint32_t weights, uint32_t sum)
{
    struct inf_build_node node = inf_build_describe(INF_OP_MATMUL, x, weights, INF_VALUE_NONE);
    node.attrs.matmul.transpose_b = true;
    uint32_t product = inf_build_value(&s->b, &node);
    return sum != INF_VALUE_NONE ? inf_build_add(&s->b, product, sum) : product;
}

uint32_t inf_tflite_activate_real(struct inf_tflite_scope *s, uint32_t x, int64_t kind)
{
    switch (kind) {
    case 0:
        return x;
    case 1:
        return inf_build_unary(&s->b, INF_UNARY_RELU, x);
    case 2:
        return inf_build_clip(&s->b, x, -1, 1);
    case 3:
        return inf_build_unary(&s->b, INF_UNARY_RELU6, x);
    case 4:
        return inf_build_unary(&s->b, INF_UNARY_TANH, x);
    default:
        inf_build_fail(&s->b, INF_UNSUPPORTED, "activation %lld is not supported", (long long)kind);
        return x;
    }
}

uint32_t inf_tflite_state(struct inf_tflite_scope *s, uint32_t index)
{
    if (!inf_tflite_has_input(s, index)) {
        inf_build_fail(&s->b, INF_INVALID, "lacks the state in input %u", index);
        return INF_VALUE_NONE;
    }
    return inf_tflite_real(s, index);
}

uint32_t inf_tflite_round_to(struct inf_tflite_scope *s, uint32_t x,
                             const struct inf_tflite_tensor *tensor)
{
    if (tensor == NULL || !inf_tflite_tensor_is_quantized(tensor))
        return x;
    return inf_tflite_dequantize(&s->b, inf_tflite_quantize(&s->b, x, tensor), tensor, 0);
}
