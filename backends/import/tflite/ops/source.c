// SPDX-License-Identifier: Apache-2.0
// Tensors made of few numbers, and conversions between element types.
#include <math.h>

#include "backends/graph/build/operators.h"
#include "backends/import/tflite/op_table.h"

static void lower_fill(struct inf_tflite_scope *s)
{
    uint32_t scalar = inf_build_reshape(&s->b, inf_tflite_stored(s, 1), NULL, 0);
    s->outputs[0] = inf_build_fill(&s->b, inf_tflite_list(s, 0), scalar);
}

static void lower_zeros_like(struct inf_tflite_scope *s)
{
    uint32_t x = inf_tflite_stored(s, 0);
    uint32_t zero = inf_build_scalar(&s->b, inf_build_dtype(&s->b, x), 0);
    s->outputs[0] = inf_build_fill(&s->b, inf_build_shape(&s->b, x), zero);
}

static void lower_range(struct inf_tflite_scope *s)
{
    uint32_t operands[3];
    for (uint32_t i = 0; i < 3; i++)
        operands[i] = inf_build_reshape(&s->b, inf_tflite_stored(s, i), NULL, 0);
    struct inf_build_node node =
        inf_build_describe(INF_OP_RANGE, operands[0], operands[1], operands[2]);
    s->outputs[0] = inf_build_value(&s->b, &node);
}

static void lower_cast(struct inf_tflite_scope *s)
{
    enum inf_dtype dtype = inf_tflite_type_info(inf_tflite_output_tensor(s, 0)->type).dtype;
    if (dtype == INF_DTYPE_NONE)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "casts to type %s",
                       inf_tflite_type_info(inf_tflite_output_tensor(s, 0)->type).name);
    s->outputs[0] = inf_build_cast(&s->b, inf_tflite_stored(s, 0), dtype);
}

// Adds the shape of the broadcast of two shapes: missing axes in front have size 1, and of two
// sizes the one that is not 1 counts.
static void lower_broadcast_args(struct inf_tflite_scope *s)
{
    struct inf_builder *b = &s->b;
    uint32_t shapes[2] = {inf_tflite_list(s, 0), inf_tflite_list(s, 1)};
    int64_t ranks[2];
    for (int i = 0; i < 2; i++)
        ranks[i] = inf_build_known_dim(b, shapes[i], 0);
    if (!inf_build_ok(b))
        return;
    uint32_t one = inf_build_scalar(b, INF_DTYPE_I32, 1);
    for (int i = 0; i < 2; i++) {
        int64_t missing = INF_MAX(ranks[1 - i] - ranks[i], 0);
        shapes[i] = inf_build_pad(b, shapes[i], (int64_t[]){missing, 0}, 1, INF_PAD_CONSTANT, one);
    }
    uint32_t is_one = inf_build_compare(b, INF_COMPARE_EQUAL, shapes[0], one);
    s->outputs[0] = inf_build_select(b, is_one, shapes[1], shapes[0]);
}

// Counts for each element how many boundaries are less or equal.
static void lower_bucketize(struct inf_tflite_scope *s)
{
    struct inf_builder *b = &s->b;
    struct inf_fb_vector list = inf_fb_vector(&s->op->options, 0, "boundaries", 4);
    uint32_t x = inf_tflite_stored(s, 0);
    float *boundaries;
    uint32_t sorted = inf_build_const(b, INF_DTYPE_F32, &INF_SHAPE(list.count), &boundaries);
    for (uint32_t i = 0; boundaries != NULL && i < list.count; i++) {
        boundaries[i] = inf_fb_float_at(&list, i);
        if (!isfinite(boundaries[i]) || (i > 0 && boundaries[i] < boundaries[i - 1]))
            inf_build_fail(b, INF_INVALID, "option boundaries does not ascend at %u", i);
    }
    uint32_t flat = inf_build_reshape(b, inf_build_cast(b, x, INF_DTYPE_F32), (int64_t[]){-1}, 1);
    struct inf_build_node node =
        inf_build_describe(INF_OP_SEARCH_SORTED, sorted, flat, INF_VALUE_NONE);
    node.attrs.search_sorted.right = true;
    s->outputs[0] = inf_build_reshape_to(b, inf_build_value(b, &node), inf_build_shape(b, x));
}

