// SPDX-License-Identifier: Apache-2.0
// Random numbers. A seed gives the same numbers in every run, as in TensorFlow.js. The numbers
// differ from those of TensorFlow.js, which uses another generator.
#include "backends/import/tfjs/lower.h"
#include "backends/import/tfjs/op_table.h"

// Combines TensorFlow's two seeds into one, which is 0 only if both are 0.
static enum inf_code read_seed(struct inf_tfjs_scope *scope, int32_t *out, struct inf_error *err)
{
    int32_t seed = 0, seed2 = 0;
    INF_TRY(inf_tfjs_attr_int(scope->node, "seed", INT32_MIN, INT32_MAX, &seed, err));
    INF_TRY(inf_tfjs_attr_int(scope->node, "seed2", INT32_MIN, INT32_MAX, &seed2, err));
    uint32_t mixed = (uint32_t)seed * 2654435761u ^ (uint32_t)seed2;
    *out = (int32_t)(mixed != 0 ? mixed : (uint32_t)(seed != 0));
    return INF_OK;
}

static enum inf_code emit_random(struct inf_tfjs_scope *scope, uint32_t shape,
                                 enum inf_random_kind kind, uint32_t *out_value,
                                 struct inf_error *err)
{
    struct inf_build_node call =
        inf_build_describe(INF_OP_RANDOM, shape, INF_VALUE_NONE, INF_VALUE_NONE);
    call.attrs.random.kind = kind;
    INF_TRY(read_seed(scope, &call.attrs.random.seed, err));
    return inf_tfjs_emit(scope, &call, out_value, err);
}

static enum inf_code lower_random(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t value;
    INF_TRY(
        emit_random(scope, scope->inputs[0], (enum inf_random_kind)scope->op->kind, &value, err));
    return inf_tfjs_result(scope, value, err);
}

static enum inf_code emit_cast(struct inf_tfjs_scope *scope, enum inf_dtype dtype, uint32_t *value,
                               struct inf_error *err)
{
    struct inf_build_node call =
        inf_build_describe(INF_OP_CAST, *value, INF_VALUE_NONE, INF_VALUE_NONE);
    call.attrs.cast.dtype = dtype;
    return inf_tfjs_emit(scope, &call, value, err);
}

// Adds minimum + floor((limit - minimum) * uniform [0, 1)). The inputs are shape, minimum, limit.
static enum inf_code lower_random_int(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t value, range;
    INF_TRY(
        inf_tfjs_binary(scope, INF_BINARY_SUB, scope->inputs[2], scope->inputs[1], &range, err));
    INF_TRY(emit_cast(scope, INF_DTYPE_F32, &range, err));
    INF_TRY(emit_random(scope, scope->inputs[0], INF_RANDOM_UNIFORM, &value, err));
    INF_TRY(inf_tfjs_binary(scope, INF_BINARY_MUL, value, range, &value, err));
    INF_TRY(emit_cast(scope, INF_DTYPE_I32, &value, err));
    INF_TRY(inf_tfjs_binary(scope, INF_BINARY_ADD, value, scope->inputs[1], &value, err));
    return inf_tfjs_result(scope, value, err);
}

// Sets *shape to [rows of logits, samples], as a list of integers.
static enum inf_code emit_sample_shape(struct inf_tfjs_scope *scope, uint32_t *shape,
                                       struct inf_error *err)
{
    uint32_t zero, rows, samples, count;
    struct inf_build_node call =
        inf_build_describe(INF_OP_SHAPE, scope->inputs[0], INF_VALUE_NONE, INF_VALUE_NONE);
    INF_TRY(inf_tfjs_emit(scope, &call, &count, err));
    INF_TRY(inf_tfjs_add_ints(scope, (const int64_t[]){0}, 1, &zero, err));
    call = inf_build_describe(INF_OP_GATHER, count, zero, INF_VALUE_NONE);
    INF_TRY(inf_tfjs_emit(scope, &call, &rows, err));
    INF_TRY(inf_tfjs_add_ints(scope, (const int64_t[]){1}, 1, &count, err));
    call = inf_build_describe(INF_OP_RESHAPE, scope->inputs[1], count, INF_VALUE_NONE);
    INF_TRY(inf_tfjs_emit(scope, &call, &samples, err));
    call = inf_build_describe(INF_OP_CONCAT, rows, samples, INF_VALUE_NONE);
    call.attrs.concat.axis = 0;
    return inf_tfjs_emit(scope, &call, shape, err);
}

// Lowers Multinomial. The inputs are logits [b,c] and the number of samples. A sample is the number
// of cumulative probabilities that are at most a random number. The last probability is not
// compared, because rounding may make it less than 1.
static enum inf_code lower_multinomial(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t shape, drawn, sums, place, last;
    const struct inf_shape *logits = &inf_tfjs_input(scope, 0)->shape;
    if (logits->rank != 2 || logits->dims[1] < 1)
        return inf_tfjs_fail(scope, err, INF_UNSUPPORTED, "its logits are not known to be [b,c]");
    INF_TRY(inf_tfjs_add_scalar(scope, INF_DTYPE_I32, (double)logits->dims[1] - 1, &last, err));
    struct inf_build_node softmax =
        inf_build_describe(INF_OP_SOFTMAX, scope->inputs[0], INF_VALUE_NONE, INF_VALUE_NONE);
    INF_TRY(inf_tfjs_emit(scope, &softmax, &sums, err));
    struct inf_build_node cumulate =
        inf_build_describe(INF_OP_CUMULATE, sums, INF_VALUE_NONE, INF_VALUE_NONE);
    cumulate.attrs.cumulate.axis = 1;
    INF_TRY(inf_tfjs_emit(scope, &cumulate, &sums, err));
    INF_TRY(emit_sample_shape(scope, &shape, err));
    INF_TRY(emit_random(scope, shape, INF_RANDOM_UNIFORM, &drawn, err));
    struct inf_build_node search =
        inf_build_describe(INF_OP_SEARCH_SORTED, sums, drawn, INF_VALUE_NONE);
    search.attrs.search_sorted.right = true;
    INF_TRY(inf_tfjs_emit(scope, &search, &place, err));
    INF_TRY(inf_tfjs_binary(scope, INF_BINARY_MIN, place, last, &place, err));
    return inf_tfjs_result(scope, place, err);
}

static const struct inf_tfjs_op ops[] = {
    {"RandomUniform", lower_random, 1, 1, INF_RANDOM_UNIFORM},
    {"RandomStandardNormal", lower_random, 1, 1, INF_RANDOM_NORMAL},
    {"TruncatedNormal", lower_random, 1, 1, INF_RANDOM_TRUNCATED_NORMAL},
    {"RandomUniformInt", lower_random_int, 3, 3, 0},
    {"Multinomial", lower_multinomial, 2, 2, 0},
};

const struct inf_tfjs_op_table inf_tfjs_ops_random = {ops, INF_ARRAY_LENGTH(ops)};