static void lower_random(struct inf_tflite_scope *s)
{
    struct inf_build_node node =
        inf_build_describe(INF_OP_RANDOM, inf_tflite_list(s, 0), INF_VALUE_NONE, INF_VALUE_NONE);
    node.attrs.random.kind = (enum inf_random_kind)s->row->kind;
    node.attrs.random.seed = (int32_t)inf_tflite_option(s, INF_FB_I64, 0, "seed", 0);
    s->outputs[0] = inf_build_value(&s->b, &node);
}

// MULTINOMIAL: draws classes of logits [batch,classes]. The class with the largest sum of logit and
// Gumbel noise, -log(-log(u)), has the wanted distribution.
static void lower_multinomial(struct inf_tflite_scope *s)
{
    struct inf_builder *b = &s->b;
    uint32_t logits = inf_tflite_stored(s, 0);
    int64_t draws = inf_build_const_int(b, inf_tflite_list(s, 1), "the number of draws");
    int64_t batch = inf_build_known_dim(b, logits, 0), classes = inf_build_known_dim(b, logits, -1);
    if (inf_build_ok(b) && (inf_build_rank(b, logits) != 2 || draws < 0 || classes < 1))
        inf_build_fail(b, INF_INVALID, "draws %lld times of logits of rank %d with %lld classes",
                       (long long)draws, inf_build_rank(b, logits), (long long)classes);
    struct inf_build_node node =
        inf_build_describe(INF_OP_RANDOM, inf_build_list(b, (int64_t[]){batch, draws, classes}, 3),
                           INF_VALUE_NONE, INF_VALUE_NONE);
    node.attrs.random.seed = (int32_t)inf_tflite_option(s, INF_FB_I64, 0, "seed", 0);
    uint32_t noise = inf_build_value(b, &node);
    for (int i = 0; i < 2; i++)
        noise = inf_build_unary(b, INF_UNARY_NEG, inf_build_unary(b, INF_UNARY_LOG, noise));
    uint32_t rows = inf_build_expand_dims(b, logits, (int64_t[]){1}, 1);
    struct inf_build_node best = inf_build_describe(INF_OP_ARG, inf_build_add(b, rows, noise),
                                                    INF_VALUE_NONE, INF_VALUE_NONE);
    best.attrs.arg.axis = 2;
    s->outputs[0] = inf_build_value(b, &best);
}

static const struct inf_tflite_op ops[] = {
    {INF_TFLITE_FILL, NULL, lower_fill, 2, 2, 1, INF_TFLITE_MODE_STORED, 0, 0},
    {INF_TFLITE_ZEROS_LIKE, NULL, lower_zeros_like, 1, 1, 1, INF_TFLITE_MODE_STORED, 0, 0},
    {INF_TFLITE_RANGE, NULL, lower_range, 3, 3, 1, INF_TFLITE_MODE_STORED, 0, 0},
    {INF_TFLITE_CAST, NULL, lower_cast, 1, 1, 1, INF_TFLITE_MODE_STORED, 0, 0},
    {INF_TFLITE_STABLEHLO_CONVERT, NULL, lower_cast, 1, 1, 1, INF_TFLITE_MODE_STORED, 0, 0},
    {INF_TFLITE_MULTINOMIAL, NULL, lower_multinomial, 2, 2, 1, INF_TFLITE_MODE_STORED,
     INF_TFLITE_OPTIONS_RANDOM, 0},
    {INF_TFLITE_BROADCAST_ARGS, NULL, lower_broadcast_args, 2, 2, 1, INF_TFLITE_MODE_STORED, 0, 0},
    {INF_TFLITE_BUCKETIZE, NULL, lower_bucketize, 1, 1, 1, INF_TFLITE_MODE_STORED,
     INF_TFLITE_OPTIONS_BUCKETIZE, 0},
    {INF_TFLITE_RANDOM_UNIFORM, NULL, lower_random, 1, 1, 1, INF_TFLITE_MODE_STORED,
     INF_TFLITE_OPTIONS_RANDOM, INF_RANDOM_UNIFORM},
    {INF_TFLITE_RANDOM_STANDARD_NORMAL, NULL, lower_random, 1, 1, 1, INF_TFLITE_MODE_STORED,
     INF_TFLITE_OPTIONS_RANDOM, INF_RANDOM_NORMAL},
};

const struct inf_tflite_op_table inf_tflite_ops_source = {ops, INF_ARRAY_LENGTH(ops)};
